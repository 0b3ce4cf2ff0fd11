"""Finds the name that somebody meant who wrote another one."""

from __future__ import annotations

from collections.abc import Iterable


def near_name(written: str, known: Iterable[str], likeness: float) -> str | None:
    """The one of `known` that is most like it; None where none has that likeness, of which 1 is the most."""
    from difflib import get_close_matches  # noqa: PLC0415 -- nearly everybody writes a name that there is

    return next(iter(get_close_matches(written, known, n=1, cutoff=likeness)), None)
