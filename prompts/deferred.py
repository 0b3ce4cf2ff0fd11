"""A sequence that is made at the first look: a turn has two forms, and its backend wants only one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class Deferred(Sequence[T_co]):
    """Equal to every sequence of the same elements. `make` is called at most once."""

    __slots__ = ("_made",)

    def __init__(self, make: Callable[[], Iterable[T_co]]) -> None:
        self._made: tuple[T_co, ...] | Callable[[], Iterable[T_co]] = make

    def _all(self) -> tuple[T_co, ...]:
        if not isinstance(self._made, tuple):
            self._made = tuple(self._made())
        return self._made

    @overload
    def __getitem__(self, index: int) -> T_co: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...

    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[T_co]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return self._all() == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())
