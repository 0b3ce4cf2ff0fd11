"""The shapes of a request's members as data: a check for each name, and objects within objects.

    {"store": flag, "top_p": number(0, 1), "image": members(context_compression=one_of("auto", "enabled"))}

An absent or `null` member fits every shape. `reader` words the faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from .reader import Reader

# Looks at one member of an object. Raises `RequestError`.
Shape: TypeAlias = Callable[[Reader, str], object]
Shapes: TypeAlias = Mapping[str, Shape]


def check(holder: Reader, shapes: Shapes) -> None:
    """Raises `RequestError` for the first member that has not its shape; others are not looked at."""
    for name in holder.among(shapes):
        shapes[name](holder, name)


def flag(holder: Reader, name: str) -> None:
    holder.boolean(name)


def text(max_length: int | None = None) -> Shape:
    return lambda holder, name: holder.string(name, max_length=max_length)


def whole(minimum: int | None, maximum: int | None = None) -> Shape:
    return lambda holder, name: holder.integer(name, minimum=minimum, maximum=maximum)


def number(minimum: float, maximum: float) -> Shape:
    return lambda holder, name: holder.number(name, minimum=minimum, maximum=maximum)


def one_of(*values: str) -> Shape:
    return lambda holder, name: holder.choice(name, values)


def some_of(*values: str) -> Shape:
    return lambda holder, name: holder.choices(name, values)


def members(**shapes: Shape) -> Shape:
    def look(holder: Reader, name: str) -> None:
        if (inner := holder.object(name)) is not None:
            check(inner, shapes)

    return look
