"""A row of the report: what tagcall took, what the floor took, what that comes to, and how far it may go."""

from __future__ import annotations

import math
from dataclasses import dataclass


def head(figure: str = "tagcall", floor: str = "floor") -> str:
    return f"{'':58}{figure:>10}{floor:>10}{'':>10}{'goal':>8}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`unit` is that of both figures, `result_unit` that of what they come to: "x" for a ratio."""

    what: str
    figure: float
    floor: float | None = None
    unit: str = ""
    result: float | None = None
    result_unit: str = ""
    goal: float = math.inf
    at_least: bool = False

    @property
    def missed(self) -> bool:
        judged = self.figure if self.result is None else self.result
        return judged < self.goal if self.at_least else judged > self.goal

    def __str__(self) -> str:
        what = f"{self.what}, {self.unit}" if self.unit else self.what
        goal = "" if math.isinf(self.goal) else f"{'>=' if self.at_least else '<='} {self.goal:g}"
        columns = (_shown(self.figure), _shown(self.floor), f"{_shown(self.result)}{self.result_unit:3}", goal)
        marked = "  missed" if self.missed else ""
        return (
            f"{what:58}"
            + "".join(f"{column:>{width}}" for column, width in zip(columns, (10, 10, 10, 8), strict=True))
            + marked
        )


def _shown(figure: float | None) -> str:
    if figure is None:
        return ""
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.3f}" if abs(figure) < 1 else f"{figure:.2f}"


def ratio(what: str, figure: float, floor: float, unit: str, goal: float = math.inf, *, at_least: bool = False) -> Row:
    return Row(
        what=what,
        figure=figure,
        floor=floor,
        unit=unit,
        result=figure / floor,
        result_unit=" x",
        goal=goal,
        at_least=at_least,
    )


def difference(what: str, figure: float, floor: float, unit: str, goal: float = math.inf) -> Row:
    return Row(
        what=what, figure=figure, floor=floor, unit=unit, result=figure - floor, result_unit=f" {unit}", goal=goal
    )
