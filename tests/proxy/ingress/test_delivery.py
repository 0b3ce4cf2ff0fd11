"""The one delivery, over every sink: what a client gets is the same story, told in the way of its API."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from openai import APIError
from structlog.testing import capture_logs

from parser import write_call
from proxy.contracts import BackendEvent, TextPiece, TurnEnded, TurnRequest
from proxy.errors import ApiError, BackendError, StoreError
from proxy.ingress import create_app
from proxy.ingress.delivery import Cancellation, Exchange, deliver
from proxy.ingress.key_ring import KeyRing
from proxy.ingress.request_log import RequestLog
from proxy.server import running_server, turn_options
from proxy.settings import Settings
from proxy.stores import KeyedStore, make_store
from proxy.wire.builder import AnswerBuilder, WireEvent
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder
from tests.support.memory_backend import USAGE, MemoryBackend
from tests.support.patience import PATIENCE
from tests.support.sockets import Talk
from tests.support.talking import TOOLS, GatedBackend, talking

BODY: dict[str, Any] = {"model": "m", "input": "hi"}
WORDS: list[BackendEvent | BackendError] = [TextPiece("one "), TextPiece("two"), TurnEnded(USAGE)]
DELTA = "response.output_text.delta"


class TroubledBackend(GatedBackend):
    """Has its trouble before the first event of an answer, or behind it. Without one it waits there for `gate`."""

    def __init__(self, trouble: Exception | None = None, *, late: bool = False) -> None:
        super().__init__([WORDS])
        self.trouble = trouble
        self.late = late

    async def _gated(self, batches: AsyncIterator[Sequence[BackendEvent]]) -> AsyncIterator[Sequence[BackendEvent]]:
        async for batch in super()._gated(batches):
            if self.trouble is not None and not self.late:
                raise self.trouble
            yield batch
            if self.trouble is not None:
                raise self.trouble


@dataclass(frozen=True)
class Got:
    """What a client was given: an answer with its text and how it ended, or a refusal with its status."""

    status: str = ""
    text: str = ""
    refused: int | None = None
    warned: str | None = None


# How a client asks, and reads to the end. `cancels`: it cancels the answer at the first word.
Way = Callable[[aiohttp.ClientSession, str, bool], Awaitable[Got]]


def text_of(events: Sequence[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == DELTA)


async def read_stream(session: aiohttp.ClientSession, url: str, members: dict[str, Any], *, cancels: bool) -> Got:
    events: list[dict[str, Any]] = []
    async with session.post(f"{url}/responses", json={**BODY, **members, "stream": True}) as response:
        if response.status != 200:
            return Got(refused=response.status)
        async for line in response.content:
            if line.startswith(b"data: {"):
                events.append(json.loads(line[6:]))
                if cancels and events[-1]["type"] == DELTA:
                    async with session.post(f"{url}/responses/{events[0]['response']['id']}/cancel") as reply:
                        assert reply.status == 200
    warned = response.headers.get("x-tagcall-warning")
    return Got(events[-1]["response"]["status"], text_of(events), warned=warned)


async def as_an_event_stream(session: aiohttp.ClientSession, url: str, cancels: bool) -> Got:
    return await read_stream(session, url, {}, cancels=cancels)


async def in_the_background(session: aiohttp.ClientSession, url: str, cancels: bool) -> Got:
    return await read_stream(session, url, {"background": True}, cancels=cancels)


async def as_one_body(session: aiohttp.ClientSession, url: str, _: bool) -> Got:
    async with session.post(f"{url}/responses", json=BODY) as response:
        body = await response.json()
    if response.status != 200:
        return Got(refused=response.status)
    warned = response.headers.get("x-tagcall-warning")
    return Got(body["status"], body["output"][0]["content"][0]["text"], warned=warned)


async def as_frames(session: aiohttp.ClientSession, url: str, _: bool) -> Got:
    async with session.ws_connect(f"{url}/responses") as socket:
        talk = Talk(socket)
        await talk.say("response.create", **BODY)
        events = await talk.hear_until("response.completed", "response.failed", "error")
    if events[0]["type"] == "error":
        return Got(refused=events[0]["status"])
    return Got(events[-1]["response"]["status"], text_of(events))


async def in_a_realtime_session(session: aiohttp.ClientSession, url: str, cancels: bool) -> Got:
    async with session.ws_connect(f"{url}/realtime?model=m") as socket:
        talk = Talk(socket)
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        await talk.say("conversation.item.create", item=item)
        await talk.say("response.create")
        if cancels:
            await talk.hear_until(DELTA)
            await talk.say("response.cancel")
        await talk.hear_until("response.done")
    return Got(talk.received[-1]["response"]["status"], text_of(talk.received))


WAYS: dict[str, Way] = {
    "event stream": as_an_event_stream,
    "JSON body": as_one_body,
    "frames": as_frames,
    "realtime": in_a_realtime_session,
    "background": in_the_background,
}

# Whose failures are refusals: before anything has left, and in the middle. The other sinks begin at once.
REFUSES = {False: {"event stream", "JSON body", "frames"}, True: {"JSON body"}}
CANCELS = ("realtime", "background")


async def leaving(answer: Awaitable[Got]) -> None:
    """A client that does not come to the end."""
    raise AssertionError(await answer)


@asynccontextmanager
async def asked(backend: MemoryBackend) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    async with (
        running_server(Settings(port=0, store="memory"), backend) as url,
        aiohttp.ClientSession() as session,
        asyncio.timeout(PATIENCE),
    ):
        yield session, url


@pytest.mark.parametrize("sink", WAYS)
async def test_an_answer_comes_whole_with_its_end(sink: str) -> None:
    backend = TroubledBackend()
    backend.gate.set()
    with capture_logs() as lines:
        async with asked(backend) as (session, url):
            assert await WAYS[sink](session, url, False) == Got("completed", "one two")
    (line,) = (line for line in lines if line["event"] == "request" and "model" in line)
    assert (line["model"], line["outcome"]) == ("m", "done")
    assert line["response"].startswith("resp_")
    assert "first_event_ms" in line


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("sink", WAYS)
async def test_a_failure_is_a_refusal_or_the_last_event(sink: str, late: bool) -> None:
    error = BackendError("Slow down.", status=429, code="rate_limit_exceeded")
    with capture_logs() as lines:
        async with asked(TroubledBackend(error, late=late)) as (session, url):
            got = await WAYS[sink](session, url, False)
    assert got == (Got(refused=429) if sink in REFUSES[late] else Got("failed", "one " if late else ""))
    (line,) = (line for line in lines if line["event"] == "request" and "model" in line)
    assert line["error"] == "rate_limit_exceeded"
    assert not [line for line in lines if line["event"].endswith("_fault")]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("sink", WAYS)
async def test_a_fault_of_ours_is_logged_once_and_told_as_a_failure(sink: str, late: bool) -> None:
    with capture_logs() as lines:
        async with asked(TroubledBackend(ZeroDivisionError("by us"), late=late)) as (session, url):
            got = await WAYS[sink](session, url, False)
    assert got == (Got(refused=500) if sink in REFUSES[late] else Got("failed", "one " if late else ""))
    (fault,) = (line for line in lines if line["event"].endswith("_fault"))
    assert fault["exc_info"]
    (line,) = (line for line in lines if line["event"] == "request" and "model" in line)
    assert (fault["id"], line["error"]) == (line["id"], "server_error")


@pytest.mark.parametrize("sink", WAYS)
async def test_a_fault_tells_nothing_of_itself(sink: str) -> None:
    """The bytes of all that a client is sent are looked through."""
    seen = bytearray()

    async def remember(_: object, __: object, chunk: aiohttp.TraceResponseChunkReceivedParams) -> None:
        seen.extend(chunk.chunk)

    trace = aiohttp.TraceConfig()
    trace.on_response_chunk_received.append(remember)
    backend = TroubledBackend(ZeroDivisionError("by us"), late=True)
    async with (
        running_server(Settings(port=0, store="memory"), backend) as url,
        aiohttp.ClientSession(trace_configs=[trace]) as session,
    ):
        await WAYS[sink](session, url, False)
    assert b"by us" not in seen
    assert b"ZeroDivision" not in seen


@pytest.mark.parametrize("sink", WAYS)
async def test_a_client_that_leaves_ends_its_turn_unless_that_is_in_the_background(sink: str) -> None:
    backend = TroubledBackend()
    with capture_logs() as lines:
        async with asked(backend) as (session, url):
            async with asyncio.TaskGroup() as group:
                client = group.create_task(leaving(WAYS[sink](session, url, False)))
                await backend.asked.wait()
                client.cancel()
            if sink == "background":
                backend.gate.set()
            await backend.left.wait()
    assert backend.left_early == (0 if sink == "background" else 1)
    (line,) = (line for line in lines if line["event"] == "request" and "model" in line)
    assert line["outcome"] == "client gone"


@pytest.mark.parametrize("sink", CANCELS)
async def test_a_cancelled_answer_keeps_what_was_said_and_ends_its_turn(sink: str) -> None:
    backend = TroubledBackend()
    async with asked(backend) as (session, url):
        assert await WAYS[sink](session, url, True) == Got("cancelled", "one ")
        await backend.left.wait()
    assert backend.left_early == 1


@pytest.mark.parametrize("sink", WAYS)
async def test_a_store_that_fails_fails_no_answer(sink: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = KeyedStore.save
    away = True

    async def fail(self: KeyedStore, stored: Any, **named: Any) -> bool:
        if away and stored.response["status"] == "completed":
            raise StoreError("it is away")
        return await real(self, stored, **named)

    monkeypatch.setattr(KeyedStore, "save", fail)
    monkeypatch.setattr("proxy.ingress.background.jobs.RETRY", 0.01)
    backend = TroubledBackend()
    backend.gate.set()
    with capture_logs() as lines:
        async with asked(backend) as (session, url):
            got = await WAYS[sink](session, url, False)
            away = False  # else a background response would wait for it until the server ends
    assert got == Got("completed", "one two", warned="not stored" if sink == "JSON body" else None)
    assert [line for line in lines if line["event"] == "not_stored"] or sink == "realtime"


@pytest.mark.parametrize("sink", ["JSON body", "background"])
async def test_where_no_client_is_written_to_a_connection_that_fails_is_a_fault(sink: str) -> None:
    async with asked(TroubledBackend(ConnectionResetError("by a peer"), late=True)) as (session, url):
        got = await WAYS[sink](session, url, False)
    assert got == (Got(refused=500) if sink == "JSON body" else Got("failed", "one "))


# With a sink that writes down what it is given


class Diary:
    """A sink. `trouble` comes where it stands in the diary."""

    def __init__(self, trouble: Exception | None = None, *, at: str = "") -> None:
        self.entries: list[str] = []
        self.begun = False
        self._trouble = trouble
        self._at = at

    def note(self, entry: str) -> None:
        self.entries.append(entry)
        if entry == self._at and self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            raise trouble

    @asynccontextmanager
    async def open(self, builder: AnswerBuilder) -> AsyncIterator[None]:
        builder.start()
        self.note("open")
        try:
            yield
        finally:
            self.entries.append("close")

    async def send(self, events: Sequence[WireEvent]) -> None:
        self.begun = True
        self.note("send")

    async def finish(self, events: Sequence[WireEvent], error: ApiError | None) -> None:
        self.begun = True
        self.note(f"finish {events[-1]['type']}")


async def delivered(
    sink: Diary, backend: MemoryBackend | None = None, cancellation: Cancellation | None = None
) -> RequestLog:
    backend = backend or MemoryBackend([WORDS])
    parsed = parse_responses_request(BODY)
    entry = RequestLog("req_1", "POST", "/responses")

    async def keep() -> None:
        sink.note("keep")

    exchange = Exchange(parsed.turn, "owner", ResponsesBuilder(parsed), keep, cancellation=cancellation)
    async with make_store("memory") as store:
        settings = Settings()
        app = create_app(settings, backend, store, turn_options(settings), KeyRing())
        await deliver(app, exchange, sink, entry)
    assert backend.open_turns == 0
    return entry


async def test_what_is_to_be_kept_is_kept_before_the_last_events_leave() -> None:
    sink = Diary()
    await delivered(sink)
    assert sink.entries == ["open", "send", "send", "keep", "finish response.completed", "close"]


async def test_a_client_that_has_gone_is_raised_and_gets_nothing_more() -> None:
    sink = Diary(ConnectionResetError(), at="send")
    with pytest.raises(ConnectionResetError):
        await delivered(sink)
    assert sink.entries == ["open", "send", "close"]


@pytest.mark.parametrize("at", ["send", "keep", "finish response.completed"])
async def test_after_a_fault_wherever_it_is_the_answer_has_an_end(at: str) -> None:
    sink = Diary(ZeroDivisionError(), at=at)
    with capture_logs() as lines:
        entry = await delivered(sink)
    assert sink.entries[-2:] == ["close", "finish response.failed"]
    assert entry.failed is not None
    assert [line["event"] for line in lines] == ["delivery_fault"]


async def test_a_fault_before_the_sink_has_begun_is_raised_as_what_a_client_may_be_told() -> None:
    sink = Diary(ZeroDivisionError("by us"), at="open")
    with capture_logs(), pytest.raises(ApiError, match="had an error") as caught:
        await delivered(sink)
    assert caught.value.status == 500
    assert sink.entries == ["open"]


async def test_who_cancels_first_says_how_it_ends_and_what_was_built_is_sent() -> None:
    cancellation = Cancellation()

    class Impatient(Diary):
        async def send(self, events: Sequence[WireEvent]) -> None:
            cancellation.request(lambda: [{"type": "first"}])
            cancellation.request(lambda: [{"type": "second"}])
            await super().send(events)

    sink = Impatient()
    await delivered(sink, cancellation=cancellation)
    assert sink.entries == ["open", "send", "finish first", "close"]


async def test_a_cancellation_reaches_a_turn_that_is_silent_also_when_its_task_is_cancelled_with_it() -> None:
    for also_the_task in (False, True):
        cancellation, backend, sink = Cancellation(), GatedBackend([WORDS]), Diary()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(delivered(sink, backend, cancellation))
            await backend.asked.wait()
            cancellation.request(lambda: [{"type": "over"}])
            if also_the_task:
                task.cancel()
        assert sink.entries == ["open", "send", "finish over", "close"]
        assert backend.left_early == 1


async def test_a_task_that_is_cancelled_without_a_wish_is_just_left() -> None:
    backend, sink = GatedBackend([WORDS]), Diary()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(delivered(sink, backend, Cancellation()))
        await backend.asked.wait()
        task.cancel()
    assert sink.entries == ["open", "send", "close"]
    assert backend.left_early == 1


BROKEN_CALL = '<tool_call>{"name": "read_note", "arguments": {"path": }}</tool_call>'
READ = write_call("read_note", '{"path": "a.md"}')


@pytest.mark.parametrize("background", [False, True])
async def test_a_json_answer_is_whole_also_where_calls_are_live(background: bool) -> None:
    """Its client gains nothing by a call that has begun, and a second try where the first one broke."""
    async with talking(BROKEN_CALL, READ, calls="live") as (openai, backend):
        answer = await openai.responses.create(model="m", input="hi", tools=TOOLS, background=background)
        while answer.status in {"queued", "in_progress"}:
            answer = await openai.responses.retrieve(answer.id)
        assert [item.type for item in answer.output] == ["function_call"]
        assert not backend.answers
    async with talking(BROKEN_CALL, READ, calls="live") as (openai, _):
        messages: list[Any] = [{"role": "user", "content": "hi"}]
        tools: list[Any] = [{"type": "function", "function": {"name": "read_note", "parameters": {"type": "object"}}}]
        completion = await openai.chat.completions.create(model="m", messages=messages, tools=tools)
        assert completion.choices[0].finish_reason == "tool_calls"


async def test_a_stream_has_its_live_calls_all_the_same() -> None:
    async with talking(BROKEN_CALL, calls="live") as (openai, _):
        with pytest.raises(APIError, match="broke off a tool call"):
            async for _event in await openai.responses.create(model="m", input="hi", tools=TOOLS, stream=True):
                pass


@pytest.mark.parametrize(("stream", "late"), [(False, False), (True, False), (True, True)])
async def test_nothing_holds_the_request_of_a_turn_that_failed(*, stream: bool, late: bool) -> None:
    """Its prompt may be long, and Python looks for cycles after so many objects, not after so many bytes."""
    backend = TroubledBackend(BackendError("No."), late=late)
    async with running_server(Settings(port=0, store="none"), backend) as url, aiohttp.ClientSession() as http:
        gc.collect()
        gc.disable()
        try:
            async with http.post(f"{url}/responses", json={**BODY, "model": "its-own", "stream": stream}) as response:
                assert "No." in await response.text()
            async with http.get(f"{url}/models") as response:  # on the same connection, so the other one is over
                await response.read()
            there = [each for each in gc.get_objects() if isinstance(each, TurnRequest)]
            assert "its-own" not in {each.model for each in there}
        finally:
            gc.enable()
