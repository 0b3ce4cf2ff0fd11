from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import orjson
import pytest
from structlog.testing import capture_logs

from proxy.rpc import (
    Message,
    RequestLimit,
    RpcAnswerError,
    RpcBusyError,
    RpcClient,
    RpcClosedError,
    RpcDeadlineError,
    RpcObject,
    SkipCounter,
    UnknownMethodError,
)
from proxy.rpc import client as client_module
from tests.support.fake_app_server import FakeAppServer, RefusedError
from tests.support.patience import PATIENCE
from tests.support.virtual_clock import on_a_virtual_clock


def running(
    server: FakeAppServer,
    on_notification: Callable[[str, RpcObject], None] = lambda method, params: None,
    answer: Callable[[str, RpcObject], object] = lambda method, params: {},
    limit: RequestLimit | None = None,
) -> AbstractAsyncContextManager[RpcClient]:
    client = RpcClient(server, on_notification=on_notification, answer=answer, limit=limit)
    return client.running()


def never(params: RpcObject) -> None:
    return None


async def test_a_request_gets_its_own_answer() -> None:
    server = FakeAppServer(double=lambda params: {"n": 2 * params["n"]})
    async with running(server) as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(client.request("double", {"n": n}, deadline=PATIENCE)) for n in range(100)]
    assert [task.result() for task in tasks] == [{"n": 2 * n} for n in range(100)]


async def test_an_error_answer_is_raised_with_its_parts() -> None:
    def refuse(params: RpcObject) -> None:
        raise RefusedError(-32602, "too large", {"max": 1})

    async with running(FakeAppServer(ask=refuse)) as client:
        with pytest.raises(RpcAnswerError) as failed:
            await client.request("ask", deadline=PATIENCE)
    assert (failed.value.code, failed.value.message, failed.value.data) == (-32602, "too large", {"max": 1})


async def test_silence_ends_at_the_deadline() -> None:
    async with running(FakeAppServer(ask=never)) as client:
        with pytest.raises(RpcDeadlineError, match="ask"):
            await client.request("ask", deadline=0.01)


async def test_an_answer_after_its_deadline_is_dropped() -> None:
    server = FakeAppServer(ask=never)
    async with running(server) as client:
        with pytest.raises(RpcDeadlineError):
            await client.request("ask", deadline=0.01)
        server.write({"id": server.requests("ask")[0]["id"], "result": {"late": True}})
        assert await client.request("next", deadline=PATIENCE) == {}


async def test_requests_in_flight_are_bounded_and_go_in_order() -> None:
    server = FakeAppServer(ask=never)
    async with running(server, limit=RequestLimit(2)) as client, asyncio.TaskGroup() as group:
        for n in range(4):
            group.create_task(client.request("ask", {"n": n}, deadline=PATIENCE))
        await server.wait_for("ask", 2)
        await asyncio.sleep(0)
        assert [it["params"]["n"] for it in server.requests("ask")] == [0, 1]
        server.write({"id": 1, "result": {}}, {"id": 2, "result": {}})
        await server.wait_for("ask", 4)
        server.write({"id": 3, "result": {}}, {"id": 4, "result": {}})
    assert [it["params"]["n"] for it in server.requests("ask")] == [0, 1, 2, 3]


async def test_what_is_asked_is_sent_before_its_answer_is_waited_for() -> None:
    server = FakeAppServer(ask=never)
    async with running(server, limit=RequestLimit(1)) as client:
        at_once = [client.takes_at_once]
        answer = await client.ask("ask", deadline=PATIENCE)
        await server.wait_for("ask")
        at_once.append(client.takes_at_once)
        server.write({"id": 1, "result": {"done": True}})
        assert await answer == {"done": True}
        at_once.append(client.takes_at_once)
    assert [*at_once, client.takes_at_once] == [True, False, True, False]


