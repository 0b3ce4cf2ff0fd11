"""The shell over real connections: to a scripted server, and to one that does what servers do wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from typing import Any, NoReturn

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from prompts import Item, Text
from proxy.backends.chat import ChatBackend
from proxy.backends.chat.backend import QUEUE
from proxy.contracts import BackendEvent, Health, MessageEnded, Prompt, TextPiece, TurnEnded, Usage
from proxy.errors import BackendError
from tests.support.backend_events import merged, read_turn
from tests.support.clock import Clock
from tests.support.faulty_backend import Seen, see_turn
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.support.scripted_chat import ScriptedChat
from tests.support.scripted_model import Call, Cut, Message, Refusal, Reply, Silent

HELLO = "Hello from the scripted model."


@pytest.fixture
async def chat(aiohttp_server: AiohttpServer) -> ScriptedChat:
    chat = ScriptedChat()
    server = await aiohttp_server(chat.app, access_log=None, shutdown_timeout=0.1)
    chat.url = str(server.make_url("/v1"))
    return chat


@pytest.fixture
async def backend(chat: ScriptedChat) -> AsyncIterator[ChatBackend]:
    async with ChatBackend(chat.url) as backend:
        yield backend


def prompt(model: str = "m", **members: Any) -> Prompt:
    return Prompt(model, "tools", (Text("flat"),), head="tools", items=(Item("user", (Text("hi"),)),), **members)


async def code_of(backend: ChatBackend) -> str | None:
    with pytest.raises(BackendError) as caught:
        await read_turn(backend, prompt())
    return caught.value.code


async def test_a_turn_is_read_to_its_end(backend: ChatBackend) -> None:
    events = merged(await read_turn(backend, prompt()))
    assert events == [TextPiece(HELLO), MessageEnded(), TurnEnded(Usage(100, 40, 20, 5))]
    assert (backend.load().open_turns, backend.load().interrupts) == (0, 0)


async def test_connections_are_kept(aiohttp_server: AiohttpServer) -> None:
    chat, connections = ScriptedChat(), set()

    @web.middleware
    async def note(request: web.Request, handler: Callable[[web.Request], Awaitable[Any]]) -> Any:
        connections.add(request.transport)
        return await handler(request)

    chat.app.middlewares.append(note)
    server = await aiohttp_server(chat.app)
    async with ChatBackend(str(server.make_url("/v1"))) as backend:
        for _ in range(3):
            assert (await see_turn(backend)).end == "ended"
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("kind", "told"),
    [(None, b""), ("text/event-stream", b""), ("text/event-stream", b"data: {"), ("application/json", b"{")],
    ids=["nothing told", "a head", "half an event", "half a body"],
)
async def test_what_is_being_answered_fails_when_it_is_closed(
    aiohttp_server: AiohttpServer, kind: str | None, told: bytes
) -> None:
    asked = asyncio.Event()

    async def hang(request: web.Request) -> NoReturn:
        if kind is not None:
            response = web.StreamResponse(headers={"Content-Type": kind})
            await response.prepare(request)
            await response.write(told)
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    app = web.Application()
    app.router.add_post("/v1/chat/completions", hang)
    server = await aiohttp_server(app, shutdown_timeout=0.1)

    async def ask(backend: ChatBackend) -> None:
        with pytest.raises(BackendError, match="shutting down"):
            await read_turn(backend, prompt())

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        async with ChatBackend(str(server.make_url("/v1"))) as backend:
            group.create_task(ask(backend), name="a turn")
            await asked.wait()
            for _ in range(100):  # what was told is heard
                await asyncio.sleep(0)


async def test_who_leaves_ends_the_models_work(chat: ScriptedChat, backend: ChatBackend) -> None:
    chat.push(Reply([Message("word " * 100)], hold_after=2, gate=asyncio.Event()))
    async with backend.stream(prompt()) as batches:
        await anext(batches)
        assert backend.load().open_turns == 1
    async with asyncio.timeout(PATIENCE):
        await chat.stream_closed.wait()
    assert (backend.load().open_turns, backend.load().interrupts) == (0, 1)


async def test_who_leaves_before_the_first_word_ends_it_too(aiohttp_server: AiohttpServer) -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def queue(_: web.Request) -> web.Response:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        raise AssertionError

    async with serving(aiohttp_server, queue) as backend, asyncio.timeout(PATIENCE):
        turn = asyncio.get_running_loop().create_task(see_turn(backend))
        await asked.wait()
        turn.cancel()
        await left.wait()


@asynccontextmanager
async def serving(
    aiohttp_server: AiohttpServer, answer: Callable[[web.Request], Awaitable[web.StreamResponse]], **settings: Any
) -> AsyncIterator[ChatBackend]:
    app = web.Application()
    app.router.add_route("*", "/v1/{path:.*}", answer)
    server = await aiohttp_server(app, shutdown_timeout=0.1)
    async with ChatBackend(str(server.make_url("/v1")), **settings) as backend:
        yield backend


async def test_the_key_goes_to_its_server_and_to_no_other(aiohttp_server: AiohttpServer, chat: ScriptedChat) -> None:
    seen: list[str | None] = []

    async def redirect(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        raise web.HTTPTemporaryRedirect(f"{chat.url}/chat/completions")

    async with serving(aiohttp_server, redirect, key="sk-secret") as backend:
        assert await code_of(backend) == "backend_error"
        assert (await backend.health()).problem is not None
    assert seen == ["Bearer sk-secret"] * 2
    assert chat.requests == []


async def test_where_nothing_listens_there_is_one_sentence() -> None:
    port = free_port()
    async with ChatBackend(f"http://127.0.0.1:{port}/v1", start="start it with `x`") as backend:
        sentence = f"The model server at 127.0.0.1:{port} does not answer: start it with `x`."
        with pytest.raises(BackendError) as caught:
            await read_turn(backend, prompt())
        error = caught.value
        assert (error.message, error.status, error.code, error.retry_after) == (sentence, 503, "backend_unavailable", 5)
        assert (await backend.health()).problem == sentence
        with pytest.raises(BackendError):
            await backend.models()


ENDS = {
    "cut": (Reply([Message("Hi")], end=Cut()), Seen("Hi", "backend_disconnected")),
    "silent end": (Reply([Message("Hi")], end=Silent()), Seen("Hi", "backend_disconnected")),
    "a call": (Reply([Message("Hi"), Call("f")]), Seen("Hi", "backend_not_text_only")),
    "unknown model": (Refusal(404, {"message": "The model `m` does not exist."}), Seen("", "model_not_found")),
    "limit": (Refusal(429, {"message": "slow"}, {"retry-after": "7"}), Seen("", "rate_limit_exceeded")),
}


@pytest.mark.parametrize(("reply", "seen"), ENDS.values(), ids=ENDS)
async def test_every_end_is_one(chat: ScriptedChat, backend: ChatBackend, reply: Reply | Refusal, seen: Seen) -> None:
    chat.push(reply)
    assert await see_turn(backend) == seen
    assert await see_turn(backend) == Seen(HELLO, "ended")
    assert backend.load().interrupts == 0


async def test_a_page_is_no_answer(aiohttp_server: AiohttpServer) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>Welcome</html>", content_type="text/html")

    async with serving(aiohttp_server, page) as backend:
        with pytest.raises(
            BackendError, match="answers without JSON: give --backend the whole address of a Chat Completions server"
        ) as caught:
            await read_turn(backend, prompt())
    assert caught.value.code == "backend_error"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
async def test_nothing_is_unpacked(aiohttp_server: AiohttpServer, coding: str) -> None:
    """A thousandth of it in bytes: the time of it was the loop's."""
    wanted: list[str | None] = []
    bomb = gzip.compress(b"data: {}\n\n" * 2**20)

    async def compressed(request: web.Request) -> web.Response:
        wanted.append(request.headers.get("Accept-Encoding"))
        return web.Response(body=bomb, headers={"content-type": "text/event-stream", "content-encoding": coding})

    async with serving(aiohttp_server, compressed) as backend:
        with pytest.raises(BackendError, match=rf"compresses what it sends \({coding}\)") as caught:
            await read_turn(backend, prompt())
        assert (caught.value.code, caught.value.retryable) == ("backend_error", False)
        assert "compresses" in str((await backend.health()).problem)
    assert wanted == ["identity"] * 2


