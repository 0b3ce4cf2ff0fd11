"""Who wants to hear of each block that a model wrote: what it was taken for, and why."""

from __future__ import annotations

from typing import Protocol

from .block_note import BlockNote


class TurnObserver(Protocol):
    """Told while the turn runs, perhaps on another thread. A `block` is as the model wrote it, its key included."""

    def judged(self, note: BlockNote, block: str) -> None:
        """This was made of it."""
