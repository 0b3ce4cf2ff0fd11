"""When a backend that ended may start again. Pure: times come in as numbers of seconds.

    closed --3 starts in vain, or 5 ends within a minute--> open --after 30 s--> half open: one start
      ^                                                       ^                       |
      '----------------- it proved itself --------------------|-----------------------+
                                                              '---- it did not -------'

While it is closed, a pause precedes each start. It grows with the failures in a row. A session that completed a turn,
or lasted, has proved itself, and its end is no failure. So nobody waits because a backend is killed now and then, and a
backend that cannot do its work is soon left alone.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence

from msgspec import Struct


class RestartPolicy(Struct, frozen=True, kw_only=True):
    """Seconds and counts."""

    backoff: Sequence[float] = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
    """Before the next start, by the number of failures in a row."""
    jitter: float = 0.2
    """As a part of the pause, to either side."""
    steady: float = 60.0
    """That a session must have lasted to have proved itself."""
    ends: int = 5
    ends_within: float = 60.0
    starts_in_vain: int = 3
    open_for: float = 30.0
    """Without any start."""


class Pause(Struct, frozen=True):
    """Before the next start. `broken`: the breaker is open."""

    seconds: float
    broken: bool = False


class RestartHistory:
    def __init__(self, policy: RestartPolicy, jitter: Callable[[float, float], float] = random.uniform) -> None:
        self._policy = policy
        self._jitter = jitter
        self._ends: deque[float] = deque()
        self._in_vain = 0
        self._failures = 0
        self._half_open = False

    def failed_to_start(self) -> Pause:
        self._in_vain += 1
        return self._failed(too_many=self._in_vain >= self._policy.starts_in_vain)

    def ended(self, now: float, *, lasted: float, proven: bool) -> Pause:
        """A session that had started has ended, or is worn out."""
        self._in_vain = 0
        if proven or lasted >= self._policy.steady:
            self._failures = 0
            self._half_open = False
            self._ends.clear()
            return Pause(0.0)
        self._ends.append(now)
        while self._ends[0] < now - self._policy.ends_within:
            self._ends.popleft()
        return self._failed(too_many=len(self._ends) >= self._policy.ends)

    def _failed(self, *, too_many: bool) -> Pause:
        self._failures += 1
        if too_many or self._half_open:
            self._half_open = True
            return Pause(self._policy.open_for, broken=True)
        backoff, jitter = self._policy.backoff, self._policy.jitter
        seconds = backoff[min(self._failures, len(backoff)) - 1]
        return Pause(seconds * self._jitter(1 - jitter, 1 + jitter))
