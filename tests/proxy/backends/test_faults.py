"""An app-server that goes wrong, as a real child process: one row a fault, with what the consumer must see of it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from parser import Tool, ToolRegistry
from prompts import QuoteGuard
from proxy.aside import BesideTheLoop
from proxy.backends import supervision
from proxy.backends.codex.backend import CodexBackend
from proxy.backends.codex.options import Deadlines
from proxy.backends.restart_policy import RestartPolicy
from proxy.errors import BackendError
from proxy.rpc import RpcObject, client, stdio
from tests.support.backend_events import prompt
from tests.support.clock import Clock
from tests.support.faulty_app_server import FAULTS, REQUESTS
from tests.support.faulty_backend import FaultyAppServer, Seen, see_turn
from tests.support.patience import NEVER
from tests.support.processes import all_gone

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
    """`seen` by the first turn; `lives` is how many children it took the first two turns."""

    seen: Seen
    lives: int = 1
    deadlines: Deadlines = PATIENT
    idle_timeout: float = 300.0


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

DECLINES: Mapping[str, RpcObject] = {
    "item/commandExecution/requestApproval": {"decision": "decline"},
    "item/fileChange/requestApproval": {"decision": "decline"},
    "execCommandApproval": {"decision": "denied"},
    "applyPatchApproval": {"decision": "denied"},
    "item/permissions/requestApproval": {"permissions": {}},
    "item/tool/requestUserInput": {"answers": {}},
    "mcpServer/elicitation/request": {"action": "decline"},
    "item/tool/call": {"contentItems": [], "success": False},
    "currentTime/read": {"currentTimeAt": 0},
}

PERSISTENT = {
    # What the first turn sees is seen by the next one, too, as the child lives on with its fault.
    name
    for name, row in ROWS.items()
    if row.lives == 1 and row.seen != WHOLE
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "OVERLOAD_BACKOFF", 0.001)
    monkeypatch.setattr(client, "FLUSH_TIMEOUT", 0.1)
    monkeypatch.setattr(stdio, "EXIT_AFTER_EOF", 0.2)
    monkeypatch.setattr(stdio, "EXIT_AFTER_TERM", 0.1)
    monkeypatch.setattr(supervision, "START_WAIT", NEVER)


def test_every_fault_has_its_row() -> None:
    assert set(FAULTS) == set(ROWS)


@pytest.mark.parametrize("fault", ROWS)
async def test_a_fault_costs_its_own_turn_at_most(fault: str, tmp_path: Path, clock: Clock) -> None:
    """Also beside somebody else's flood of half blocks, which is read meanwhile."""
    row, server = ROWS[fault], FaultyAppServer(fault, tmp_path)
    async with server.backend(row.deadlines, idle_timeout=row.idle_timeout) as backend, asyncio.TaskGroup() as group:
        waiting = group.create_task(let_time_pass(server, clock), name="time")
        flooding = group.create_task(read_floods(), name="flood")
        assert await see_turn(backend) == row.seen
        assert await see_turn(backend) == (row.seen if fault in PERSISTENT else WHOLE if row.lives > 1 else row.seen)
        waiting.cancel()
        flooding.cancel()
    assert server.lives == row.lives
    await all_gone(server.pids)


async def read_floods() -> None:
    """As a server reads what calls stand in the requests of one client, without an end."""
    aside = BesideTheLoop()
    half = '<tool_call>{"name": "read_note", "arguments": {"path": "a'
    registry = ToolRegistry([Tool("read_note", None, None)])
    while True:
        guard = QuoteGuard([f"{half}\n" * 500], registry)
        assert not await aside("flood", partial(guard.is_quotation, "read_note", '{"path": "b"}'))


async def let_time_pass(server: FaultyAppServer, clock: Clock) -> None:
    """Whenever the app-server is stuck, until it is given up."""
    for times in itertools.count():
        await clock.put_forward_when(lambda: server.stuck > times, PASSED)  # noqa: B023 -- it is asked in this round


@pytest.mark.parametrize("method", REQUESTS)
async def test_what_is_asked_is_declined(method: str, tmp_path: Path) -> None:
    server = FaultyAppServer(f"asks {method}", tmp_path)
    async with server.backend() as backend:
        await see_turn(backend)
    [answer] = server.answers
    assert answer["result"] == DECLINES[method] or method == "currentTime/read"
    assert set(answer["result"]) == set(DECLINES[method])


async def test_what_is_not_served_is_refused_by_its_code(tmp_path: Path) -> None:
    server = FaultyAppServer("asks what nobody knows", tmp_path)
    async with server.backend() as backend:
        await see_turn(backend)
    assert server.answers[0]["error"]["code"] == -32601


async def test_turns_beside_a_mute_one_are_not_hurt(tmp_path: Path, clock: Clock) -> None:
    server = FaultyAppServer("turn mute after text", tmp_path)
    async with server.backend(idle_timeout=SILENCE) as backend:
        async with asyncio.TaskGroup() as group:
            turns = [group.create_task(see_turn(backend)) for _ in range(5)]
            await clock.put_forward_when(lambda: server.stuck == len(turns), PASSED)
    assert {turn.result() for turn in turns} == {broken("one ", "backend_timeout")}
    assert server.lives == 1


async def test_what_never_starts_is_tried_a_few_times_and_says_when_it_will_be_again(tmp_path: Path) -> None:
    server = FaultyAppServer("exit 0 at start:always", tmp_path)
    policy = RestartPolicy(backoff=(0.0,))
    async with server.backend(policy=policy) as backend:
        errors = [await refusal(backend) for _ in range(20)]
        health = await backend.health()
    assert {(error.status, error.code, error.message) for error in errors} == {
        (503, "backend_unavailable", health.problem)
    }
    assert all(error.retry_after is not None and 0 < error.retry_after <= 30 for error in errors)
    assert server.lives == 3


async def refusal(backend: CodexBackend) -> BackendError:
    with pytest.raises(BackendError) as failed:
        async with backend.stream(prompt()) as batches:
            await anext(batches)
    return failed.value
