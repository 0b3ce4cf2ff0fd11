"""What only a scripted app-server shows: silence, refusals, lost connections, and the order of things."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from proxy.backends import CodexBackend, codex_session
from proxy.backends.codex_session import SessionOptions
from proxy.backends.inbox import MAX_BACKLOG
from proxy.contracts import MessageEnded, TextPiece, TurnEnded
from proxy.errors import BackendError
from proxy.rpc import JsonObject, Transport
from tests.support.backend_events import prompt, read_turn
from tests.support.fake_app_server import FakeAppServer, RefusedError

AT = {"threadId": "t1", "turnId": "1"}


class Server(FakeAppServer):
    """Starts threads t1, t2, ... and a turn "1" on each; the test tells the rest."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self.threads = 0

        def start_thread(params: JsonObject) -> JsonObject:
            self.threads += 1
            return {"thread": {"id": f"t{self.threads}", "ephemeral": True, **fields}}

        self.handlers = {
            "initialize": lambda params: {"userAgent": "tagcall/0.169.0 (x)"},
            "account/read": lambda params: {"account": None, "requiresOpenaiAuth": False},
            "model/list": lambda params: {"data": []},
            "thread/start": start_thread,
            "turn/start": lambda params: {"turn": {"id": "1"}},
            "turn/interrupt": self.interrupted,
        }

    def interrupted(self, params: JsonObject) -> None:
        """As 0.89: the turn ends, and the request is not answered."""
        self.tell("turn/completed", threadId=params["threadId"], turn={"id": params["turnId"], "status": "interrupted"})

    def say(self, text: str, thread: str = "t1") -> None:
        self.tell("item/agentMessage/delta", threadId=thread, turnId="1", itemId="m", delta=text)

    def complete(self, thread: str = "t1") -> None:
        self.tell("turn/completed", threadId=thread, turn={"id": "1", "status": "completed"})


class Servers:
    """Each connection reaches the next of these, and the last one for ever."""

    def __init__(self, *servers: Server) -> None:
        self.servers = servers
        self.connected = 0

    async def connect(self) -> Transport:
        self.connected += 1
        return self.servers[min(self.connected, len(self.servers)) - 1]


def backend(*servers: Server, models: tuple[str, ...] = (), **options: Any) -> CodexBackend:
    return CodexBackend(Servers(*servers).connect, SessionOptions(**options), models=models)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_session, "INTERRUPT_WAIT", 0.01)
    monkeypatch.setattr(codex_session, "PROBE_DEADLINE", 0.01)


async def test_a_thread_is_asked_for_text_alone() -> None:
    server = Server()
    async with backend(server, cwd="/empty") as it, it.stream(prompt("hi", model="m", developer="Be brief.")):
        await server.wait_for("turn/start")
    [greeting] = server.requests("initialize")
    assert greeting["params"]["capabilities"]["experimentalApi"] is True
    [thread] = server.requests("thread/start")
    assert thread["params"] == {
        "model": "m",
        "cwd": "/empty",
        "developerInstructions": "Be brief.",
        "approvalPolicy": "never",
        "sandbox": "read-only",
        "ephemeral": True,
        "environments": [],
    }
    [turn] = server.requests("turn/start")
    assert turn["params"] == {"threadId": "t1", "input": [{"type": "text", "text": "hi"}], "summary": "none"}


async def test_a_version_without_environments_is_asked_once() -> None:
    server = Server()
    start = server.handlers["thread/start"]

    def refuse_environments(params: JsonObject) -> JsonObject | None:
        if "environments" in params:
            raise RefusedError(-32600, "thread/start.environments requires experimentalApi capability")
        return start(params)

    server.handlers["thread/start"] = refuse_environments
    async with backend(server) as it:
        for count in (1, 2):
            async with it.stream(prompt()):
                await server.wait_for("turn/start", count)
    assert ["environments" in request["params"] for request in server.requests("thread/start")] == [True, False, False]


async def test_lines_that_come_before_the_turns_answer_count() -> None:
    server = Server()

    def answer_late(params: JsonObject) -> JsonObject:
        server.say("early")
        return {"turn": {"id": "1"}}

    server.handlers["turn/start"] = answer_late
    async with backend(server) as it, it.stream(prompt()) as batches:
        assert await anext(batches) == [TextPiece("early")]


async def test_leaving_before_the_turn_was_answered_interrupts_it_then() -> None:
    server = Server()
    server.handlers["turn/start"] = lambda params: None
    async with backend(server) as it:
        async with it.stream(prompt()):
            request = await server.wait_for("turn/start")
        assert not server.requests("turn/interrupt")
        server.write({"id": request["id"], "result": {"turn": {"id": "1"}}})
        assert (await server.wait_for("turn/interrupt"))["params"] == AT


