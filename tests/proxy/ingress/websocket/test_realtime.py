"""Realtime in text, as a client meets it, in front of a backend in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.beta.realtime import RealtimeServerEvent as BetaEvent
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from parser import write_call
from proxy.contracts import TextPiece, TurnEnded
from proxy.errors import BackendError
from tests.support.http_client import client, error_of
from tests.support.memory_backend import USAGE
from tests.support.sockets import Talk, socket_to
from tests.support.talking import GatedBackend, shown

PATH = "/realtime?model=gpt-realtime"
BETA = {"OpenAI-Beta": "realtime=v1"}
TOOLS = [{"type": "function", "name": "read_note", "description": "Read it.", "parameters": {"type": "object"}}]
CALL = write_call("read_note", '{"path": "a"}')
OTHER = write_call("read_note", '{"path": "b"}')

GA_EVENT: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
BETA_EVENT: TypeAdapter[Any] = TypeAdapter(BetaEvent)


async def set_up(socket: Talk, **session: Any) -> dict[str, Any]:
    """The session after `session.update`."""
    assert (await socket.hear())["type"] == "session.created"
    await socket.say("session.update", session={"type": "realtime", "tools": TOOLS, **session})
    updated = await socket.hear()
    assert updated["type"] == "session.updated", updated
    return dict(updated["session"])


async def add(socket: Talk, item: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The item as the conversation has it, or the error."""
    await socket.say("conversation.item.create", item=item, **members)
    event = (await socket.hear_until("conversation.item.done", "conversation.item.created", "error"))[-1]
    return dict(event.get("item") or event["error"])


def message(text: str, role: str = "user") -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def output(call: dict[str, Any], text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": text}


async def respond(socket: Talk, **response: Any) -> dict[str, Any]:
    """The response that was asked for, whole."""
    await socket.say("response.create", response=response)
    return dict((await socket.hear_until("response.done"))[-1]["response"])


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def check(socket: Talk, adapter: TypeAdapter[Any]) -> None:
    ids = [event["event_id"] for event in socket.received]
    assert len(set(ids)) == len(ids)
    for event in socket.received:
        adapter.validate_python(event)


async def test_two_calls_get_their_outputs_and_one_answer() -> None:
    async with socket_to(PATH, f"I look.\n{CALL}{OTHER}", "Beans.") as (socket, backend):
        await set_up(socket)
        await add(socket, message("What is in a and b?"))
        asked = await respond(socket)
        assert [item["type"] for item in asked["output"]] == ["message", "function_call", "function_call"]
        assert asked["usage"]["total_tokens"] == USAGE.input_tokens + USAGE.output_tokens
        for call in asked["output"][1:]:
            await add(socket, output(call, f"result of {call['arguments']}"))
        assert len(backend.prompts) == 1, "an output is no question"
        answered = await respond(socket)
        check(socket, GA_EVENT)
    assert answered["output"][0]["content"] == [{"type": "output_text", "text": "Beans."}]
    prompt = shown(backend)
    call, other = (text.partition("{")[2] for text in (CALL, OTHER))
    assert prompt.index(call) < prompt.index(other) < prompt.index('result of {"path": "a"}')


async def test_the_events_of_a_call_and_their_order() -> None:
    async with socket_to(PATH, CALL) as (socket, _):
        await set_up(socket)
        asked = await add(socket, message("hi"))
        await socket.say("response.create")
        events = await socket.hear_until("response.done")
    assert types(events) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
    ]
    added, delta, done, item = events[2], events[3], events[4], events[6]["item"]
    assert added["previous_item_id"] == asked["id"]
    assert added["item"]["arguments"] == ""
    assert delta["call_id"] == done["call_id"] == item["call_id"]
    assert (done["name"], done["arguments"]) == ("read_note", '{"path": "a"}')
    assert events[-1]["response"]["output"] == [item]


