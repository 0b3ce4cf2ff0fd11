"""An app-server that goes wrong, as a real child process: one row a fault, with what the consumer must see of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from proxy.backends.codex import RestartPolicy
from proxy.contracts import TextBackend
from proxy.errors import BackendError
from proxy.rpc import RpcObject
from tests.support.backend_events import prompt
from tests.support.clock import Clock
from tests.support.fault_rows import PASSED, ROWS, SILENCE, broken, hurry, let_time_pass
from tests.support.faulty_app_server import FAULTS, REQUESTS
from tests.support.faulty_backend import FaultyAppServer, see_turn
from tests.support.processes import all_gone

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


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def test_every_fault_has_its_row() -> None:
    assert set(FAULTS) == set(ROWS)


@pytest.mark.parametrize("fault", ROWS)
async def test_a_fault_costs_its_own_turn_at_most(fault: str, tmp_path: Path, clock: Clock) -> None:
    row, server = ROWS[fault], FaultyAppServer(fault, tmp_path)
    async with server.backend(row.deadlines, idle_timeout=row.idle_timeout) as backend, asyncio.TaskGroup() as group:
        waiting = group.create_task(let_time_pass(server, clock), name="time")
        assert await see_turn(backend) == row.seen
        assert await see_turn(backend) == row.seen_next
        waiting.cancel()
    assert server.lives == row.lives
    await all_gone(server.pids)


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


async def refusal(backend: TextBackend) -> BackendError:
    with pytest.raises(BackendError) as failed:
        async with backend.stream(prompt()) as batches:
            await anext(batches)
    return failed.value
