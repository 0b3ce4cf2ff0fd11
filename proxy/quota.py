"""The rest of an account's quota, as its service last reported it, and the words for a person.

A service counts in several windows of time at once. When one is used up, turns are refused until it begins anew, unless
there are credits. Nothing is inferred from the time that has passed since the report.
"""

from __future__ import annotations

import time
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

# The short window, the long one, and a member's share of what a workspace may spend.
WindowName: TypeAlias = Literal["primary", "secondary", "individual"]

# The limit of most models; others have their own.
MAIN_LIMIT = "codex"


class QuotaWindow(Struct, frozen=True):
    """`used_percent` from 0 to 100. `minutes` is its length and `resets_at` its end, in seconds since 1970."""

    name: WindowName
    used_percent: int
    minutes: int | None = None
    resets_at: int | None = None

    @property
    def left_percent(self) -> int:
        return 100 - self.used_percent


class Quota(Struct, frozen=True):
    """One limit. `credits` is the balance in the service's own words, None where there is none.

    `reached` is the service's word for what ends the account's turns. `told_at` is in seconds since 1970.
    """

    limit: str
    windows: tuple[QuotaWindow, ...]
    told_at: float
    name: str | None = None
    plan: str | None = None
    credits: str | None = None
    reached: str | None = None

    @property
    def exhausted(self) -> bool:
        """Whether turns are refused, by what was told."""
        if self.reached not in {None, "rate_limit_reached"}:
            return True
        used_up = {window.name for window in self.windows if not window.left_percent}
        return "individual" in used_up or ((bool(used_up) or self.reached is not None) and self.credits is None)

    def as_json(self) -> dict[str, object]:
        windows = [{**asdict(window), "left_percent": window.left_percent} for window in self.windows]
        return {**asdict(self), "windows": windows, "exhausted": self.exhausted}

    def in_words(self) -> str:
        """As `57 % left of 5 hours (until 18:40), plan plus`, in this machine's time."""
        windows = [_in_words(window) for window in self.windows]
        plan = [f"plan {self.plan}"] if self.plan else []
        balance = [f"credits {self.credits}"] if self.credits else []
        reached = [self.reached.replace("_", " ")] if self.reached else []
        return ", ".join(windows + reached + plan + balance)


def _in_words(window: QuotaWindow) -> str:
    until = "" if window.resets_at is None else f" (until {_clock_time(window.resets_at)})"
    return f"{window.left_percent} % left of {_length(window)}{until}"


def _length(window: QuotaWindow) -> str:
    if window.minutes is None:
        return f"the {window.name} limit"
    size, unit = next(
        (size, unit)
        for size, unit in ((1440, "day"), (60, "hour"), (1, "minute"))
        if window.minutes >= size or size == 1
    )
    count = round(window.minutes / size)
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _clock_time(moment: int) -> str:
    far = moment - time.time() > 20 * 3600
    try:
        return time.strftime("%d %b %H:%M" if far else "%H:%M", time.localtime(moment))
    except (OverflowError, ValueError, OSError):  # no date of a calendar
        return "some day"
