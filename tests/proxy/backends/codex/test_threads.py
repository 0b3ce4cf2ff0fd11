"""What only a scripted app-server shows of a turn: silence, refusals, and the order of things."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from prompts import Item, Text
from proxy.backends.codex import LaneBounds
from proxy.backends.event_queue import MAX_BACKLOG
from proxy.contracts import MessageEnded, Prompt, TextBackend, TextPiece, TurnEnded
from proxy.errors import BackendError
from proxy.rpc import RpcObject
from proxy.tracing import CURRENT, NO_TRACE, Trace
from tests.support.backend_events import merged, prompt, read_turn
from tests.support.fake_app_server import RefusedError
from tests.support.scripted_codex import AT, Server, backend, outcome
from tests.support.virtual_clock import on_a_virtual_clock


@on_a_virtual_clock
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


@on_a_virtual_clock
async def test_a_turn_belongs_to_the_trace_of_its_request() -> None:
    server = Server()
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    async with backend(server) as it:
        for trace in (Trace(parent), NO_TRACE):
            CURRENT.set(trace)
            async with it.stream(prompt()):
                await server.wait_for("turn/start", 1 if trace.parent else 2)
    first, second = server.requests("turn/start")
    assert first["trace"] == {"traceparent": parent}
    assert "trace" not in second


@on_a_virtual_clock
async def test_a_version_without_environments_is_asked_once() -> None:
    server = Server()
    start = server.handlers["thread/start"]

    def refuse_environments(params: RpcObject) -> RpcObject | None:
        if "environments" in params:
            raise RefusedError(-32600, "thread/start.environments requires experimentalApi capability")
        return start(params)

    server.handlers["thread/start"] = refuse_environments
    async with backend(server) as it:
        for count in (1, 2):
            async with it.stream(prompt()):
                await server.wait_for("turn/start", count)
    assert ["environments" in request["params"] for request in server.requests("thread/start")] == [True, False, False]


@on_a_virtual_clock
async def test_lines_that_come_before_the_turns_answer_count() -> None:
    server = Server()

    def answer_late(params: RpcObject) -> RpcObject:
        server.say("early")
        return {"turn": {"id": "1"}}

    server.handlers["turn/start"] = answer_late
    async with backend(server) as it, it.stream(prompt()) as batches:
        assert await anext(batches) == [TextPiece("early")]


@on_a_virtual_clock
@pytest.mark.parametrize(("second", "told"), [("2", "new"), ("1", "late new")], ids=["own ids", "ids used again"])
async def test_a_late_line_of_the_turn_before_on_the_same_thread_is_not_taken_for_one_of_the_next(
    second: str, told: str
) -> None:
    server = Server()
    items = [
        Item("user", (Text("hi"),), b"1"),
        Item("assistant", (Text("yes"),), b"2"),
        Item("user", (Text("go"),), b"3"),
    ]
    async with backend(server, lanes=LaneBounds()) as it:
        first = replace(prompt(), items=items[:1])
        async with it.stream(first) as batches:
            await server.wait_for("turn/start")
            server.say("yes")
            server.complete()
            assert [event async for batch in batches for event in batch]
            first.continuation.settle(frozenset({b"2"}))

        def answer(params: RpcObject) -> RpcObject:
            server.say("late ")
            return {"turn": {"id": second}}

        server.handlers["turn/start"] = answer
        async with it.stream(replace(prompt(), items=items)) as batches:
            await server.wait_for("turn/start", 2)
            server.tell("item/agentMessage/delta", threadId="t1", turnId=second, itemId="m", delta="new")
            server.tell("turn/completed", threadId="t1", turn={"id": second, "status": "completed"})
            events = [event async for batch in batches for event in batch]
    assert len(server.requests("thread/start")) == 1
    assert merged(events)[0] == TextPiece(told)


@on_a_virtual_clock
async def test_leaving_before_the_turn_was_answered_interrupts_it_then() -> None:
    server = Server()
    server.handlers["turn/start"] = lambda params: None
    async with backend(server) as it:
        async with it.stream(prompt()):
            request = await server.wait_for("turn/start")
        assert not server.requests("turn/interrupt")
        server.write({"id": request["id"], "result": {"turn": {"id": "1"}}})
        assert (await server.wait_for("turn/interrupt"))["params"] == AT


@on_a_virtual_clock
async def test_leaving_before_the_thread_was_answered_starts_no_turn() -> None:
    server = Server()
    server.handlers["thread/start"] = lambda params: None
    async with backend(server) as it:
        async with it.stream(prompt()):
            request = await server.wait_for("thread/start")
        server.write({"id": request["id"], "result": {"thread": {"id": "t1", "ephemeral": True}}})
        await it.models()
    assert not server.requests("turn/start")


@on_a_virtual_clock
async def test_a_turn_that_ended_is_not_interrupted() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.say("done")
        server.complete()
        events = [event async for batch in batches for event in batch]
    assert events == [TextPiece("done"), MessageEnded(), TurnEnded(None)]
    assert not server.requests("turn/interrupt")


@on_a_virtual_clock
async def test_a_thread_that_leaves_a_trace_is_archived() -> None:
    server = Server(ephemeral=None)
    async with backend(server) as it:
        async with it.stream(prompt()):
            await server.wait_for("turn/start")
        assert (await server.wait_for("thread/archive"))["params"] == {"threadId": "t1"}


@on_a_virtual_clock
async def test_an_item_of_another_kind_is_stopped_at_codex() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.tell("item/started", **AT, item={"type": "commandExecution", "id": "c"})
        with pytest.raises(BackendError) as failed:
            await anext(batches)
        await server.wait_for("turn/interrupt")
    assert failed.value.code == "backend_not_text_only"


@on_a_virtual_clock
async def test_a_harmless_item_is_passed_over_and_logged_once() -> None:
    server = Server()
    with capture_logs() as logs:
        async with backend(server) as it, it.stream(prompt()) as batches:
            await server.wait_for("turn/start")
            for state in ("started", "completed"):
                server.tell(f"item/{state}", **AT, item={"type": "hookPrompt", "id": "h"})
            server.say("done")
            server.complete()
            events = [event async for batch in batches for event in batch]
    assert events == [TextPiece("done"), MessageEnded(), TurnEnded(None)]
    assert [entry["kind"] for entry in logs if entry["event"] == "codex_item_passed_over"] == ["hookPrompt"]


@on_a_virtual_clock
@pytest.mark.parametrize("kind", ["hookPrompt", None])
async def test_nothing_goes_on_from_an_answer_beside_which_something_was_passed_over(kind: str | None) -> None:
    """The thread holds what no client knows of."""
    server = Server()
    asked = replace(prompt(), items=(Item("user", (Text("hi"),), b"1"),))
    async with backend(server, lanes=LaneBounds()) as it, it.stream(asked) as batches:
        await server.wait_for("turn/start")
        if kind is not None:
            server.tell("item/started", **AT, item={"type": kind, "id": "h"})
        server.say("done")
        server.complete()
        assert [event async for batch in batches for event in batch]
        asked.continuation.settle(frozenset({b"2"}))
        if kind is not None:
            await server.wait_for("thread/unsubscribe")
        else:
            assert not server.requests("thread/unsubscribe")


@on_a_virtual_clock
@pytest.mark.parametrize(("whole", "goes_on"), [("done", True), ("", True), ("done, and more", True), ("Done.", False)])
async def test_nothing_goes_on_from_an_answer_that_is_another_one_in_the_end(whole: str, goes_on: bool) -> None:
    server = Server()
    asked = replace(prompt(), items=(Item("user", (Text("hi"),), b"1"),))
    async with backend(server, lanes=LaneBounds()) as it, it.stream(asked) as batches:
        await server.wait_for("turn/start")
        server.tell("item/started", **AT, item={"type": "agentMessage", "id": "m", "text": ""})
        server.tell("item/agentMessage/delta", **AT, itemId="m", delta="done")
        server.tell("item/completed", **AT, item={"type": "agentMessage", "id": "m", "text": whole})
        server.complete()
        assert [event async for batch in batches for event in batch]
        asked.continuation.settle(frozenset({b"2"}))
        if not goes_on:
            await server.wait_for("thread/unsubscribe")
        else:
            assert not server.requests("thread/unsubscribe")


def conversation(name: str, *answers: str) -> Prompt:
    """One of this name, with these answers so far, and a question."""
    items = [Item("user", (Text(name),), name.encode())]
    for answer in answers:
        items += [Item("assistant", (Text(answer),), answer.encode()), Item("user", (Text("go on"),), b"go on")]
    return replace(prompt(), items=items)


async def answered(it: TextBackend, server: Server, asked: Prompt, answer: str, turns: int) -> None:
    """Its turn is the server's `turns`th, and its conversation may go on from it."""
    async with it.stream(asked) as batches:
        await server.wait_for("turn/start", turns)
        server.say(answer)
        server.complete()
        assert [event async for batch in batches for event in batch]
        asked.continuation.settle(frozenset({answer.encode()}))


