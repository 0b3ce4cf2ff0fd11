"""What a model is shown, as text."""

from __future__ import annotations

from collections.abc import Iterable

from prompts import Part, Text


def text_of_parts(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))
