"""Golden files: what a model sees, word for word.

After a wanted change, write them anew with `REWRITE_GOLDEN=1 pytest tests/prompts` and read the diff.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from prompts import RenderedTurn, Text

GOLDEN = Path(__file__).parent / "golden"


def seen(turn: RenderedTurn) -> str:
    """All that the model is given, each piece under its name."""
    pieces = [] if turn.developer is None else [("developer", turn.developer)]
    pieces += [("text", part.text) if isinstance(part, Text) else ("image", part.url) for part in turn.parts]
    return "".join(f"=== {name} ===\n{piece}\n" for name, piece in pieces)


@pytest.fixture
def golden() -> Callable[[str, RenderedTurn], None]:
    """Compare a turn with its golden file, or write it."""

    def compare(name: str, turn: RenderedTurn) -> None:
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("REWRITE_GOLDEN"):
            path.write_text(seen(turn), "utf-8")
        assert seen(turn) == path.read_text("utf-8")

    return compare