async def test_leaving_before_the_thread_was_answered_starts_no_turn() -> None:
    server = Server()
    server.handlers["thread/start"] = lambda params: None
    async with backend(server) as it:
        async with it.stream(prompt()):
            request = await server.wait_for("thread/start")
        server.write({"id": request["id"], "result": {"thread": {"id": "t1", "ephemeral": True}}})
        await it.models()
    assert not server.requests("turn/start")


async def test_a_turn_that_ended_is_not_interrupted() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.say("done")
        server.complete()
        events = [event async for batch in batches for event in batch]
    assert events == [TextPiece("done"), MessageEnded(), TurnEnded(None)]
    assert not server.requests("turn/interrupt")


async def test_a_thread_that_leaves_a_trace_is_archived() -> None:
    server = Server(ephemeral=None)
    async with backend(server) as it:
        async with it.stream(prompt()):
            await server.wait_for("turn/start")
        assert (await server.wait_for("thread/archive"))["params"] == {"threadId": "t1"}


async def test_an_item_of_another_kind_is_stopped_at_codex() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.tell("item/started", **AT, item={"type": "commandExecution", "id": "c"})
        with pytest.raises(BackendError) as failed:
            await anext(batches)
        await server.wait_for("turn/interrupt")
    assert failed.value.code == "backend_not_text_only"


async def test_silence_ends_the_turn_and_interrupts_it() -> None:
    server = Server()
    async with backend(server, idle_timeout=0.02) as it:
        with pytest.raises(BackendError) as failed:
            await read_turn(it, prompt())
        await server.wait_for("turn/interrupt")
    assert (failed.value.status, failed.value.code) == (504, "backend_timeout")


async def test_an_app_server_that_does_not_react_is_replaced() -> None:
    deaf, next_one = Server(), Server()
    deaf.handlers |= {"turn/interrupt": lambda params: None, "thread/loaded/list": lambda params: None}
    async with backend(deaf, next_one) as it:
        async with it.stream(prompt()):
            await deaf.wait_for("turn/start")
        await deaf.wait_for("thread/loaded/list")
        await next_one.wait_for("initialize")
    assert deaf.closed.is_set()


async def test_an_app_server_that_still_answers_is_kept() -> None:
    server = Server()
    server.handlers["turn/interrupt"] = lambda params: None
    async with backend(server) as it:
        async with it.stream(prompt()):
            await server.wait_for("turn/start")
        await server.wait_for("thread/loaded/list")
        await it.models()
        assert not server.closed.is_set()
    assert len(server.requests("initialize")) == 1


async def test_a_thread_that_is_never_answered_replaces_the_app_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_session, "REQUEST_DEADLINE", 0.02)
    deaf, next_one = Server(), Server()
    deaf.handlers["thread/start"] = lambda params: None
    async with backend(deaf, next_one) as it:
        with pytest.raises(BackendError) as failed:
            await read_turn(it, prompt())
        await next_one.wait_for("initialize")
    assert failed.value.status == 504


async def test_a_consumer_that_does_not_read_loses_its_turn() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.say("x" * MAX_BACKLOG)
        server.say("y")
        await server.wait_for("turn/interrupt")
        with pytest.raises(BackendError, match="not read as fast"):
            [_ async for _ in batches]