async def test_a_coding_in_bytes_that_are_no_text_is_told_as_any_other() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: x\xff\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, ChatBackend(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1") as backend:
        with pytest.raises(BackendError, match=r"compresses what it sends \(x\?\)"):
            await read_turn(backend, prompt())


async def test_a_server_that_does_not_stream_is_read_all_the_same(aiohttp_server: AiohttpServer) -> None:
    async def whole(_: web.Request) -> web.Response:
        body = {"choices": [{"message": {"role": "assistant", "content": "Hi\nthere"}, "finish_reason": "stop"}]}
        return web.Response(text=json.dumps(body, indent=1), content_type="application/json")

    async with serving(aiohttp_server, whole) as backend:
        assert await see_turn(backend) == Seen("Hi\nthere", "ended")


async def test_an_answer_is_whole_though_its_connection_does_not_end(aiohttp_server: AiohttpServer) -> None:
    async def stays(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n\n')
        await asyncio.Event().wait()
        return response

    async with serving(aiohttp_server, stays) as backend:
        assert await see_turn(backend) == Seen("Hi", "ended")


ENDED = b'data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n'


@pytest.mark.parametrize("pings", [False, True])
async def test_an_answer_that_said_why_it_ended_is_whole_soon(
    aiohttp_server: AiohttpServer, clock: Clock, monkeypatch: pytest.MonkeyPatch, pings: bool
) -> None:
    """Though neither its end nor that of the connection comes, and signs of life do."""
    monkeypatch.setattr("proxy.backends.chat.backend.USAGE", 1000.0)
    said, left, ping = asyncio.Event(), asyncio.Event(), asyncio.Semaphore(0)

    async def stays(request: web.Request) -> NoReturn:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(ENDED + b'data: {"choices": [], "usage": {"prompt_tokens": 3}}\n\n')
        said.set()
        try:
            while True:
                await ping.acquire()
                await response.write(b": ping\n\n")
        finally:
            left.set()

    async with serving(aiohttp_server, stays, idle_timeout=10_000.0) as backend:
        turn = asyncio.get_running_loop().create_task(read_turn(backend, prompt()))
        await said.wait()
        for _ in range(8):
            if pings:
                ping.release()
            await clock.put_forward(100.0)
            assert not turn.done()
        await clock.put_forward(300.0)
        assert merged(await turn) == [TextPiece("Hi"), MessageEnded(), TurnEnded(Usage(3))]
        await left.wait()
        assert backend.load().interrupts == 0


LATE = {
    "usage": (
        (ENDED, 900.0, b'data: {"choices": [], "usage": {"prompt_tokens": 3}}\n\n'),
        [TextPiece("Hi"), MessageEnded(), TurnEnded(Usage(3))],
    ),
    "text, of servers that write a reason into each event": (
        (ENDED * 2, 2000.0, ENDED), [TextPiece("HiHiHi"), MessageEnded(), TurnEnded(None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("told", "events"), LATE.values(), ids=LATE)
async def test_what_comes_behind_a_reason_to_end_is_waited_for(
    aiohttp_server: AiohttpServer,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    told: tuple[bytes, float, bytes],
    events: list[BackendEvent],
) -> None:
    monkeypatch.setattr("proxy.backends.chat.backend.USAGE", 1000.0)
    first, wait, then = told
    said, more = asyncio.Event(), asyncio.Event()

    async def late(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(first)
        said.set()
        await more.wait()
        await response.write(then + b"data: [DONE]\n\n")
        return response

    async with serving(aiohttp_server, late, idle_timeout=10_000.0) as backend:
        turn = asyncio.get_running_loop().create_task(read_turn(backend, prompt()))
        await said.wait()
        await clock.put_forward(wait)
        more.set()
        assert merged(await turn) == events


@pytest.mark.parametrize("turns", [0, 1])
async def test_a_dead_connection_is_tried_again_if_it_was_kept(turns: int) -> None:
    """The server answers `turns` requests on a connection, and closes it at the next."""
    connections = 0
    events = b'data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(events)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        # A client that asks nothing more may just leave.
        with closing(writer), suppress(asyncio.IncompleteReadError):
            for turn in range(turns + 1):
                asked = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(asked.lower().partition(b"content-length: ")[2].split(b"\r")[0]))
                if turn < turns:
                    writer.write(head + events)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, ChatBackend(f"http://127.0.0.1:{port}/v1") as backend:
        seen = [await see_turn(backend) for _ in range(2)]
    if turns:
        assert seen == [Seen("Hi", "ended")] * 2
    else:
        assert seen == [Seen("", "backend_disconnected")] * 2
    assert connections == 2


@pytest.mark.parametrize(("told", "limit"), [(0, QUEUE * 100.0), (2, 100.0)])
async def test_silence_has_a_limit_that_is_larger_before_the_first_word(
    chat: ScriptedChat, clock: Clock, told: int, limit: float
) -> None:
    chat.push(Reply([Message("word " * 10)], hold_after=told, gate=asyncio.Event()))
    async with ChatBackend(chat.url, idle_timeout=100.0) as backend:
        turn = asyncio.get_running_loop().create_task(see_turn(backend))
        await chat.called.wait()
        await clock.put_forward(limit - 10)
        assert not turn.done()
        await clock.put_forward(20)
        assert (await turn).end == "backend_timeout"


async def test_the_end_of_the_proxy_is_told(chat: ScriptedChat) -> None:
    chat.push(Reply([Message("word " * 10)], hold_after=2, gate=asyncio.Event()))
    async with ChatBackend(chat.url) as backend:
        turn = asyncio.get_running_loop().create_task(see_turn(backend))
        await chat.called.wait()
    assert (await turn).end == "backend_unavailable"
    assert await code_of(backend) == "backend_unavailable"


async def test_what_a_server_would_not_take_is_remembered_for_that_model(
    chat: ScriptedChat, backend: ChatBackend
) -> None:
    def strict(body: Any) -> Reply | Refusal:
        if body["messages"][0]["role"] == "system" and body["model"] == "gemma":
            return Refusal(400, {"message": "System role not supported"})
        if "reasoning_effort" in body and body["model"] == "gemma":
            return Refusal(400, {"message": "gemma does not support thinking"})
        return chat.default

    chat.choose = strict
    for _ in range(2):
        await read_turn(backend, prompt("gemma", effort="low"))
        await read_turn(backend, prompt("qwen", effort="low"))
    asked = [(request.body["model"], len(request.body["messages"])) for request in chat.requests]
    assert asked == [("gemma", 2), ("gemma", 1), ("gemma", 1), ("qwen", 2), ("gemma", 1), ("qwen", 2)]
    assert ["reasoning_effort" in request.body for request in chat.requests] == [True, True, False, True, False, True]


async def test_the_effort_that_a_server_refuses_is_left_out_and_no_other(
    chat: ScriptedChat, backend: ChatBackend
) -> None:
    def strict(body: Any) -> Reply | Refusal:
        if body.get("reasoning_effort") == "minimal":
            return Refusal(400, {"message": "Unsupported value: 'reasoning_effort' does not support 'minimal'."})
        return chat.default

    chat.choose = strict
    for effort in ("minimal", "high", "minimal"):
        await read_turn(backend, prompt(effort=effort))
    assert [request.body.get("reasoning_effort") for request in chat.requests] == ["minimal", None, "high", None]


@pytest.mark.parametrize(("software", "asked"), [("llama.cpp", True), ("uvicorn", None)])
async def test_a_server_that_knows_how_far_it_is_is_asked_to_tell(
    aiohttp_server: AiohttpServer, software: str, asked: bool | None
) -> None:
    async def sign(_: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = software

    chat = ScriptedChat()
    chat.app.on_response_prepare.append(sign)
    server = await aiohttp_server(chat.app)
    async with ChatBackend(str(server.make_url("/v1"))) as backend:
        assert await backend.health() == Health(None, software if asked else None)
        await read_turn(backend, prompt())
    assert chat.requests[0].body.get("return_progress") == asked


@pytest.mark.parametrize("software", ["llama.cpp", "uvicorn"])
async def test_a_server_that_takes_a_grammar_is_given_that_of_calls(
    aiohttp_server: AiohttpServer, software: str
) -> None:
    """From the first request on; one that refuses it is asked without from then on."""

    async def sign(_: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = software

    chat = ScriptedChat()
    chat.app.on_response_prepare.append(sign)
    server = await aiohttp_server(chat.app)
    asked = prompt(call_schema='{"type": "object"}')
    async with ChatBackend(str(server.make_url("/v1"))) as backend:
        await read_turn(backend, asked)
        await read_turn(backend, prompt())
        if software == "llama.cpp":
            chat.push(Refusal(400, {"code": 400, "message": "Failed to initialize samplers: failed to parse grammar"}))
        for _ in range(2):
            await read_turn(backend, asked)
    held = [" text-0" in request.body.get("grammar", "") for request in chat.requests]
    assert held == ([True, False, True, False, False] if software == "llama.cpp" else [False] * 4)


async def test_that_answers_begin_inside_of_a_thought_is_remembered_for_that_model(
    chat: ScriptedChat, backend: ChatBackend
) -> None:
    def said(events: list[BackendEvent]) -> str:
        return "".join(event.text for event in events if isinstance(event, TextPiece))

    thinking = "Let me see.\n</think>\n\nHello."
    for model, text, shown in [
        ("m", thinking, thinking),  # what was shown stays
        ("m", thinking, "Hello."),
        ("other", "Hello.", "Hello."),
        ("m", "Hello.", "Hello."),  # it has stopped to think
        ("m", thinking, thinking),
        ("qwq:32b", thinking, "Hello."),  # by its name
    ]:
        chat.push(Reply([Message(text)]))
        assert said(await read_turn(backend, prompt(model))) == shown


async def test_of_a_model_that_is_asked_not_to_think_all_is_shown(chat: ScriptedChat, backend: ChatBackend) -> None:
    chat.push(Reply([Message("Let me see.\n</think>\n\nHello.")]))
    events = merged(await read_turn(backend, prompt("qwq:32b", effort="none")))
    assert events[0] == TextPiece("Let me see.\n</think>\n\nHello.")


async def test_no_stop_string_ends_the_thoughts_of_a_model(chat: ScriptedChat, backend: ChatBackend) -> None:
    def stopping(body: Any) -> Reply:
        text = "<think>One.\n\nTwo.</think>\n\nHello."
        return Reply([Message(text.split(body["stop"][0], maxsplit=1)[0] if "stop" in body else text)])

    chat.choose = stopping
    for model in ("m", "m", "qwq"):
        await read_turn(backend, prompt(model, stop=["\n\n"]))
    # The first answer tells that the model thinks; the last one's name does.
    assert ["stop" in request.body for request in chat.requests] == [True, False, False]


async def test_what_helps_nothing_is_not_remembered(chat: ScriptedChat, backend: ChatBackend) -> None:
    refused = Refusal(400, {"message": "System role not supported"})
    chat.push(refused, refused)
    assert await code_of(backend) == "invalid_prompt"
    await read_turn(backend, prompt())
    assert [len(request.body["messages"]) for request in chat.requests] == [2, 1, 2]


async def test_who_asks_for_the_models_of_a_backend_that_was_left_gets_its_error(chat: ScriptedChat) -> None:
    async with ChatBackend(chat.url) as backend:
        pass
    with pytest.raises(BackendError):
        await backend.models()


async def test_the_models_of_the_server_stand_behind_those_that_are_named(chat: ScriptedChat) -> None:
    chat.models = ("a", "b")
    async with ChatBackend(chat.url, models=("b", "c")) as backend:
        assert [model.id for model in await backend.models()] == ["b", "c", "a"]
