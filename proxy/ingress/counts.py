"""The counts as plain numbers: counters with labels, histograms, and gauges that are read on demand."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from msgspec import Struct


class Counts:
    """A counter, one for each tuple of label values."""

    def __init__(self, name: str, what: str, labels: Sequence[str]) -> None:
        self.name, self.what, self.labels = name, what, labels
        self.counted: Counter[tuple[str, ...]] = Counter()

    def add(self, *values: str, by: int = 1) -> None:
        """The values of its labels, in their order."""
        self.counted[values] += by


class Durations:
    """A histogram. `bounds` are the upper ends of its buckets but the last one, which has none."""

    def __init__(self, name: str, what: str, bounds: Sequence[float]) -> None:
        self.name, self.what = name, what
        self.sum = 0.0
        self._bounds = bounds
        self._counted = [0] * (len(bounds) + 1)

    def observe(self, seconds: float, /) -> None:
        self.sum += seconds
        self._counted[bisect_left(self._bounds, seconds)] += 1

    def buckets(self) -> Iterator[tuple[str, int]]:
        """The upper end of each, and how many were not above it."""
        ends = [*map(str, map(float, self._bounds)), "+Inf"]
        return zip(ends, accumulate(self._counted), strict=True)


class Gauge(Struct, frozen=True):
    name: str
    what: str
    value: Callable[[], float]
