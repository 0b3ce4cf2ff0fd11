"""Tests wait for events, and no machine is too slow for one: here stands how long, for them and for what they test.

A deadline of the product that is not what a test is about would fail it on a slow machine, or save it where an
event should: with `no_deadlines` it does neither. A test about a deadline sets its own, or puts the clock forward.
"""

from __future__ import annotations

from functools import partial
from pkgutil import resolve_name
from typing import Any

import pytest

from proxy import server
from proxy.backends.codex import Deadlines, SessionOptions
from proxy.ingress.connections import MAX_CONNECTIONS, Connections

# Seconds that a test waits for what is sure to come: who fails by it hangs. Less than pytest's own limit for a test,
# whose failure says less; how fast something is, `make bench` measures.
PATIENCE = 540.0

# Seconds; longer than any test.
NEVER = 3600.0

DEADLINES = (
    "proxy.backends.chat.backend.CONNECT",
    "proxy.backends.chat.backend.LOOK",
    "proxy.backends.chat.backend.TOTAL",
    "proxy.backends.chat.examination.PATIENCE",
    "proxy.backends.codex.baseline.MEASURE_TIMEOUT",
    "proxy.backends.codex.examination.GREETING",
    "proxy.backends.codex.examination.REACH",
    "proxy.backends.codex.program.ANSWER_TIMEOUT",
    "proxy.cli.doctor.NEIGHBOUR_TIMEOUT",
    "proxy.trial.PATIENCE",
    "proxy.ingress.bodies.BODY_DEADLINE",
    "proxy.ingress.event_stream.HEAD_WAIT",
    "proxy.ingress.event_stream.HEARTBEAT",
    "proxy.ingress.event_stream.SHORT_HEARTBEAT",
    "proxy.ingress.event_stream.WRITE_DEADLINE",
    "proxy.ingress.models.FIRST_WAIT",
    "proxy.ingress.spans.FAREWELL",
    "proxy.ingress.websocket.responses.HEAD_WAIT",
    "proxy.ingress.websocket.socket.PING_INTERVAL",
    "proxy.ingress.websocket.socket.WRITE_DEADLINE",
    "proxy.server.DRAIN",
    "proxy.server.FAREWELL",
    "proxy.stores.redis.DEADLINE",
    "proxy.stores.redis.WAIT",
)

# What they are outside of tests.
SHIPPED = {name: resolve_name(name) for name in DEADLINES}


def no_deadlines(patch: pytest.MonkeyPatch) -> None:
    """From now on, until `patch` is undone."""
    for name in DEADLINES:
        patch.setattr(name, NEVER)
    patch.setitem(server.HANDLING, "keepalive_timeout", NEVER)
    bound_connections(patch)


def bound_connections(
    patch: pytest.MonkeyPatch,
    *,
    limit: int = MAX_CONNECTIONS,
    share: float = 1.0,
    idle: float = NEVER,
    head_deadline: float = NEVER,
    first_byte_deadline: float = NEVER,
    unread_deadline: float = NEVER,
    most_proxied: int = MAX_CONNECTIONS,
) -> None:
    bounds: dict[str, Any] = {
        "limit": limit, "share": share, "idle": idle,
        "head_deadline": head_deadline, "first_byte_deadline": first_byte_deadline,
        "unread_deadline": unread_deadline, "most_proxied": most_proxied,
    }  # fmt: skip
    patch.setattr(server, "Connections", partial(Connections, **bounds))


def wait_for_codex(patch: pytest.MonkeyPatch) -> None:
    """For real codex programs: how long one takes to start or to answer decides nothing."""
    patch.setattr("proxy.backends.codex.backend.MODELS_WAIT", NEVER)
    patch.setattr("proxy.backends.supervision.START_WAIT", NEVER)
    patient = Deadlines(greeting=NEVER, request=NEVER, models=NEVER, quiet=NEVER, probe=NEVER)
    for module in ("backend", "options"):
        patch.setattr(f"proxy.backends.codex.{module}.SessionOptions", partial(SessionOptions, deadlines=patient))
