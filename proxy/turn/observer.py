"""Who wants to hear of each block that a model wrote: what it was taken for, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TurnObserver(Protocol):
    """Told while the turn runs, perhaps on another thread. A `block` is as the model wrote it, its key included."""

    def took(self, name: str, tier: str, rules: Sequence[str], block: str) -> None:
        """It was read as a call of this tool, with the help of these rules."""

    def refused(self, reason: str, block: str) -> None:
        """It did not leave as a call."""
