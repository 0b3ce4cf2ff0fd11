"""The limits of a key per minute: requests, and tokens of its turns, counted in this process.

A limit refills evenly. A turn may begin as long as anything is left, because nobody knows beforehand what it takes.
What it took is counted at its end, and the next turns wait for that.

The same headers tell a backend's quota. It counts in percent, so its limit is 100.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from aiohttp import web
from msgspec import Struct

from ..contracts import Usage
from ..errors import RequestError
from ..quota import MAIN_LIMIT, Quota, QuotaWindow
from .key_ring import KeyRing

Unit: TypeAlias = Literal["requests", "tokens"]

# As OpenAI's sentence names them.
IN_WORDS = {"requests": "requests per min (RPM)", "tokens": "tokens per min (TPM)"}

# Seconds.
MINUTE = 60.0


class Bucket(Struct):
    """`left` of `most`, as it was `at` a moment."""

    most: int
    left: float
    at: float

    def fill(self, most: int, now: float) -> None:
        """What has come back until now. Another limit than before holds at once."""
        self.left = min(float(most), self.left + (most - self.most) + (now - self.at) * most / MINUTE)
        self.most, self.at = most, now

    def seconds_until(self, left: float) -> float:
        return max(0.0, (left - self.left) * MINUTE / self.most)


class RateLimits:
    def __init__(self, keys: KeyRing, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._buckets: dict[tuple[str, Unit], Bucket] = {}

    def _filled(self, owner: str) -> Iterator[tuple[Unit, Bucket]]:
        """The buckets of an owner whose key has limits, as they are now."""
        if (key := self._keys.of(owner)) is None:
            return
        limits: tuple[tuple[Unit, int | None], ...] = (("requests", key.requests), ("tokens", key.tokens))
        for unit, most in limits:
            if most is not None:
                now = self._clock()
                bucket = self._buckets.setdefault((owner, unit), Bucket(most, most, now))
                bucket.fill(most, now)
                yield unit, bucket

    def take(self, owner: str) -> None:
        """One request more. Raises `RequestError` when a limit of its key has nothing left."""
        buckets = dict(self._filled(owner))
        for unit, bucket in buckets.items():
            if bucket.left < 1:
                raise _reached(unit, bucket)
        if (requests := buckets.get("requests")) is not None:
            requests.left -= 1

    def spend(self, owner: str, usage: Usage) -> None:
        """What a turn has taken."""
        for unit, bucket in self._filled(owner):
            if unit == "tokens":
                bucket.left -= usage.input_tokens + usage.output_tokens

    def headers(self, owner: str, quota: Sequence[Quota] = (), now: float = 0.0) -> dict[str, str]:
        """How it stands with the limits of the key, and with the backend's quota in place of its requests where less is
        left of that. Nothing where there is neither. `now` is in seconds since 1970.
        """
        told: dict[str, str] = {}
        window = _scarcest(quota)
        for unit, bucket in self._filled(owner):
            if unit == "requests" and window is not None:
                if window.left_percent < 100 * bucket.left / bucket.most:
                    continue
                window = None
            told |= _told(unit, bucket.most, int(bucket.left), bucket.seconds_until(bucket.most))
        if window is not None:
            ends_in = None if window.resets_at is None else max(0.0, window.resets_at - now)
            told |= _told("requests", 100, window.left_percent, ends_in)
        return told


def _scarcest(quota: Sequence[Quota]) -> QuotaWindow | None:
    """That of the main limit of which the least is left."""
    windows = [window for each in quota if each.limit == MAIN_LIMIT for window in each.windows]
    return min(windows, key=lambda window: window.left_percent, default=None)


def _told(unit: Unit, most: int, left: int, reset: float | None) -> dict[str, str]:
    ends = {} if reset is None else {f"x-ratelimit-reset-{unit}": _duration(reset)}
    return {f"x-ratelimit-limit-{unit}": str(most), f"x-ratelimit-remaining-{unit}": str(max(0, left)), **ends}


def _reached(unit: Unit, bucket: Bucket) -> RequestError:
    wait = bucket.seconds_until(1)
    used = bucket.most - max(0, int(bucket.left))
    return RequestError(
        f"Rate limit reached for this key on {IN_WORDS[unit]}: Limit {bucket.most}, Used {used}, Requested 1. Please "
        f"try again in {_duration(wait)}.",
        status=429,
        type=unit,
        code="rate_limit_exceeded",
        retry_after=wait,
    )


def _duration(seconds: float) -> str:
    """As OpenAI writes it: `340ms`, `12.5s`, `1m30s`, `4h0m5s`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(round(seconds, 1), MINUTE)
    if minutes >= 60:
        hours, minutes = divmod(minutes, 60)
        return f"{hours:.0f}h{minutes:.0f}m{rest:g}s"
    return f"{minutes:.0f}m{rest:g}s" if minutes else f"{rest:g}s"


RATE_LIMITS = web.AppKey("rate_limits", RateLimits)