async def test_what_cannot_be_sent_takes_no_place() -> None:
    async with running(FakeAppServer(), limit=RequestLimit(1)) as client:
        with pytest.raises(TypeError):
            await client.request("ask", {"at": object()}, deadline=PATIENCE)
        assert client.takes_at_once


async def test_a_posted_request_needs_no_slot_and_no_answer() -> None:
    server = FakeAppServer(ask=never, interrupt=never)
    async with running(server, limit=RequestLimit(1)) as client, asyncio.TaskGroup() as group:
        waiting = group.create_task(client.request("ask", deadline=PATIENCE))
        await server.wait_for("ask")
        client.post("interrupt", {"turn": "1"})
        assert (await server.wait_for("interrupt"))["params"] == {"turn": "1"}
        server.write({"id": 1, "result": {"done": True}})
    assert waiting.result() == {"done": True}


async def test_an_overloaded_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "OVERLOAD_BACKOFF", 0.0)
    refusals = iter(range(2))

    def busy_twice(params: RpcObject) -> RpcObject:
        if next(refusals, None) is not None:
            raise RefusedError(-32001)
        return {"at": "last"}

    async with running(FakeAppServer(ask=busy_twice)) as client:
        assert await client.request("ask", deadline=PATIENCE) == {"at": "last"}


async def test_a_server_that_stays_overloaded_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "OVERLOAD_BACKOFF", 0.0)

    def busy(params: RpcObject) -> None:
        raise RefusedError(-32001)

    server = FakeAppServer(ask=busy)
    async with running(server) as client:
        with pytest.raises(RpcAnswerError):
            await client.request("ask", deadline=PATIENCE)
    assert len(server.requests("ask")) == 8


@pytest.mark.parametrize("who", ["server", "client"])
async def test_the_end_fails_every_waiter_at_once(who: str) -> None:
    server = FakeAppServer(ask=never)

    async def ask(client: RpcClient) -> str:
        with pytest.raises(RpcClosedError) as failed:
            await client.request("ask", deadline=60)
        return str(failed.value)

    async with asyncio.timeout(PATIENCE), running(server) as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(client)) for _ in range(3)]
        await server.wait_for("ask", 3)
        if who == "server":
            server.end()
        else:
            await client.close()
    assert {task.result() for task in tasks} == {"the fake ended" if who == "server" else "closed on this side"}
    assert server.closed.is_set()


async def test_nothing_can_be_asked_after_the_end() -> None:
    async with running(FakeAppServer()) as client:
        await client.close()
        with pytest.raises(RpcClosedError):
            await client.request("ask", deadline=PATIENCE)
        with pytest.raises(RpcClosedError):
            client.post("ask")
        with pytest.raises(RpcClosedError):
            client.notify("tell")


async def test_what_was_queued_is_sent_before_the_end() -> None:
    server = FakeAppServer()
    async with running(server) as client:
        client.post("interrupt")
    assert server.requests("interrupt")


async def test_notifications_come_in_order_and_before_a_later_answer_is_seen() -> None:
    server = FakeAppServer(ask=never)
    heard: list[object] = []
    async with (
        running(server, lambda method, params: heard.append((method, params))) as client,
        asyncio.TaskGroup() as group,
    ):
        asked = group.create_task(client.request("ask", deadline=PATIENCE))
        await server.wait_for("ask")
        server.write({"method": "a", "params": {"n": 1}}, {"id": 1, "result": {}}, {"method": "b"})
        await asked
        assert heard == [("a", {"n": 1}), ("b", {})]


async def test_what_was_read_together_may_be_condensed_before_it_is_told() -> None:
    server = FakeAppServer()
    told: list[RpcObject] = []

    def keep_the_last(messages: list[Message]) -> list[Message]:
        return messages[-1:]

    def note(method: str, params: RpcObject) -> None:
        told.append(params)

    client = RpcClient(server, on_notification=note, condense=keep_the_last)
    async with client.running():
        server.write(*({"method": "said", "params": {"n": n}} for n in range(3)))
        server.tell("said", n=3)
        await client.request("ask", deadline=PATIENCE)
    assert told == [{"n": 2}, {"n": 3}]