@on_a_virtual_clock
async def test_a_worn_app_server_keeps_its_conversations_until_nobody_comes_back_to_them() -> None:
    first, second = Server(), Server()
    async with backend(first, second, lanes=LaneBounds(idle=1000), thread_limit=1) as it:
        await answered(it, first, conversation("one"), "a", 1)
        begun = conversation("two")
        async with it.stream(begun):
            await second.wait_for("turn/start")
        went_on = conversation("one", "a")
        await answered(it, first, went_on, "b", 2)
        assert went_on.continuation.lane is not None
        assert went_on.continuation.lane.continued
        assert len(first.requests("thread/start")) == 1
        assert not first.closed.is_set()
        await asyncio.sleep(2000)
        assert first.closed.is_set()


@on_a_virtual_clock
async def test_of_the_worn_ones_the_last_alone_keeps_its_conversations() -> None:
    first, second, third = Server(), Server(), Server()
    async with backend(first, second, third, lanes=LaneBounds(idle=1000), thread_limit=1) as it:
        for server, name in ((first, "one"), (second, "two"), (third, "three")):
            await answered(it, server, conversation(name), "a", 1)
        await first.closed.wait()
        assert not second.closed.is_set()
        await answered(it, second, conversation("two", "a"), "b", 2)


@on_a_virtual_clock
async def test_silence_ends_the_turn_and_interrupts_it() -> None:
    server = Server()
    async with backend(server) as it:
        with pytest.raises(BackendError) as failed:
            await read_turn(it, prompt())
        await server.wait_for("turn/interrupt")
    assert (failed.value.status, failed.value.code) == (504, "backend_timeout")


