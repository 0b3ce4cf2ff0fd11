"""Which calls a backend is asked to hold its model to, and which of their schemas it has refused."""

from __future__ import annotations

from enum import Enum

from cachetools import LRUCache

# Refusals that are remembered: models and schemas are the clients'.
MOST_REFUSALS = 256


class HoldCalls(Enum):
    """`auto`: a demanded call is held where the backend can, as `prompting` decides. `all`: any other, too."""

    AUTO = "auto"
    ALL = "all"
    OFF = "off"


class HeldCalls:
    """What of calls is held, and which schemas a model's server has refused; it remembers `most` of those."""

    def __init__(self, mode: HoldCalls = HoldCalls.AUTO, most: int = MOST_REFUSALS) -> None:
        self.mode = mode
        self._refused: LRUCache[tuple[str, str], None] = LRUCache(most)

    def note_refusal(self, model: str, schema: str) -> None:
        if self._refused.maxsize:
            self._refused[model, schema] = None

    def was_refused(self, model: str, schema: str) -> bool:
        return (model, schema) in self._refused