async def test_the_other_sides_requests_are_answered_by_the_table_or_refused() -> None:
    def answer(method: str, params: RpcObject) -> object:
        if method != "approve":
            raise UnknownMethodError(method)
        return {"decision": "decline"}

    server = FakeAppServer()
    async with running(server, answer=answer) as client:
        server.write({"id": 0, "method": "approve", "params": {}}, {"id": "x", "method": "other"})
        await client.request("anything", deadline=PATIENCE)
    answers = [message for message in server.received if "method" not in message]
    assert answers[0] == {"id": 0, "result": {"decision": "decline"}}
    assert (answers[1]["id"], answers[1]["error"]["code"]) == ("x", -32601)


async def test_a_line_that_is_no_message_disturbs_nothing() -> None:
    server = FakeAppServer()
    async with running(server) as client:
        server.write([1, 2], "text")
        assert await client.request("ask", deadline=PATIENCE) == {}


async def test_what_the_body_raises_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with running(FakeAppServer()):
            raise ZeroDivisionError


async def test_a_line_that_crashes_its_reader_disturbs_nothing() -> None:
    def crash(method: str, params: RpcObject) -> None:
        raise ZeroDivisionError

    server = FakeAppServer()
    async with running(server, crash) as client:
        server.write({"method": "a"}, {"id": 0, "method": "b"})
        assert await client.request("ask", deadline=PATIENCE) == {}


@pytest.mark.parametrize("who", ["server", "client", "abort"])
async def test_the_end_is_told_once_and_before_the_transport_is_closed(who: str) -> None:
    server = FakeAppServer()
    ends: list[tuple[str, bool]] = []
    client = RpcClient(
        server,
        on_notification=lambda method, params: None,
        on_end=lambda reason: ends.append((reason, server.closed.is_set())),
    )
    async with client.running():
        await client.request("ask", deadline=PATIENCE)
        if who == "server":
            server.end()
            await server.closed.wait()
        elif who == "abort":
            client.abort("it is stuck")
    assert ends == [
        {
            "server": ("the fake ended", False),
            "client": ("closed on this side", False),
            "abort": ("it is stuck", False),
        }[who]
    ]
    assert server.aborted is (who == "abort")


async def test_lines_that_are_taken_at_once_stay_behind_those_that_wait() -> None:
    class Hasty(FakeAppServer):
        """Takes every third notification at once."""

        offered = 0

        def offer(self, line: bytes) -> bool:
            self.offered += 1
            message = orjson.loads(line)
            if "id" in message or self.offered % 3:
                return False
            self.received.append(message)
            return True

    server = Hasty()
    async with running(server) as client:
        for n in range(20):
            client.notify("count", {"n": n})
            if n % 4 == 3:
                await asyncio.sleep(0)
        await client.request("last", deadline=PATIENCE)
    assert [message["params"]["n"] for message in server.received if message["method"] == "count"] == [*range(20)]


async def test_who_asks_without_reading_the_answers_is_cut_off() -> None:
    class Deaf(FakeAppServer):
        async def send(self, line: bytes) -> None:
            await self.closed.wait()
            raise ConnectionResetError

    server = Deaf()
    async with running(server):
        server.write(*({"id": n, "method": "approve"} for n in range(client_module.MAX_UNSENT + 100)))
        async with asyncio.timeout(PATIENCE):
            await server.closed.wait()
    assert server.aborted


@on_a_virtual_clock
async def test_overload_is_waited_out_with_growing_jittered_pauses() -> None:
    at: list[float] = []

    def refuse(params: RpcObject) -> None:
        at.append(asyncio.get_running_loop().time())
        raise RefusedError(-32001)

    async with running(FakeAppServer(ask=refuse)) as client:
        with pytest.raises(RpcAnswerError):
            await client.request("ask", deadline=30)
    pauses = [after - before for before, after in itertools.pairwise(at)]
    assert len(pauses) == 7
    for k, pause in enumerate(pauses):
        assert 0.5 <= pause / (0.05 * 2**k) <= 1.0


