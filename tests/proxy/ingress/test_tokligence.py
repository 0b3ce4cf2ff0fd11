"""The dialect of tokligence-gateway over HTTP, in front of a backend in memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest

from parser import write_call
from proxy.errors import BackendError
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import client, error_of
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.patience import PATIENCE
from tests.support.talking import GatedBackend, shown

ASKED = {"x-tagcall-dialect": "tokligence"}
TOOLS = [{"type": "function", "function": {"name": "read_note", "parameters": {"type": "object"}}}]
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "What is in a?"}], "tools": TOOLS}
CALL = write_call("read_note", '{"path": "a"}')
OTHER = write_call("read_note", '{"path": "b"}')


@asynccontextmanager
async def dialect(
    *answers: Script, backend: MemoryBackend | None = None, **settings: Any
) -> AsyncIterator[tuple[aiohttp.ClientSession, str, MemoryBackend]]:
    backend = backend or MemoryBackend(list(answers))
    async with (
        running_server(Settings(port=0, store="none", **settings), backend) as url,
        aiohttp.ClientSession(headers=ASKED) as session,
    ):
        yield session, url, backend


async def post(session: aiohttp.ClientSession, url: str, body: dict[str, Any], status: int = 200) -> dict[str, Any]:
    async with session.post(url, json=body) as response:
        assert response.status == status, await response.text()
        answer: dict[str, Any] = await response.json()
        return answer


async def events_of(response: aiohttp.ClientResponse) -> list[dict[str, Any]]:
    """The events of a stream, with the name of each."""
    *blocks, done, end = (await response.text()).split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    events = []
    for block in blocks:
        name, data = block.split("\n")
        event = orjson.loads(data.removeprefix("data: "))
        assert name == f"event: {event.get('type', 'ping')}"
        events.append(event)
    return events


async def stream_of(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    async with session.post(url, json={**body, "stream": True}) as response:
        assert response.content_type == "text/event-stream"
        return await events_of(response)


def outputs(answer: dict[str, Any], text: str = "beans") -> dict[str, Any]:
    calls = answer["required_action"]["submit_tool_outputs"]["tool_calls"]
    return {"tool_outputs": [{"tool_call_id": call["id"], "output": text} for call in calls]}


async def test_nobody_gets_the_dialect_who_does_not_ask_for_it() -> None:
    async with client(CALL) as (session, url):
        body = {"model": "m", "input": "hi", "tools": TOOLS, "stream": True}
        async with session.post(f"{url}/responses", json=body) as response:
            text = await response.text()
    assert "required_action" not in text
    assert "tool_call.delta" not in text
    assert "ping" not in text


@pytest.mark.parametrize("headers", [{}, {"x-tagcall-dialect": "Tokligence"}])
async def test_it_is_asked_for_by_header_or_setting(headers: dict[str, str]) -> None:
    async with client(CALL, dialect="openai" if headers else "tokligence") as (session, url):
        answer = await post_with(session, url, headers)
    assert answer["status"] == "incomplete"
    assert answer["required_action"]["type"] == "submit_tool_outputs"


async def post_with(session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> dict[str, Any]:
    async with session.post(f"{url}/responses", json=BODY, headers=headers) as response:
        answer: dict[str, Any] = await response.json()
        return answer


async def test_a_request_may_ask_for_openais_where_the_dialect_is_the_default() -> None:
    async with client("Hello", dialect="tokligence") as (session, url):
        headers = {"x-tagcall-dialect": "openai"}
        async with session.post(f"{url}/responses", json={"model": "m", "input": "hi"}, headers=headers) as response:
            assert "required_action" not in await response.json()
        async with session.post(f"{url}/responses", json=BODY, headers={"x-tagcall-dialect": "klingon"}) as response:
            assert (response.status, (await error_of(response))["param"]) == (400, "x-tagcall-dialect")


async def test_outputs_go_on_with_the_response_as_a_stream() -> None:
    async with dialect(CALL, "It says beans.") as (session, url, backend):
        asked = await stream_of(session, f"{url}/responses", BODY)
        assert [event["type"] for event in asked[-2:]] == ["response.required_action", "response.completed"]
        waiting = asked[-1]["response"]
        assert re.fullmatch("resp_[0-9]+", waiting["id"])
        submit = f"{url}/responses/{waiting['id']}/submit_tool_outputs"
        answered = await stream_of(session, submit, outputs(waiting))
        assert answered[0]["response"]["id"] == waiting["id"]
        assert answered[-1]["response"]["status"] == "completed"
        assert "".join(event["delta"] for event in answered if event["type"].endswith("text.delta")) == "It says beans."
        prompt = shown(backend)
    assert prompt.index("What is in a?") < prompt.index(CALL.partition("{")[2]) < prompt.index("beans")


@pytest.mark.parametrize("streamed", [True, False])
async def test_outputs_that_come_again_change_nothing(streamed: bool) -> None:
    async with dialect(CALL, "It says beans.") as (session, url, backend):
        waiting = await post(session, f"{url}/responses", BODY)
        submit = f"{url}/responses/{waiting['id']}/submit_tool_outputs"
        first = await post(session, submit, outputs(waiting))
        assert first["output"][0]["content"][0]["text"] == "It says beans."
        if streamed:
            events = await stream_of(session, submit, outputs(waiting))
            assert events[-1]["response"]["status"] == "completed"
        else:
            assert (await post(session, submit, outputs(waiting)))["output"][0]["content"] == first["output"][0][
                "content"
            ]
        assert len(backend.prompts) == 2


async def test_two_at_a_time_are_one() -> None:
    backend = GatedBackend([CALL, "It says beans."])
    backend.gate.set()
    async with dialect(backend=backend) as (session, url, _):
        waiting = await post(session, f"{url}/responses", BODY)
        backend.gate.clear()
        submit = f"{url}/responses/{waiting['id']}/submit_tool_outputs"
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(post(session, submit, outputs(waiting)), name=f"{n}") for n in range(2)]
            async with asyncio.timeout(PATIENCE):
                await backend.asked.wait()
            backend.gate.set()
        assert [task.result()["status"] for task in tasks] == ["completed", "completed"]
    assert len(backend.prompts) == 2


async def test_all_calls_have_to_be_answered_before_it_goes_on() -> None:
    third = write_call("read_note", '{"path": "c"}')
    async with dialect(CALL + OTHER, third, "Done.") as (session, url, backend):
        waiting = await post(session, f"{url}/responses", {**BODY, "tool_choice": "required"})
        submit = f"{url}/responses/{waiting['id']}/submit_tool_outputs"
        first, second = outputs(waiting)["tool_outputs"]
        partly = await post(session, submit, {"tool_outputs": [second]}, status=202)
        assert partly == {"status": "accepted", "missing": [first["tool_call_id"]]}
        again = await post(session, submit, {"tool_outputs": [first, second]})
        assert again["id"] == waiting["id"]
        done = await post(session, submit, outputs(again, "peas"))
        assert done["status"] == "completed", "the demand for a call was met"
    prompt = shown(backend)
    assert prompt.index("beans") < prompt.index("peas")


async def test_an_output_in_a_request_finds_its_response_by_the_call() -> None:
    async with dialect(CALL, "It says beans.") as (session, url, backend):
        waiting = await post(session, f"{url}/responses", BODY)
        call_id = outputs(waiting)["tool_outputs"][0]["tool_call_id"]
        item = {"type": "function_call_output", "call_id": call_id, "output": "beans"}
        answer = await post(session, f"{url}/responses", {"input": [item]})
        assert answer["output"][0]["content"][0]["text"] == "It says beans."
        assert "What is in a?" in shown(backend)


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 400), ({"tool_outputs": []}, 400), ({"tool_outputs": [{"tool_call_id": "call_7", "output": ""}]}, 400)],
)
async def test_outputs_that_nobody_waits_for_are_refused(body: dict[str, Any], status: int) -> None:
    async with dialect(CALL) as (session, url, _):
        waiting = await post(session, f"{url}/responses", BODY)
        refused = await post(session, f"{url}/responses/{waiting['id']}/submit_tool_outputs", body, status=status)
        assert list(refused) == ["error"]
        assert isinstance(refused["error"], str)
        await post(session, f"{url}/responses/resp_1/submit_tool_outputs", outputs(waiting), status=404)


async def test_a_response_is_not_another_keys() -> None:
    async with dialect(CALL) as (session, url, _):
        waiting = await post(session, f"{url}/responses", BODY)
        submit = f"{url}/responses/{waiting['id']}/submit_tool_outputs"
        headers = {"Authorization": "Bearer other"}
        async with session.post(submit, json=outputs(waiting), headers=headers) as response:
            assert response.status == 404


async def test_outputs_are_not_lost_with_a_turn_that_fails() -> None:
    refusal = BackendError("Slow down.", status=429, retry_after=3)
    async with dialect(CALL, refusal, "It says beans.") as (session, url, _):
        waiting = await post(session, f"{url}/responses", BODY)
        submit = f"{url}/responses/{waiting['id']}/submit_tool_outputs"
        assert await post(session, submit, outputs(waiting), status=429) == {"error": "Slow down."}
        assert (await post(session, submit, outputs(waiting)))["status"] == "completed"


async def test_a_silence_is_broken_by_pings_that_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.event_stream.SHORT_HEARTBEAT", 0.02)
    monkeypatch.setattr("proxy.ingress.event_stream.HEAD_WAIT", 0.02)
    backend = GatedBackend(["Hello"])
    async with dialect(backend=backend) as (session, url, _):
        async with session.post(f"{url}/responses?stream=true", json=BODY) as response:
            async with asyncio.timeout(PATIENCE):
                begun = await response.content.readuntil(b"event: ping\n")
            backend.gate.set()
            rest = await response.content.read()
    numbers = [int(number) for number in re.findall(rb'"sequence_number":([0-9]+)', begun + rest)]
    assert numbers == list(range(len(numbers)))


async def test_the_loop_guard_is_an_option() -> None:
    async def ask_again(session: aiohttp.ClientSession, url: str) -> list[int]:
        waiting, statuses = await post(session, f"{url}/responses", BODY), []
        for _ in range(5):
            submit = f"{url}/responses/{waiting['id']}/submit_tool_outputs"
            async with session.post(submit, json=outputs(waiting, "no")) as response:
                statuses.append(response.status)
                waiting = await response.json() if response.status == 200 else waiting
        return statuses

    calls = [write_call("read_note", f'{{"path": "{n}"}}') for n in range(6)]
    async with dialect(*calls) as (session, url, _):
        assert await ask_again(session, url) == [200] * 5
    async with dialect(*calls, loop_guard=True) as (session, url, backend):
        assert await ask_again(session, url) == [200, 200, 200, 200, 400]
        assert "were the same" in (backend.prompts[-1].developer or "")


async def test_the_oldest_responses_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.tokligence.MAX_KEPT", 1)
    async with dialect(CALL, CALL, "Done.") as (session, url, _):
        first, second = [await post(session, f"{url}/responses", BODY) for _ in range(2)]
        await post(session, f"{url}/responses/{first['id']}/submit_tool_outputs", outputs(first), status=404)
        await post(session, f"{url}/responses/{second['id']}/submit_tool_outputs", outputs(second))
