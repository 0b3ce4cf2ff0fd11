"""POST /v1/responses over HTTP: the stream and the plain body are one answer, and each end of it has its form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest

from parser import write_call
from proxy.contracts import BackendEvent, MessageEnded, ReasoningEnded, ReasoningPiece, TextPiece, TurnEnded, Usage
from proxy.errors import BackendError
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.patience import PATIENCE
from tests.support.published_types import check_published_events, check_published_response
from tests.support.responses_grammar import check_events, without_identity

TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "patch", "description": "Patch a file."},
    {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
    {"type": "namespace", "name": "mcp__notes", "description": "", "tools": [{"type": "custom", "name": "write"}]},
]
READ = write_call("read_note", '{"path": "a.md"}')
PATCH = write_call("patch", '{"input": "+ a\\n- b"}')
END = TurnEnded(Usage(100, 40, 20, 5))

ANSWERS: dict[str, Sequence[BackendEvent]] = {
    "text": [TextPiece("Hel"), TextPiece("lo"), MessageEnded(), END],
    "one call": [TextPiece(READ), END],
    "text and parallel calls": [TextPiece(f"I look.\n{READ}\n{write_call('read_note', '{}')}"), END],
    "a custom call": [TextPiece(PATCH), END],
    "a search for tools": [TextPiece(write_call("tool_search", '{"query": "notes"}')), END],
    "a custom call of a namespace": [TextPiece(write_call("mcp__notes__write", '{"input": ""}')), END],
    "reasoning and a call": [ReasoningPiece(0, "Hm."), ReasoningEnded(), TextPiece(READ), END],
    "a cut answer": [TextPiece("Hel"), TurnEnded(Usage(1, 0, 1), "max_output_tokens")],
}


@asynccontextmanager
async def serving(backend: MemoryBackend, **settings: Any) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    async with running_server(Settings(port=0, **settings), backend) as url, aiohttp.ClientSession() as session:
        yield session, f"{url}/responses"


def body(**members: Any) -> dict[str, Any]:
    return {"model": "m", "input": "hi", "tools": TOOLS, **members}


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a stream, whose framing is held to the letter."""
    *blocks, done, rest = text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    events = []
    for block in blocks:
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        events.append(orjson.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


@pytest.mark.parametrize("calls", ["whole", "live"])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
async def test_a_stream_adds_up_to_the_plain_answer(answer: Sequence[BackendEvent], calls: str) -> None:
    async with serving(MemoryBackend([answer, answer]), calls=calls) as (session, url):
        async with session.post(url, json=body(stream=True)) as response:
            assert response.status == 200
            events = events_of(await response.text())
        async with session.post(url, json=body()) as response:
            plain = await response.json()
    final = check_events(events)
    check_published_events(events)
    check_published_response(plain)
    assert without_identity(final) == without_identity(plain)


async def test_a_live_custom_call_leaves_when_it_is_whole() -> None:
    answer: list[BackendEvent] = [TextPiece(PATCH[:-20]), TextPiece(PATCH[-20:]), END]
    async with serving(MemoryBackend([answer]), calls="live") as (session, url):
        async with session.post(url, json=body(stream=True)) as response:
            events = events_of(await response.text())
    (delta,) = (event["delta"] for event in events if event["type"] == "response.custom_tool_call_input.delta")
    assert delta == "+ a\n- b"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_to_call_is_an_http_error_that_no_repetition_heals(stream: bool) -> None:
    async with serving(MemoryBackend(["I would rather not.", "No."])) as (session, url):
        async with session.post(url, json=body(tool_choice="required", stream=stream)) as response:
            assert response.status == 422
            assert response.headers["x-should-retry"] == "false"
            error = (await response.json())["error"]
    assert (error["code"], error["param"]) == ("tool_call_missing", "tool_choice")


@pytest.mark.parametrize("stream", [True, False])
async def test_every_answer_has_its_own_request_id(stream: bool) -> None:
    async with serving(MemoryBackend(["a"])) as (session, url):
        ids = set()
        for sent in (body(stream=stream), {}, body(previous_response_id="resp_x")):
            async with session.post(url, json=sent) as response:
                ids.add(response.headers["x-request-id"])
    assert len(ids) == 3


class HeldBackend(MemoryBackend):
    """Answers once the gate is open."""

    def __init__(self, answers: list[Script]) -> None:
        super().__init__(answers)
        self.gate = asyncio.Event()

    @asynccontextmanager
    async def stream(self, prompt: Any) -> AsyncIterator[Any]:
        async with super().stream(prompt) as batches:

            async def held() -> AsyncIterator[Any]:
                await self.gate.wait()
                async for batch in batches:
                    yield batch

            yield held()


async def test_a_backend_that_is_slow_to_answer_is_told_in_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.event_stream.HEAD_WAIT", 0.01)
    monkeypatch.setattr("proxy.ingress.event_stream.HEARTBEAT", 0.01)
    backend = HeldBackend(["Hello"])
    async with serving(backend) as (session, url), session.post(url, json=body(stream=True)) as response:
        assert response.status == 200
        async with asyncio.timeout(PATIENCE):
            begun = await response.content.readuntil(b": keep-alive\n\n")
            begun += await response.content.readuntil(b": keep-alive\n\n")
            backend.gate.set()
            check_events(events_of((begun + await response.read()).decode()))
    assert b"response.in_progress" in begun


async def test_a_failure_after_the_head_carries_its_error_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.event_stream.HEAD_WAIT", 0.01)
    error = BackendError("Slow down.", status=429, type="requests", code="rate_limit_exceeded", retry_after=3)
    backend = HeldBackend([error])
    async with serving(backend) as (session, url), session.post(url, json=body(stream=True)) as response:
        assert response.status == 200, "the head did not wait for the backend any longer"
        backend.gate.set()
        async with asyncio.timeout(PATIENCE):
            events = events_of(await response.text())
    final = check_events(events)
    check_published_events(events)
    assert final["error"] == {"code": "rate_limit_exceeded", "message": "Slow down."}
    assert events[-1]["error"] == {
        "message": "Slow down.", "type": "requests", "param": None, "code": "rate_limit_exceeded",
    }  # fmt: skip


# A body, or what the backend reports of a good one (None: it has a fault); then status, type, code, param and the
# beginning of the message.
Row = tuple[Any, int, str, str | None, str | None, str]
INVALID = "invalid_request_error"
CALL = {"type": "function_call", "call_id": "call_x", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_x", "output": "o"}
NO_INPUT = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
ERRORS: list[Row] = [
    (b"{", 400, INVALID, None, None, "We could not parse the JSON body of your request."),
    (
        body(input=[{"type": "function_call_output", "output": "o"}]), 400, INVALID, "missing_required_parameter",
        "input[0].call_id", "Missing required parameter: 'input[0].call_id'.",
    ),
    ({"input": "hi"}, 400, INVALID, "missing_required_parameter", "model", "Missing required parameter: 'model'."),
    ({"model": "m"}, 400, INVALID, "missing_required_parameter", "input", "Missing required parameter: 'input'."),
    (body(input=[]), 400, INVALID, "missing_required_parameter", "input", NO_INPUT),
    (body(input=""), 400, INVALID, "missing_required_parameter", "input", NO_INPUT),
    (
        body(stream="x"), 400, INVALID, "invalid_type", "stream",
        "Invalid type for 'stream': expected a boolean, but got a string instead.",
    ),
    (
        body(truncation="x"), 400, INVALID, "invalid_value", "truncation",
        "Invalid value: 'x'. Supported values are: 'auto', 'disabled'.",
    ),
    (
        body(max_output_tokens=1), 400, INVALID, "integer_below_min_value", "max_output_tokens",
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.",
    ),
    (
        body(max_tool_calls=0), 400, INVALID, "integer_below_min_value", "max_tool_calls",
        "Invalid 'max_tool_calls': integer below minimum value. Expected a value >= 1, but got 0 instead.",
    ),
    (
        body(previous_response_id="resp_x"), 400, INVALID, "previous_response_not_found", "previous_response_id",
        "Previous response with id 'resp_x' not found.",
    ),
    (
        body(previous_response_id="abc"), 400, INVALID, "invalid_value", "previous_response_id",
        "Invalid 'previous_response_id': 'abc'. Expected an ID that begins with 'resp'.",
    ),
    (
        body(previous_response_id="resp_x", conversation="conv_x"), 400, INVALID, "mutually_exclusive_parameters", None,
        "Mutually exclusive parameters: Ensure you are only providing one of: 'previous_response_id' or ",
    ),
    (
        body(tool_choice={"type": "function", "name": "x"}), 400, INVALID, None, "tool_choice",
        "Tool choice 'function' not found in 'tools' parameter.",
    ),
    (
        body(input=[OUTPUT]), 400, INVALID, None, "input",
        "No tool call found for function call output with call_id call_x.",
    ),
    (body(input=[CALL]), 400, INVALID, None, "input", "No tool output found for function call call_x."),
    (
        body(input=[{**CALL, "id": "fc_x"}, {**CALL, "id": "fc_x"}, OUTPUT]), 400, INVALID, None, "input",
        "Duplicate item found with id fc_x. Remove duplicate items from your input and try again.",
    ),
    (
        BackendError("Too long.", status=400, type=INVALID, code="context_length_exceeded", param="input"),
        400, INVALID, "context_length_exceeded", "input", "Too long.",
    ),
    (
        BackendError("Slow.", status=429, type="requests", code="rate_limit_exceeded", retry_after=3), 429, "requests",
        "rate_limit_exceeded", None, "Slow.",
    ),
    (None, 500, "server_error", None, None, "The server had an error while processing your request."),
]  # fmt: skip


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("row", ERRORS, ids=[f"{row[3]}-{row[4]}" for row in ERRORS])
async def test_every_error_is_openais(row: Row, stream: bool) -> None:
    sent, status, kind, code, param, message = row
    backend = MemoryBackend([sent] if isinstance(sent, BackendError) else [])
    payload = sent if isinstance(sent, bytes | dict) else body()
    if isinstance(payload, dict):
        payload = orjson.dumps({"stream": stream, **payload})
    async with (
        serving(backend, history="strict") as (session, url),
        session.post(url, data=payload, headers={"Content-Type": "application/json"}) as response,
    ):
        assert response.content_type == "application/json"
        assert response.headers["x-request-id"].startswith("req_")
        assert response.headers["openai-processing-ms"].isdigit()
        assert ("retry-after" in response.headers) == (status == 429)
        error = (await response.json())["error"]
    assert (response.status, error["type"], error["code"], error["param"]) == (status, kind, code, param)
    assert error["message"].startswith(message)
    assert set(error) == {"message", "type", "param", "code"}
