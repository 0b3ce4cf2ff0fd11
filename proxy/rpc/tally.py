"""Counts what is passed over. The first of each kind is worth a warning, a flood of them is not."""

from __future__ import annotations

from collections import Counter

import structlog

log = structlog.get_logger(__name__)


class Tally:
    """`event` is the name under which the first of each kind is logged."""

    def __init__(self, event: str) -> None:
        self.counts: Counter[str] = Counter()
        self._event = event

    def add(self, kind: str, **details: object) -> None:
        self.counts[kind] += 1
        (log.warning if self.counts[kind] == 1 else log.debug)(self._event, kind=kind, **details)