REFUSALS: Mapping[str, tuple[str, RefusedError, tuple[int, str]]] = {
    "the prompt is too long": (
        "turn/start",
        RefusedError(-32602, "too long", {"input_error_code": "input_too_large"}),
        (400, "context_length_exceeded"),
    ),
    "the turn is not to its taste": (
        "turn/start",
        RefusedError(-32600, "unknown variant `minimal`"),
        (400, "invalid_prompt"),
    ),
    "it will start no thread": (
        "thread/start",
        RefusedError(-32600, "failed to load configuration"),
        (502, "backend_error"),
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_refusal_has_its_answer(case: str) -> None:
    method, refusal, expected = REFUSALS[case]
    server = Server()
    server.handlers[method] = refusing(refusal)
    async with backend(server) as it:
        with pytest.raises(BackendError) as failed:
            await read_turn(it, prompt())
    assert (failed.value.status, failed.value.code) == expected


def refusing(refusal: RefusedError) -> Callable[[JsonObject], None]:
    def refuse(params: JsonObject) -> None:
        raise refusal

    return refuse


async def test_lines_of_no_known_shape_or_place_disturb_no_turn() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.tell("item/started", **AT, item="no object")
        server.tell("item/completed", **AT)
        server.tell("turn/completed", threadId="t1")
        server.tell("item/agentMessage/delta", threadId="other", turnId="1", itemId="m", delta="not ours")
        server.tell("codex/event/agent_message", conversationId="t1", msg={})
        server.tell("something/new", **AT)
        server.say("ours")
        server.complete()
        assert TextPiece("ours") in [event async for batch in batches for event in batch]


async def test_what_codex_asks_is_answered_and_not_granted() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()):
        await server.wait_for("turn/start")
        server.write({"id": 0, "method": "item/commandExecution/requestApproval", "params": AT})
        await it.health()
        await asyncio.sleep(0)
    assert {"id": 0, "result": {"decision": "decline"}} in server.received


async def test_a_lost_turn_that_told_nothing_runs_on_the_next_connection() -> None:
    first, second = Server(), Server()
    async with backend(first, second) as it, it.stream(prompt()) as batches:
        await first.wait_for("turn/start")
        first.end()
        await second.wait_for("turn/start")
        second.say("hello")
        assert await anext(batches) == [TextPiece("hello")]


async def test_a_lost_turn_that_told_something_fails() -> None:
    first, second = Server(), Server()
    async with backend(first, second) as it, it.stream(prompt()) as batches:
        await first.wait_for("turn/start")
        first.say("hel")
        assert await anext(batches) == [TextPiece("hel")]
        first.end()
        with pytest.raises(BackendError) as failed:
            await anext(batches)
    assert (failed.value.status, failed.value.code) == (502, "backend_disconnected")
    assert not second.requests("turn/start")


async def test_a_turn_is_tried_twice_at_most() -> None:
    servers = [Server() for _ in range(3)]
    for server in servers:
        server.handlers["turn/start"] = ending(server)
    async with backend(*servers) as it:
        with pytest.raises(BackendError):
            await read_turn(it, prompt())
    assert [len(server.requests("turn/start")) for server in servers] == [1, 1, 0]


def ending(server: Server) -> Callable[[JsonObject], None]:
    return lambda params: server.end()


async def test_turns_left_behind_by_a_lost_connection_are_ended_by_the_next() -> None:
    first, second = Server(), Server()
    async with backend(first, second, turns_outlive_connection=True) as it, it.stream(prompt()) as batches:
        await first.wait_for("turn/start")
        first.say("hel")
        await anext(batches)
        first.end()
        assert (await second.wait_for("turn/interrupt"))["params"] == AT


async def test_a_running_turn_is_interrupted_before_the_connection_is_closed() -> None:
    server = Server()
    async with backend(server) as it:
        stream = it.stream(prompt())
        await stream.__aenter__()
        await server.wait_for("turn/start")
    assert server.requests("turn/interrupt")


async def test_after_its_last_thread_an_app_server_is_succeeded_and_ends_with_its_turns() -> None:
    first, second = Server(), Server()
    async with backend(first, second, thread_limit=1) as it, it.stream(prompt()) as batches:
        await first.wait_for("turn/start")
        async with it.stream(prompt()):
            await second.wait_for("turn/start")
        assert not first.closed.is_set()
        first.say("still here")
        first.complete()
        assert TextPiece("still here") in [event async for batch in batches for event in batch]
        await first.closed.wait()


async def test_a_new_login_is_taken_up(tmp_path: Path) -> None:
    login = tmp_path / "auth.json"
    first, second = Server(), Server()
    first.handlers["account/read"] = lambda params: {"account": None, "requiresOpenaiAuth": True}
    async with backend(first, second, login_file=login) as it:
        with pytest.raises(BackendError, match="tagcall login"):
            await read_turn(it, prompt())
        login.write_text("{}")
        assert (await it.health()).problem is None
    assert not first.requests("thread/start")


async def test_models_come_from_every_page_without_the_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: dict[str | None, JsonObject] = {
        None: {"data": [{"id": "a"}, {"id": "b", "hidden": True}], "nextCursor": "2"},
        "2": {"data": [{"id": "c"}, {"id": "mine"}, {"id": ""}], "nextCursor": None},
    }
    server = Server()
    server.handlers["model/list"] = lambda params: pages[params.get("cursor")]
    async with backend(server, models=("mine",)) as it:
        assert [model.id for model in await it.models()] == ["mine", "a", "c"]


async def test_a_list_that_never_comes_leaves_the_configured_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.backends.codex.MODELS_WAIT", 0.01)
    server = Server()
    server.handlers["model/list"] = lambda params: None
    async with backend(server, models=("mine",)) as it:
        assert [model.id for model in await it.models()] == ["mine"]
