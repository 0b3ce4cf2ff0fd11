"""What happened in a turn, by names and numbers. Holds no prompt text, no arguments, no secrets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class TurnReport:
    """Filled while the turn runs; read once it is over.

    `refused` counts blocks that did not leave as calls, by reason; `repairs` the parser's rules by
    name; `again` the reasons for which one more answer was asked for.
    """

    tools: tuple[str, ...] = ()
    calls: list[str] = field(default_factory=list)
    repairs: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    again: list[str] = field(default_factory=list)
    interrupted: str | None = None
