"""docs/reference/limits.md is held against the code that it describes."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path

import proxy.server
from proxy import logs
from proxy import settings as proxy_settings
from proxy.backends import event_queue, restart_policy, supervision
from proxy.backends.codex import backend, errors, lanes, options, reduction, threads
from proxy.ingress import bodies, connections, event_stream
from proxy.ingress.background import job, jobs, leases
from proxy.ingress.inspect import access, feed
from proxy.ingress.websocket import socket
from proxy.rpc import child_records, client, connection, stderr, stdio
from proxy.schema import check_budget, lark
from proxy.stores import redis_journal
from proxy.turn import offload
from proxy.wire import json_body, parameters, reader, tools

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "limits.md").read_text("utf-8")
MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        child_records, client, backend, connection, event_queue, proxy.server, restart_policy, options, stderr,
        stdio, supervision, lanes, reduction, threads, offload,
        job, jobs, leases, bodies, check_budget, lark, errors, connections, parameters, json_body, logs, proxy_settings,
        reader, redis_journal, socket, event_stream, tools, access, feed,
    )
}  # fmt: skip
ROWS = {name: float(value) for value, name in re.findall(r"\| ([\d.]+)[^|]* \| `([\w.]+)` \|", PAGE)}


def in_the_code(name: str) -> object:
    module, *path = name.split(".")
    if len(path) == 1:
        return getattr(MODULES[module], path[0])
    return signature(getattr(MODULES[module], path[0])).parameters[path[1]].default


# Read before any test: in those no deadline of the product passes.
FOUND = {name: in_the_code(name) for name in ROWS}


def test_every_number_is_the_codes() -> None:
    assert len(ROWS) > 30
    assert FOUND == ROWS


def test_every_deadline_is_on_the_page() -> None:
    for cls in (options.Deadlines, options.LaneBounds, restart_policy.RestartPolicy):
        module = cls.__module__.rpartition(".")[2]
        missing = {f"{module}.{cls.__name__}.{name}" for name in signature(cls).parameters} - set(ROWS)
        assert missing <= {f"{module}.RestartPolicy.backoff", f"{module}.RestartPolicy.jitter"}
