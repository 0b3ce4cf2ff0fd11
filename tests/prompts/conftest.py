"""Golden files: what a model sees, word for word.

After a wanted change, write them anew with `REWRITE_GOLDEN=1 pytest tests/prompts` and read the diff.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from prompts import Part, RenderedTurn, Text

GOLDEN = Path(__file__).parent / "golden"


def seen(turn: RenderedTurn) -> str:
    """All that the model is given, each piece under its name."""
    return _page(turn.developer, [_piece(part) for part in turn.parts])


def seen_as_items(turn: RenderedTurn) -> str:
    """The same where it is given messages, without the tool block and what follows it in the developer text."""
    pieces: list[tuple[str, str]] = []
    for item in turn.items:
        name = item.role if item.ours is None else f"{item.role}, ours: {item.ours.value}"
        first, *rest = map(_piece, item.parts)
        pieces += [(f"{name}: {first[0]}", first[1]), *rest]
    return _page((turn.head or "").partition("# Client tools")[0].rstrip(), pieces)


def _piece(part: Part) -> tuple[str, str]:
    return ("text", part.text) if isinstance(part, Text) else ("image", part.url)


def _page(developer: str | None, pieces: list[tuple[str, str]]) -> str:
    named = ([("developer", developer)] if developer else []) + pieces
    return "".join(f"=== {name} ===\n{piece}\n" for name, piece in named)


def _compare(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.fixture
def golden() -> Callable[[str, RenderedTurn], None]:
    """Compare a turn with its golden file, or write it."""
    return lambda name, turn: _compare(name, seen(turn))


@pytest.fixture
def golden_items() -> Callable[[str, RenderedTurn], None]:
    """The same for its items."""
    return lambda name, turn: _compare(f"items/{name}", seen_as_items(turn))
