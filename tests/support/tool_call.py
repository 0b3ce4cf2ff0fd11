"""What a client executes. It stands alone, as programs that tests start load it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as a client sees it, its arguments decoded."""

    name: str
    arguments: Mapping[str, object]