@on_a_virtual_clock
async def test_an_app_server_that_does_not_react_is_replaced() -> None:
    deaf, next_one = Server(), Server()
    deaf.handlers |= {"turn/interrupt": lambda params: None, "thread/loaded/list": lambda params: None}
    async with backend(deaf, next_one) as it:
        async with it.stream(prompt()):
            await deaf.wait_for("turn/start")
        await deaf.wait_for("thread/loaded/list")
        await next_one.wait_for("initialize")
    assert deaf.closed.is_set()


@on_a_virtual_clock
async def test_an_app_server_that_answers_and_does_not_end_a_turn_ends_with_its_other_turns() -> None:
    """It is not killed for one stuck turn, and the stuck turn does not run on for ever."""
    stuck, next_one = Server(), Server()
    stuck.handlers["turn/interrupt"] = lambda params: None
    async with backend(stuck, next_one) as it, it.stream(prompt()) as batches:
        await stuck.wait_for("turn/start")
        async with it.stream(prompt()):
            await stuck.wait_for("turn/start", 2)
        await stuck.wait_for("thread/loaded/list")
        assert len(stuck.requests("turn/interrupt")) == 5
        await next_one.wait_for("initialize")
        assert not stuck.closed.is_set()
        stuck.say("not hurt")
        stuck.complete()
        assert TextPiece("not hurt") in [event async for batch in batches for event in batch]
        await stuck.closed.wait()
        assert not stuck.aborted


@on_a_virtual_clock
async def test_an_unanswered_thread_is_asked_for_at_the_next_app_server() -> None:
    deaf, next_one = Server(), Server()
    deaf.handlers |= {"thread/start": lambda params: None, "thread/loaded/list": lambda params: None}
    async with backend(deaf, next_one) as it, it.stream(prompt()) as batches:
        await next_one.wait_for("turn/start")
        next_one.say("hello")
        assert await anext(batches) == [TextPiece("hello")]
    assert deaf.aborted


@on_a_virtual_clock
async def test_a_turn_that_is_never_answered_is_told_once_it_is_given_up_everywhere() -> None:
    servers = [Server() for _ in range(3)]
    for server in servers:
        server.handlers["turn/start"] = lambda params: None
    async with backend(*servers) as it:
        with pytest.raises(BackendError) as failed:
            await read_turn(it, prompt())
    assert (failed.value.status, failed.value.code) == (504, "backend_timeout")
    assert [len(server.requests("turn/start")) for server in servers] == [1, 1, 0]
    # Whatever may run there all the same.
    assert servers[0].requests("turn/interrupt")[0]["params"] == {"threadId": "t1", "turnId": ""}


