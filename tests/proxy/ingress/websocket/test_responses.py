"""Responses over a WebSocket, as a client meets them, in front of a backend in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI
from openai.types.responses import ResponsesServerEvent
from pydantic import TypeAdapter

from parser import write_call
from proxy.contracts import TextPiece
from proxy.errors import BackendError
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.memory_backend import USAGE, MemoryBackend
from tests.support.patience import PATIENCE
from tests.support.responses_grammar import check_events
from tests.support.sockets import Talk, socket_to, talk
from tests.support.talking import TOOLS, GatedBackend, shown

ENDS = ("response.completed", "response.failed", "response.incomplete", "error")
EVENT: TypeAdapter[Any] = TypeAdapter(ResponsesServerEvent)
CALL = write_call("read_note", '{"path": "a"}')


async def ask(socket: Talk, text: str | list[Any] = "hi", **members: Any) -> list[dict[str, Any]]:
    await socket.say("response.create", **{"model": "m", "input": text, **members})
    return await socket.hear_until(*ENDS)


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


def output_of(call: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function_call_output", "call_id": call["call_id"], "output": "beans"}]


async def test_the_frames_are_the_events_of_the_stream_and_nothing_behind_them() -> None:
    async with socket_to("/responses", "Hello", "Again") as (socket, _):
        first = await ask(socket)
        second = await ask(socket)
    for events, text in ((first, "Hello"), (second, "Again")):
        assert check_events(events)["status"] == "completed"
        assert text_of(events) == text
        for event in events:
            EVENT.validate_python(event)
            assert "stream_id" not in event


@pytest.mark.parametrize("store", ["memory", "none"])
async def test_a_tool_loop_goes_on_with_the_new_items_alone_although_nothing_is_stored(store: str) -> None:
    async with socket_to("/responses", CALL, "It says beans.", store=store) as (socket, backend):
        asked = (await ask(socket, "What is in a?", store=False, tools=TOOLS))[-1]["response"]
        again = {"previous_response_id": asked["id"], "store": False}
        answered = await ask(socket, output_of(asked["output"][0]), **again)
        assert text_of(answered) == "It says beans."
        prompt = shown(backend)
    assert prompt.index("What is in a?") < prompt.index(CALL) < prompt.index("beans")


async def test_on_another_connection_what_was_not_stored_is_gone() -> None:
    async with running_server(Settings(port=0, store="memory"), MemoryBackend(["One", "Two", "Three"])) as url:
        async with talk(url, "/responses") as socket:
            unstored = (await ask(socket, store=False))[-1]["response"]["id"]
            stored = (await ask(socket))[-1]["response"]["id"]
        async with talk(url, "/responses") as socket:
            (error,) = await ask(socket, previous_response_id=unstored)
            assert (error["status"], error["error"]["code"]) == (400, "previous_response_not_found")
            assert text_of(await ask(socket, previous_response_id=stored)) == "Three"


async def test_a_warm_up_says_nothing_and_can_be_continued() -> None:
    async with socket_to("/responses", "Hello") as (socket, backend):
        warm = await ask(socket, [{"role": "developer", "content": "Be kind."}], generate=False, store=False)
        assert [event["type"] for event in warm] == ["response.created", "response.in_progress", "response.completed"]
        final = check_events(warm)
        assert (final["output"], final["usage"]["total_tokens"]) == ([], 0)
        assert backend.prompts == []
        await ask(socket, previous_response_id=final["id"], store=False)
        assert "Be kind." in (backend.prompts[0].developer or "")


async def test_what_prepares_the_cache_is_a_warm_up() -> None:
    async with socket_to("/responses", "Hello") as (socket, backend):
        warm = await ask(socket, prompt_cache_options={"prewarm": True})
        assert check_events(warm)["output"] == []
        assert backend.prompts == []


async def test_a_continuation_that_fails_takes_with_it_what_it_continued() -> None:
    async with socket_to("/responses", CALL, history="strict") as (socket, _):
        asked = (await ask(socket, store=False, tools=TOOLS))[-1]["response"]["id"]
        (error,) = await ask(socket, "no output", previous_response_id=asked)
        assert error["status"] == 400
        assert "No tool output found" in error["error"]["message"]
        (error,) = await ask(socket, "again", previous_response_id=asked)
        assert error["error"]["code"] == "previous_response_not_found"


async def test_a_turn_that_fails_evicts_as_well_and_the_connection_goes_on() -> None:
    refusal = BackendError("Slow down.", status=429, code="rate_limit_exceeded", retry_after=3)
    async with socket_to("/responses", "One", refusal, "Three") as (socket, _):
        first = (await ask(socket, store=False))[-1]["response"]["id"]
        (error,) = await ask(socket, previous_response_id=first, store=False)
        assert (error["status"], error["error"]["code"]) == (429, "rate_limit_exceeded")
        assert error["headers"] == error["error"]["headers"] == {"retry-after": "3"}
        (error,) = await ask(socket, previous_response_id=first)
        assert error["error"]["code"] == "previous_response_not_found"
        assert text_of(await ask(socket)) == "Three"


async def test_a_failure_in_mid_answer_ends_with_response_failed() -> None:
    async with socket_to("/responses", [TextPiece("Half"), BackendError("Gone.")], "Two") as (socket, _):
        events = await ask(socket)
        assert check_events(events)["status"] == "failed"
        assert text_of(events) == "Half"
        assert text_of(await ask(socket)) == "Two"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"type": "response.create"}, "missing_required_parameter"),
    ({"type": "response.create", "model": "m", "input": 3}, "invalid_type"),
    ({"type": "response.create", "model": "m", "input": "hi", "background": True}, "unsupported_parameter"),
    ({"type": "response.dance"}, "invalid_value"),
    ({}, "missing_required_parameter"),
    ({"type": "response.steer"}, "missing_required_parameter"),
    ({"type": "response.create", "model": "m", "input": [], "tool_choice": "required"}, "invalid_request_error"),
]


@pytest.mark.parametrize(("message", "code"), BAD)
async def test_what_is_wrong_with_a_message_is_told_with_a_status_and_the_next_is_read(
    message: dict[str, Any], code: str
) -> None:
    async with socket_to("/responses", "Hello") as (socket, _):
        await socket.socket.send_json(message)
        error = await socket.hear()
        assert error["type"] == "error"
        assert (error["status"], error["error"]["code"]) == (400, code)
        assert set(error["error"]) == {"message", "type", "param", "code"}
        assert text_of(await ask(socket)) == "Hello"


async def test_what_only_prepares_the_next_needs_no_input() -> None:
    async with socket_to("/responses", "Hello") as (socket, _):
        prepared = (await ask(socket, [], generate=False))[-1]["response"]
        assert text_of(await ask(socket, previous_response_id=prepared["id"])) == "Hello"


@pytest.mark.parametrize("text", ["", "nothing", "[1]", "\ufeff{}", '{"type":' + "[" * 70 + "]" * 70 + "}"])
async def test_what_is_no_message_is_told_too(text: str) -> None:
    async with socket_to("/responses", "Hello") as (socket, _):
        await socket.socket.send_str(text)
        error = await socket.hear()
        assert (error["type"], error["status"]) == ("error", 400)
        assert isinstance(error["error"]["code"], str)
        assert text_of(await ask(socket)) == "Hello"


async def test_steering_is_refused_with_its_input_and_what_codex_reports_is_passed_over() -> None:
    async with socket_to("/responses", "Hello") as (socket, _):
        await socket.say("response.processed", response_id="resp_1")
        await socket.say("response.steer", previous_response_id="resp_1", input="faster")
        event = await socket.hear()
        EVENT.validate_python(event)
        assert event["type"] == "response.steer.failed"
        assert event["error"]["code"] == "steering_not_supported"
        assert event["steer"] == {"previous_response_id": "resp_1", "input": "faster"}


async def test_one_response_is_made_at_a_time_and_the_others_wait() -> None:
    backend = GatedBackend(["One", "Two"])
    async with socket_to("/responses", backend=backend) as (socket, _):
        for text in ("first", "second"):
            await socket.say("response.create", model="m", input=text)
        await socket.hear_until("response.output_text.delta")
        assert len(backend.prompts) == 1
        backend.gate.set()
        rest = [*await socket.hear_until("response.completed"), *await socket.hear_until("response.completed")]
    assert text_of(socket.received) == "OneTwo"
    created = [event["sequence_number"] for event in rest if event["type"] == "response.created"]
    assert created == [0], "each response counts its own events"


async def test_streams_run_beside_each_other_and_name_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.websocket.responses.MAX_STREAMS", 2)
    backend = GatedBackend(["One", "Two"])
    async with socket_to("/responses", backend=backend) as (socket, _):
        for stream in ("a", "b", "c"):
            await socket.say("response.create", model="m", input="hi", stream_id=stream)
        error = (await socket.hear_until("error"))[-1]
        assert (error["stream_id"], error["status"]) == ("c", 429)
        assert error["error"]["code"] == "websocket_stream_limit_reached"
        backend.gate.set()
        while sum(event["type"] == "response.completed" for event in socket.received) < 2:
            await socket.hear()
    for stream in ("a", "b"):
        assert check_events([event for event in socket.received if event["stream_id"] == stream])


async def test_more_than_a_few_waiting_requests_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.websocket.responses.MAX_QUEUED", 2)
    backend = GatedBackend(["One", "Two", "Three"])
    async with socket_to("/responses", backend=backend) as (socket, _):
        await socket.say("response.create", model="m", input="hi")
        await socket.hear_until("response.output_text.delta")
        for _ in range(3):
            await socket.say("response.create", model="m", input="hi")
        error = (await socket.hear_until("error"))[-1]
        assert (error["status"], error["error"]["code"]) == (429, "rate_limit_exceeded")


async def test_an_item_is_found_again_on_its_connection() -> None:
    async with socket_to("/responses", "Remember beans.", "Yes.", store="none") as (socket, backend):
        item = (await ask(socket, store=False))[-1]["response"]["output"][0]
        await ask(socket, [{"type": "item_reference", "id": item["id"]}, {"role": "user", "content": "And?"}])
        assert "Remember beans." in shown(backend)


async def test_a_late_first_word_does_not_hold_the_opening_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.websocket.responses.HEAD_WAIT", 0.01)

    class Slow(GatedBackend):
        async def _gated(self, batches: Any) -> Any:
            await self.gate.wait()
            async for batch in batches:
                yield batch

    backend = Slow(["Hello"])
    async with socket_to("/responses", backend=backend) as (socket, _):
        await socket.say("response.create", model="m", input="hi")
        opening = [await socket.hear(), await socket.hear()]
        backend.gate.set()
        assert check_events([*opening, *await socket.hear_until("response.completed")])


async def test_a_fault_of_ours_is_told_without_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    async with socket_to("/responses", "Hello", "Hello") as (socket, _):
        monkeypatch.setattr("proxy.ingress.websocket.responses.keep", fail)
        assert (await ask(socket))[-1]["type"] == "response.failed"
        monkeypatch.setattr("proxy.ingress.websocket.responses.begin_draft", fail)
        (error,) = await ask(socket)
        assert error["status"] == 500
    assert "ZeroDivision" not in str(socket.received)


async def test_a_conversation_has_one_request_at_a_time_on_sockets_as_well() -> None:
    backend = GatedBackend(["One"])
    async with (
        running_server(Settings(port=0, store="memory"), backend) as url,
        AsyncOpenAI(base_url=url, api_key="k") as client,
        aiohttp.ClientSession(headers={"Authorization": "Bearer k"}) as session,
        session.ws_connect(f"{url}/responses") as socket,
    ):
        conversation = await client.conversations.create()
        both = Talk(socket)
        for stream in ("a", "b"):
            await both.say("response.create", model="m", input="hi", conversation=conversation.id, stream_id=stream)
        error = (await both.hear_until("error"))[-1]
        assert error["error"]["code"] == "conversation_locked"
        backend.gate.set()
        await both.hear_until("response.completed")
        items = await client.conversations.items.list(conversation.id)
        assert len(items.data) == 2


async def test_openai_pythons_own_connection_is_served() -> None:
    async with (
        running_server(Settings(port=0, store="memory"), MemoryBackend(["Hello"])) as url,
        AsyncOpenAI(base_url=url, api_key="k") as client,
        client.responses.connect() as connection,
    ):
        await connection.response.create(model="m", input="hi")
        async with asyncio.timeout(PATIENCE):
            async for event in connection:
                if event.type == "response.completed":
                    assert event.response.usage is not None
                    assert event.response.usage.input_tokens == USAGE.input_tokens
                    return


# What a connection remembers


@pytest.mark.parametrize(("name", "limit"), [("MAX_RECENT", 1), ("MAX_RECENT_BYTES", 1_500)])
@pytest.mark.parametrize("kept", [True, False])
async def test_the_oldest_that_it_remembers_goes_first_and_is_found_where_it_was_stored(
    monkeypatch: pytest.MonkeyPatch, name: str, limit: int, kept: bool
) -> None:
    monkeypatch.setattr(f"proxy.ingress.websocket.responses.{name}", limit)
    async with socket_to("/responses", "x" * 800, "y" * 800, "z" * 800, "Four", store="memory") as (socket, _):
        first, second = [(await ask(socket, store=kept))[-1]["response"]["id"] for _ in range(2)]
        assert text_of(await ask(socket, previous_response_id=second, store=False)) == "z" * 800
        end = (await ask(socket, previous_response_id=first))[-1]
        assert end.get("error", {}).get("code") == (None if kept else "previous_response_not_found")


async def test_an_item_is_found_as_long_as_one_response_with_it_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.websocket.responses.MAX_RECENT", 1)
    async with socket_to("/responses", "Remember beans.", "Yes.", "So.", "New.", store="none") as (socket, backend):
        first = (await ask(socket))[-1]["response"]
        refer = [{"type": "item_reference", "id": first["output"][0]["id"]}, {"role": "user", "content": "And?"}]
        # In each of these it stands too, and the one before is forgotten.
        for text in ("Yes.", "So."):
            assert text_of(await ask(socket, refer)) == text
            assert "Remember beans." in str(backend.prompts[-1].parts)
        await ask(socket, "Something else.")
        (error,) = await ask(socket, refer)
        assert error["status"] == 404
