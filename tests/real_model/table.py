"""What was counted, as a table: a row for each label and one for all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter


@dataclass
class Table:
    """Each answer counts in a row of each of its labels, which stand in groups by their place among the labels."""

    rows: dict[tuple[int, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, labels: Sequence[str], counted: Mapping[str, int], seconds: float) -> None:
        for row in enumerate((*labels, "all")):
            self.rows[row].update({"answers": 1, **counted})
            self.rows[row]["seconds"] += round(seconds)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        columns = list(next(iter(self.rows.values()), ()))
        yield " " * 22 + "".join(f"{column:>{_width(column)}}" for column in columns)
        for row in sorted(self.rows, key=itemgetter(0)):
            yield f"{row[1]:22}" + "".join(f"{self.rows[row][column]:>{_width(column)}}" for column in columns)


def _width(column: str) -> int:
    return max(len(column), 4) + 2