@pytest.mark.parametrize(
    ("headers", "part", "names"),
    [
        (None, "output_text", {"conversation.item.added", "conversation.item.done", "response.output_text.delta"}),
        (BETA, "text", {"conversation.item.created", "response.text.delta"}),
    ],
)
async def test_each_version_has_its_own_names(headers: dict[str, str] | None, part: str, names: set[str]) -> None:
    versions = {
        *("conversation.item.added", "conversation.item.done", "conversation.item.created"),
        *("response.output_text.delta", "response.text.delta"),
    }
    async with socket_to(PATH, "Hello", headers=headers) as (socket, _):
        modalities = "modalities" if headers else "output_modalities"
        session = await set_up(socket, **{modalities: ["text"]})
        assert session[modalities] == ["text"]
        await add(socket, message("hi"))
        response = await respond(socket)
        check(socket, BETA_EVENT if headers else GA_EVENT)
    assert set(types(socket.received)) & versions == names
    assert response["output"][0]["content"] == [{"type": part, "text": "Hello"}]


async def test_a_session_is_updated_in_part() -> None:
    async with socket_to(PATH) as (socket, _):
        await set_up(socket, instructions="Be brief.", tool_choice="required", audio={"output": {"voice": "ash"}})
        await socket.say("session.update", session={"type": "realtime", "tracing": "auto", "model": "other"})
        session = (await socket.hear())["session"]
    assert (session["instructions"], session["tool_choice"], session["tracing"]) == ("Be brief.", "required", "auto")
    assert session["tools"] == TOOLS
    assert session["model"] == "gpt-realtime", "the model is the one of the URL"


async def test_a_response_has_settings_of_its_own() -> None:
    async with socket_to(PATH, "Ahoy", "Hello") as (socket, backend):
        await set_up(socket, instructions="Be kind.")
        await add(socket, message("hi"))
        response = await respond(socket, instructions="Be a pirate.", tools=[], metadata={"topic": "sea"})
        assert response["metadata"] == {"topic": "sea"}
        assert backend.prompts[0].developer == "Be a pirate."
        await respond(socket)
        developer = backend.prompts[1].developer or ""
    assert developer.startswith("Be kind.")
    assert "read_note" in developer


async def test_a_demand_for_a_call_is_met_by_one_unless_the_client_says_it_again() -> None:
    async with socket_to(PATH, CALL, "Done.", OTHER) as (socket, backend):
        await set_up(socket, tool_choice="required")
        await add(socket, message("hi"))
        asked = await respond(socket)
        await add(socket, output(asked["output"][0], "beans"))
        answered = await respond(socket)
        assert [item["type"] for item in answered["output"]] == ["message"]
        again = await respond(socket, tool_choice="required")
        assert [item["type"] for item in again["output"]] == ["function_call"]
    assert len(backend.prompts) == 3


async def test_a_second_response_has_to_wait_for_the_first() -> None:
    backend = GatedBackend(["One", "Two"])
    async with socket_to(PATH, backend=backend) as (socket, _):
        await set_up(socket)
        await add(socket, message("hi"))
        await socket.say("response.create")
        await socket.hear_until("response.output_text.delta")
        await socket.say("response.create", event_id="mine")
        error = (await socket.hear())["error"]
        assert (error["code"], error["event_id"]) == ("conversation_already_has_active_response", "mine")
        await add(socket, message("meanwhile"))
        backend.gate.set()
        await socket.hear_until("response.done")
        assert (await respond(socket))["status"] == "completed"
        assert "meanwhile" in shown(backend)