@on_a_virtual_clock
async def test_a_turn_whose_answer_alone_was_lost_goes_on() -> None:
    server = Server()
    server.handlers["turn/start"] = lambda params: None
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.say("one")
        assert await anext(batches) == [TextPiece("one")]
        await asyncio.sleep(60)  # of the virtual clock: past every deadline but the turn's own
        server.say("two")
        server.complete()
        assert await anext(batches) == [TextPiece("two"), MessageEnded(), TurnEnded(None)]
    assert not server.requests("turn/interrupt")


@on_a_virtual_clock
async def test_leaving_a_turn_that_its_first_line_made_known_interrupts_it_at_once() -> None:
    server = Server()
    server.handlers["turn/start"] = lambda params: None
    async with backend(server) as it:
        async with it.stream(prompt()) as batches:
            await server.wait_for("turn/start")
            server.say("one")
            await anext(batches)
        left = asyncio.get_running_loop().time()
        assert (await server.wait_for("turn/interrupt"))["params"] == AT
        assert asyncio.get_running_loop().time() == left


@on_a_virtual_clock
async def test_a_consumer_that_does_not_read_loses_its_turn() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.say("x" * (MAX_BACKLOG + 1))
        await asyncio.sleep(1)
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
@on_a_virtual_clock
async def test_a_refusal_has_its_answer(case: str) -> None:
    method, refusal, expected = REFUSALS[case]
    server = Server()
    server.handlers[method] = refusing(refusal)
    async with backend(server) as it:
        with pytest.raises(BackendError) as failed:
            await read_turn(it, prompt())
    assert (failed.value.status, failed.value.code) == expected


def refusing(refusal: RefusedError) -> Callable[[RpcObject], None]:
    def refuse(params: RpcObject) -> None:
        raise refusal

    return refuse


@on_a_virtual_clock
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


@on_a_virtual_clock
async def test_what_codex_asks_is_answered_and_not_granted() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()):
        await server.wait_for("turn/start")
        server.write({"id": 0, "method": "item/commandExecution/requestApproval", "params": AT})
        await it.health()
        await asyncio.sleep(0)
    assert {"id": 0, "result": {"decision": "decline"}} in server.received


@on_a_virtual_clock
async def test_a_turn_that_never_stops_talking_is_stopped_all_the_same() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches, asyncio.TaskGroup() as group:
        await server.wait_for("turn/start")

        async def talk() -> None:
            while True:
                server.say("and ")
                await asyncio.sleep(100)

        talking = group.create_task(talk())
        with pytest.raises(BackendError, match="not over within 3600 s"):
            [_ async for _ in batches]
        await server.wait_for("turn/interrupt")
        talking.cancel()


@on_a_virtual_clock
async def test_a_turn_that_asks_for_the_unknown_and_falls_silent_is_stopped() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.write({"id": 7, "method": "something/new", "params": AT})
        with pytest.raises(BackendError, match="something/new"):
            await anext(batches)
        assert asyncio.get_running_loop().time() == 5
        await server.wait_for("turn/interrupt")
    assert [message["error"]["code"] for message in server.received if message.get("id") == 7] == [-32601]


@on_a_virtual_clock
async def test_a_turn_that_asks_for_the_unknown_and_goes_on_is_let() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.write({"id": 7, "method": "something/new", "params": AT})
        server.say("never mind")
        await asyncio.sleep(60)
        server.complete()
        assert [event async for batch in batches for event in batch][-1] == TurnEnded(None)


@on_a_virtual_clock
async def test_too_many_requests_are_sent_away_with_a_time_to_try_again() -> None:
    server = Server()
    server.handlers["thread/start"] = lambda params: None
    async with backend(server) as it:
        async with asyncio.TaskGroup() as group:
            turns = [group.create_task(outcome(it)) for _ in range(400)]
            await server.wait_for("thread/start", 32)
            await asyncio.sleep(1)
            assert len(server.requests("thread/start")) == 32
            for turn in turns[:100]:
                turn.cancel()
            errors = [await turn for turn in turns[300:]]
            for turn in turns:
                turn.cancel()
    assert {(error.status, error.code, error.retry_after) for error in errors} == {(429, "rate_limit_exceeded", 1)}
