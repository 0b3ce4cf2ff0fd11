"""What a model is shown, as text."""

from __future__ import annotations

from collections.abc import Iterable

from prompts import Part, Text


def text_of_parts(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def text(words: str) -> tuple[Part, ...]:
    """As it stands in a user turn and in a result."""
    return (Text(words),)