@pytest.mark.parametrize("named", [True, False])
async def test_cancelling_in_mid_text_leaves_a_working_session(named: bool) -> None:
    backend = GatedBackend(["Half a sentence", "Whole."], chunk=4)
    async with socket_to(PATH, backend=backend) as (socket, _):
        await set_up(socket)
        await add(socket, message("hi"))
        await socket.say("response.create")
        begun = await socket.hear_until("response.output_text.delta")
        members = {"response_id": begun[0]["response"]["id"]} if named else {}
        await socket.say("response.cancel", **members)
        events = await socket.hear_until("response.done")
        cancelled = events[-1]["response"]
        assert cancelled["status"] == "cancelled"
        assert cancelled["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
        assert types(events)[:2] == ["response.output_text.done", "response.content_part.done"]
        assert cancelled["output"][0]["status"] == "incomplete"
        assert backend.left.is_set()
        backend.gate.set()
        assert (await respond(socket))["status"] == "completed"
        check(socket, GA_EVENT)


async def test_what_is_not_running_cannot_be_cancelled() -> None:
    async with socket_to(PATH) as (socket, _):
        await set_up(socket)
        for members in ({}, {"response_id": "resp_x"}):
            await socket.say("response.cancel", **members)
            assert (await socket.hear())["error"]["code"] == "response_cancel_not_active"


async def test_a_response_beside_the_conversation_leaves_it_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.websocket.realtime.MAX_ASIDE", 1)
    backend = GatedBackend(["Aside", "Answer", "Other"])
    async with socket_to(PATH, backend=backend) as (socket, _):
        await set_up(socket)
        known = await add(socket, message("hi"))
        own = [{"type": "item_reference", "id": known["id"]}, message("Sum it up.")]
        await socket.say("response.create", response={"conversation": "none", "input": own})
        await socket.hear_until("response.output_text.delta")
        assert "Sum it up." in shown(backend)
        await socket.say("response.create", response={"conversation": "none"})
        assert (await socket.hear())["error"]["code"] == "rate_limit_exceeded"
        await socket.say("response.create")
        backend.gate.set()
        done = [(await socket.hear_until("response.done"))[-1]["response"] for _ in range(2)]
        assert {response["conversation_id"] is None for response in done} == {True, False}
        await respond(socket)
        assert "Aside" not in shown(backend)
        assert "Sum it up." not in shown(backend)
        assert "Answer" in shown(backend)


async def test_a_failure_is_the_end_of_its_response_and_not_of_the_session() -> None:
    refusal = BackendError("Slow down.", status=429, type="requests", code="rate_limit_exceeded")
    async with socket_to(PATH, refusal, [TextPiece("Half"), BackendError("Gone.")], "Hello") as (socket, _):
        await set_up(socket)
        await add(socket, message("hi"))
        first, second, third = [await respond(socket) for _ in range(3)]
        check(socket, GA_EVENT)
    assert first["status_details"]["error"]["code"] == "rate_limit_exceeded"
    assert (second["status"], second["output"][0]["status"]) == ("failed", "incomplete")
    assert third["status"] == "completed"


async def test_an_answer_that_was_cut_is_incomplete() -> None:
    async with socket_to(PATH, [TextPiece("Half"), TurnEnded(USAGE, "max_output_tokens")]) as (socket, _):
        await set_up(socket, max_output_tokens=4096)
        await add(socket, message("hi"))
        response = await respond(socket)
    assert response["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}
    assert response["max_output_tokens"] == 4096


async def test_items_are_inserted_read_deleted_and_emptied() -> None:
    async with socket_to(PATH, "Hello") as (socket, backend):
        await set_up(socket)
        last = await add(socket, message("last"))
        first = await add(socket, {**message("first"), "id": "mine"}, previous_item_id="root")
        assert socket.received[-1]["previous_item_id"] is None
        said = await add(socket, message("unheard", "assistant"), previous_item_id="mine")
        await add(socket, message("Be kind.", "system"))
        await socket.say("conversation.item.retrieve", item_id="mine")
        assert (await socket.hear())["item"] == first
        await socket.say("conversation.item.truncate", item_id=said["id"], content_index=0, audio_end_ms=0)
        assert (await socket.hear())["type"] == "conversation.item.truncated"
        gone = await add(socket, message("deleted"))
        await socket.say("conversation.item.delete", item_id=gone["id"])
        assert (await socket.hear())["item_id"] == gone["id"]
        await respond(socket)
        check(socket, GA_EVENT)
    prompt = shown(backend)
    assert prompt.index("first") < prompt.index("last")
    assert "unheard" not in prompt
    assert "deleted" not in prompt
    assert "Be kind." in (backend.prompts[0].developer or "")
    assert last["object"] == "realtime.item"


ERRORS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"type": "conversation.item.delete", "item_id": "x"}, "item_not_found", "item_id"),
    ({"type": "conversation.item.retrieve", "item_id": "x"}, "item_not_found", "item_id"),
    ({"type": "conversation.item.truncate", "item_id": "x", "content_index": 0}, "item_not_found", "item_id"),
    (
        {"type": "conversation.item.create", "item": message("hi"), "previous_item_id": "x"},
        "item_not_found",
        "previous_item_id",
    ),
    (
        {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "x", "output": ""}},
        "invalid_tool_call_id",
        "item.call_id",
    ),
    ({"type": "conversation.item.create", "item": {"type": "dance"}}, "invalid_value", "item.type"),
    (
        {
            "type": "conversation.item.create",
            "item": {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": ""}]},
        },
        "unsupported_value",
        "item.content[0].type",
    ),
    ({"type": "input_audio_buffer.append", "audio": ""}, "unsupported_value", "type"),
    ({"type": "output_audio_buffer.clear"}, "unsupported_value", "type"),
    ({"type": "session.update", "session": {"output_modalities": ["audio"]}}, "unsupported_value", None),
    ({"type": "session.update", "session": {"type": "transcription"}}, "unsupported_value", "session.type"),
    ({"type": "session.update", "session": {"tools": [{"type": "dance"}]}}, "invalid_value", "session.tools[0].type"),
    ({"type": "session.update", "session": {"prompt": {"id": "p"}}}, "unsupported_parameter", "session.prompt"),
    ({"type": "session.update"}, "missing_required_parameter", "session"),
    ({"type": "response.create", "response": []}, "invalid_type", "response"),
    ({"type": "response.create", "response": {"tool_choice": 5}}, "invalid_type", "response.tool_choice"),
    ({"type": "response.create", "response": {"output_modalities": ["audio"]}}, "unsupported_value", None),
    (
        {"type": "response.create", "response": {"input": [{"type": "item_reference", "id": "x"}]}},
        "item_not_found",
        None,
    ),
    ({"type": "response.dance"}, "invalid_value", "type"),
    ({}, "missing_required_parameter", "type"),
]