@on_a_virtual_clock
async def test_a_deadline_begins_when_the_request_is_sent() -> None:
    server = FakeAppServer(ask=never, quick=never)
    server.patience = 100
    async with running(server, limit=RequestLimit(1)) as client, asyncio.TaskGroup() as group:
        first = group.create_task(client.request("ask", deadline=9))
        await server.wait_for("ask")
        second = group.create_task(client.request("quick", deadline=2))
        await asyncio.sleep(8)
        server.write({"id": 1, "result": {}})
        await server.wait_for("quick")
        await asyncio.sleep(1)
        server.write({"id": 2, "result": {"late": False}})
    assert (first.result(), second.result()) == ({}, {"late": False})


async def test_a_request_at_once_passes_the_limit_and_is_not_repeated() -> None:
    def busy(params: RpcObject) -> None:
        raise RefusedError(-32001)

    server = FakeAppServer(ask=never, probe=busy)
    async with running(server, limit=RequestLimit(1)) as client, asyncio.TaskGroup() as group:
        waiting = group.create_task(client.request("ask", deadline=PATIENCE))
        await server.wait_for("ask")
        with pytest.raises(RpcAnswerError):
            await client.request_at_once("probe", deadline=PATIENCE)
        server.write({"id": 1, "result": {}})
    assert waiting.result() == {}
    assert len(server.requests("probe")) == 1


async def pass_through(limit: RequestLimit, note: Callable[[], None], until: asyncio.Event) -> None:
    await limit.take()
    try:
        note()
        await until.wait()
    finally:
        limit.free()


@on_a_virtual_clock
async def test_who_came_first_goes_first() -> None:
    limit, order, until = RequestLimit(places=2), list[int](), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for n in range(6):
            group.create_task(pass_through(limit, lambda n=n: order.append(n), until))  # type: ignore[misc]
        await asyncio.sleep(1)
        assert order == [0, 1]
        until.set()
    assert order == list(range(6))


@on_a_virtual_clock
async def test_who_finds_the_queue_full_is_sent_away_at_once() -> None:
    limit, until = RequestLimit(places=1, queue=2), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(pass_through(limit, lambda: None, until))
        await asyncio.sleep(0)
        with pytest.raises(RpcBusyError, match="2 requests wait"):
            await limit.take()
        until.set()
    assert asyncio.get_running_loop().time() == 0
    await limit.take()


@on_a_virtual_clock
async def test_who_waits_too_long_is_sent_away() -> None:
    limit, until = RequestLimit(places=1, patience=10), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(pass_through(limit, lambda: None, until))
        await asyncio.sleep(0)
        with pytest.raises(RpcBusyError, match="within 10 s"):
            await limit.take()
        until.set()
    await limit.take()


@on_a_virtual_clock
async def test_who_gives_up_waiting_takes_no_place_along() -> None:
    limit, until = RequestLimit(places=1), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(pass_through(limit, lambda: None, until))
        waiting = group.create_task(pass_through(limit, lambda: None, until))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        until.set()
    async with asyncio.timeout(PATIENCE):
        await limit.take()


def test_all_are_counted_and_the_first_of_each_kind_is_a_warning() -> None:
    counter = SkipCounter("line_skipped")
    with capture_logs() as logs:
        for kind in ("junk", "junk", "overlong", "junk"):
            counter.add(kind, bytes=1)
    assert counter.counts == {"junk": 3, "overlong": 1}
    assert [(entry["kind"], entry["log_level"]) for entry in logs] == [
        ("junk", "warning"),
        ("junk", "debug"),
        ("overlong", "warning"),
        ("junk", "debug"),
    ]
