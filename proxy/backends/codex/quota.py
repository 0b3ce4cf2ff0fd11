"""Pure: the quota of the account, put together from codex's messages.

    account/rateLimits/read      all limits, where the login is a ChatGPT account; an API key has none
    account/rateLimits/updated   after each request to the model one limit, by the headers of its answer

An update leaves out what the answer's headers did not have. That part stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ...quota import MAIN_LIMIT, Quota, QuotaWindow, WindowName
from ...rpc import RpcObject

READ = "account/rateLimits/read"
UPDATED = "account/rateLimits/updated"

WINDOWS: tuple[WindowName, ...] = ("primary", "secondary")

# Limits that are kept; one each for a few models is usual.
MOST_LIMITS = 16


class QuotaBook:
    """What the app-server has told, over all its processes. Nothing it may say raises."""

    def __init__(self) -> None:
        self._limits: dict[str, Quota] = {}
        self._account: object = None

    @property
    def limits(self) -> tuple[Quota, ...]:
        """The main one first."""
        return tuple(sorted(self._limits.values(), key=lambda quota: (quota.limit != MAIN_LIMIT, quota.limit)))

    def belongs_to(self, account: object) -> None:
        """Forgets all when this is another account than before."""
        if account != self._account:
            self._limits.clear()
        self._account = account

    def take(self, told: RpcObject, now: float) -> None:
        """The answer to `READ`: what it does not name is no more."""
        self._limits.clear()
        by_id = told.get("rateLimitsByLimitId")
        for snapshot in [told.get("rateLimits"), *(by_id.values() if isinstance(by_id, Mapping) else ())]:
            self._merge(snapshot, now)

    def hear(self, told: RpcObject, now: float) -> None:
        """`UPDATED`."""
        self._merge(told.get("rateLimits"), now)

    def _merge(self, snapshot: object, now: float) -> None:
        if not isinstance(snapshot, Mapping):
            return
        limit = _text(snapshot.get("limitId")) or MAIN_LIMIT  # old versions know of one limit
        known = self._limits.get(limit, Quota(limit, (), now))
        told, balance, reached = tuple(_windows(snapshot)), _balance(snapshot.get("credits")), _reached(snapshot)
        if not told and reached is None and balance in {None, known.credits or ""}:
            return  # what codex sends when the answer had no such headers
        if limit not in self._limits and len(self._limits) >= MOST_LIMITS:
            return
        windows = {window.name: window for window in (*known.windows, *told)}
        self._limits[limit] = replace(
            known,
            windows=tuple(windows.values()),
            told_at=now,
            name=_text(snapshot.get("limitName")) or known.name,
            plan=_text(snapshot.get("planType")) or known.plan,
            credits=known.credits if balance is None else balance or None,
            reached=reached if told else reached or known.reached,
        )


def _windows(snapshot: Mapping[str, Any]) -> Iterator[QuotaWindow]:
    for name in WINDOWS:
        window = _object(snapshot.get(name))
        used = window.get("usedPercent")
        if isinstance(used, int | float):
            minutes, end = _number(window.get("windowDurationMins")), _number(window.get("resetsAt"))
            yield QuotaWindow(name, _percent(used), minutes, end)
    share = _object(snapshot.get("individualLimit"))
    left = share.get("remainingPercent")
    if isinstance(left, int | float):
        yield QuotaWindow("individual", 100 - _percent(left), None, _number(share.get("resetsAt")))


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _percent(value: float) -> int:
    return round(min(max(0, value), 100))  # in this order nothing is no number


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _text(value: object) -> str | None:
    """What is shown and kept of a name."""
    return value[:100] if isinstance(value, str) and value else None


def _balance(told: object) -> str | None:
    """That of the credits, empty where there are none; None where nothing is told."""
    credit = _object(told)
    if credit.get("unlimited") is True:
        return "unlimited"
    match credit.get("hasCredits"):
        case True:
            return _text(credit.get("balance")) or "some"
        case False:
            return ""
        case _:
            return None


def _reached(snapshot: Mapping[str, Any]) -> str | None:
    if snapshot.get("spendControlReached") is True:
        return "spend_control_reached"
    return _text(snapshot.get("rateLimitReachedType"))
