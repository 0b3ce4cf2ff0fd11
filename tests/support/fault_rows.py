"""What is seen of each row of `FAULTS`, whoever looks at it: the consumer of the backend, or a client of the server."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from proxy.backends import supervision
from proxy.backends.codex import Deadlines
from proxy.rpc import client, stdio

from .clock import Clock
from .faulty_app_server import REQUESTS
from .faulty_backend import FaultyAppServer, Seen
from .patience import NEVER

PATIENT = Deadlines()
# An app-server that is stuck is given up soon once it is doubted.
DOUBTFUL = Deadlines(interrupt=0.02, probe=0.2)
# Seconds of a turn's silence, and what the clock is put forward by when the app-server is stuck: past all deadlines
# but those of a whole turn and of turns that may be silent for long.
SILENCE, PASSED = 20.0, 40.0
WHOLE = Seen("one two", "ended")


def lost(text: str) -> Seen:
    return Seen(text, "backend_disconnected")


def broken(text: str, code: str = "backend_error") -> Seen:
    return Seen(text, code)


@dataclass(frozen=True, slots=True)
class Row:
    """`seen` by the first turn; `lives` is how many children the first two turns took."""

    seen: Seen
    lives: int = 1
    deadlines: Deadlines = PATIENT
    idle_timeout: float = 300.0

    @property
    def seen_next(self) -> Seen:
        """By the second turn: a child that lives on goes on with its fault."""
        return self.seen if self.lives == 1 else WHOLE


ROWS: Mapping[str, Row] = {
    "none": Row(WHOLE),
    "killed at start": Row(WHOLE, 2),
    "exit 0 at start": Row(WHOLE, 2),
    "killed at initialize": Row(WHOLE, 2),
    "killed at account": Row(WHOLE, 2),
    "killed at thread": Row(WHOLE, 2),
    "killed at turn": Row(WHOLE, 2),
    "killed before text": Row(WHOLE, 2),
    "killed after text": Row(lost("one "), 2),
    "killed before end": Row(lost("one two"), 2),
    "killed after end": Row(WHOLE, 2),
    "exit 0 at thread": Row(WHOLE, 2),
    "exit 0 before text": Row(WHOLE, 2),
    "exit 0 after text": Row(lost("one "), 2),
    "hangs at initialize": Row(WHOLE, 2),
    "hangs at thread": Row(WHOLE, 2, DOUBTFUL),
    "hangs at turn": Row(WHOLE, 2, DOUBTFUL),
    "loses the answer to thread": Row(WHOLE, 2),
    "loses the answer to turn and its lines": Row(WHOLE, 2),
    "loses the answer to turn": Row(WHOLE),
    "answers turn last": Row(WHOLE),
    "hangs before text": Row(broken("", "backend_timeout"), 2, DOUBTFUL, SILENCE),
    "hangs after text": Row(broken("one ", "backend_timeout"), 2, DOUBTFUL, SILENCE),
    "turn mute before text": Row(broken("", "backend_timeout"), idle_timeout=SILENCE),
    "turn mute after text": Row(broken("one ", "backend_timeout"), idle_timeout=SILENCE),
    # Long before the idle timeout: not a line of the whole app-server, and no answer to a probe.
    "reads no more": Row(lost("one "), 2, DOUBTFUL),
    "reads nothing": Row(WHOLE, 2),
    "closes stdout before text": Row(WHOLE, 2),
    "closes stdout after text": Row(lost("one "), 2),
    "deaf": Row(lost("one "), 2, DOUBTFUL),
    "result without a thread": Row(broken("")),
    "result without a turn": Row(broken("")),
    "garbage": Row(WHOLE),
    "invalid UTF-8": Row(WHOLE),
    "half a line, then killed": Row(WHOLE, 2),
    "half a line after text, then killed": Row(lost("one "), 2),
    "half a line, then the rest": Row(WHOLE),
    "10 MB of text": Row(Seen("x" * 10_000_000, "ended")),
    "10 MB of junk": Row(WHOLE),
    "65 MiB of junk": Row(WHOLE),
    "lines of others and late ones": Row(WHOLE),
    "lines twice": Row(WHOLE),
    "stderr flood": Row(WHOLE),
    "retry before text": Row(WHOLE),
    "retry before text, another item": Row(WHOLE),
    "retry after text": Row(broken("one ")),
    "retry after text, another item": Row(broken("one ")),
    "retry after text, unannounced": Row(broken("one ")),
    "retry after text, unannounced, another item": Row(broken("one ")),
    "retry after the message": Row(broken("one two")),
    **{f"asks {method}": Row(WHOLE) for method in REQUESTS},
    "asks what nobody knows": Row(WHOLE),
    "asks what nobody knows and hangs": Row(broken("", "backend_not_text_only"), 1, Deadlines(refusal=0.1)),
    "overloaded at thread": Row(WHOLE),
    "overloaded at turn": Row(WHOLE),
    "overloaded for ever": Row(broken("", "server_is_overloaded")),
}


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a child may take to leave, and what is waited for between two tries."""
    monkeypatch.setattr(client, "OVERLOAD_BACKOFF", 0.001)
    monkeypatch.setattr(client, "FLUSH_TIMEOUT", 0.1)
    monkeypatch.setattr(stdio, "EXIT_AFTER_EOF", 0.2)
    monkeypatch.setattr(stdio, "EXIT_AFTER_TERM", 0.1)
    monkeypatch.setattr(supervision, "START_WAIT", NEVER)


async def let_time_pass(server: FaultyAppServer, clock: Clock) -> None:
    """Whenever the app-server is stuck, until it is given up."""
    for times in itertools.count():
        await clock.put_forward_when(lambda: server.stuck > times, PASSED)  # noqa: B023 -- it is asked in this round