@pytest.mark.parametrize(("event", "code", "param"), ERRORS)
async def test_what_is_wrong_with_an_event_is_told_and_changes_nothing(
    event: dict[str, Any], code: str, param: str | None
) -> None:
    async with socket_to(PATH, "Hello") as (socket, _):
        session = await set_up(socket)
        await socket.socket.send_json({**event, "event_id": "mine"})
        told = await socket.hear()
        assert told["type"] == "error"
        assert (told["error"]["code"], told["error"]["event_id"]) == (code, "mine")
        if param is not None:
            assert told["error"]["param"] == param
        await socket.say("session.update", session={})
        assert (await socket.hear())["session"] == session
        await add(socket, message("hi"))
        assert (await respond(socket))["status"] == "completed"
        check(socket, GA_EVENT)


async def test_what_is_no_event_is_told_too() -> None:
    async with socket_to(PATH) as (socket, _):
        await socket.hear()
        await socket.socket.send_str("{")
        assert (await socket.hear())["error"]["code"] == "invalid_json"


async def test_a_fault_of_ours_ends_the_response_without_its_trace() -> None:
    async with socket_to(PATH, "Hello") as (socket, backend):
        await set_up(socket)
        await add(socket, message("hi"))
        backend.answers.clear()
        response = await respond(socket)
        assert (response["status"], response["status_details"]["error"]["type"]) == ("failed", "server_error")
        backend.answers.append("Hello")
        assert (await respond(socket))["status"] == "completed"
    assert "IndexError" not in json.dumps(socket.received)


async def test_a_connection_without_a_model_is_refused() -> None:
    async with client() as (session, url):
        async with session.get(f"{url}/realtime", headers={"Upgrade": "websocket"}) as response:
            assert response.status == 400
            assert (await error_of(response))["param"] == "model"
