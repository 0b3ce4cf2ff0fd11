"""What only a scripted app-server shows of a connection: its loss, its silence, its successor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from proxy.backends.codex import LaneBounds
from proxy.backends.codex.session import MOST_PAGES
from proxy.contracts import TextPiece
from proxy.errors import BackendError
from proxy.rpc import RpcObject
from tests.support.backend_events import prompt, read_turn
from tests.support.fake_app_server import RefusedError
from tests.support.scripted_codex import AT, Server, backend, outcome
from tests.support.virtual_clock import on_a_virtual_clock


@on_a_virtual_clock
async def test_a_lost_turn_that_told_nothing_runs_on_the_next_connection() -> None:
    first, second = Server(), Server()
    with capture_logs() as logs:
        async with backend(first, second) as it, it.stream(prompt()) as batches:
            await first.wait_for("turn/start")
            first.end()
            await second.wait_for("turn/start")
            second.say("hello")
            assert await anext(batches) == [TextPiece("hello")]
    assert next(log["busy"] for log in logs if log["event"] == "codex_session_over") is True


@on_a_virtual_clock
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


@on_a_virtual_clock
async def test_a_turn_is_tried_twice_at_most() -> None:
    servers = [Server() for _ in range(3)]
    for server in servers:
        server.handlers["turn/start"] = ending(server)
    async with backend(*servers) as it:
        with pytest.raises(BackendError):
            await read_turn(it, prompt())
    assert [len(server.requests("turn/start")) for server in servers] == [1, 1, 0]


def ending(server: Server) -> Callable[[RpcObject], None]:
    return lambda params: server.end()


@on_a_virtual_clock
async def test_turns_left_behind_by_a_lost_connection_are_ended_by_the_next() -> None:
    first, second = Server(), Server()
    async with backend(first, second, turns_outlive_connection=True) as it, it.stream(prompt()) as batches:
        await first.wait_for("turn/start")
        first.say("hel")
        await anext(batches)
        first.end()
        assert (await second.wait_for("turn/interrupt"))["params"] == AT


@on_a_virtual_clock
async def test_a_running_turn_is_interrupted_before_the_connection_is_closed() -> None:
    server = Server()
    async with backend(server) as it:
        stream = it.stream(prompt())
        await stream.__aenter__()
        await server.wait_for("turn/start")
    assert server.requests("turn/interrupt")


@on_a_virtual_clock
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


@on_a_virtual_clock
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


@on_a_virtual_clock
async def test_models_come_from_every_page_without_the_hidden() -> None:
    pages: dict[str | None, RpcObject] = {
        None: {"data": [{"id": "a"}, {"id": "b", "hidden": True}], "nextCursor": "2"},
        "2": {"data": [{"id": "c"}, {"id": "mine"}, {"id": ""}], "nextCursor": None},
    }
    server = Server()
    server.handlers["model/list"] = lambda params: pages[params.get("cursor")]
    async with backend(server, models=("mine",)) as it:
        assert [model.id for model in await it.models()] == ["mine", "a", "c"]


@on_a_virtual_clock
async def test_a_list_without_a_last_page_is_read_no_further_than_lists_go() -> None:
    server = Server()
    server.handlers["model/list"] = lambda params: {"data": [{"id": "a"}], "nextCursor": "2"}
    async with backend(server) as it:
        assert [model.id for model in await it.models()] == ["a"]
        assert len(server.requests("model/list")) == MOST_PAGES


@on_a_virtual_clock
async def test_a_list_that_never_comes_leaves_the_configured_models() -> None:
    server = Server()
    server.handlers["model/list"] = lambda params: None
    async with backend(server, models=("mine",)) as it:
        assert [model.id for model in await it.models()] == ["mine"]


@on_a_virtual_clock
async def test_an_app_server_that_says_nothing_while_turns_are_open_is_probed_and_replaced() -> None:
    """Long before the turn's own silence counts."""
    deaf, next_one = Server(), Server()
    async with backend(deaf, next_one) as it, it.stream(prompt()) as batches:
        await deaf.wait_for("turn/start")
        deaf.handlers["thread/loaded/list"] = lambda params: None
        await next_one.wait_for("turn/start")
        assert asyncio.get_running_loop().time() == 35
        next_one.say("hello")
        assert await anext(batches) == [TextPiece("hello")]
    assert deaf.aborted


@on_a_virtual_clock
async def test_an_app_server_that_answers_the_probe_is_left_to_think() -> None:
    server = Server()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        await server.wait_for("thread/loaded/list", 5)
        server.say("hm")
        assert await anext(batches) == [TextPiece("hm")]


@on_a_virtual_clock
async def test_an_idle_app_server_is_not_probed() -> None:
    server = Server()
    async with backend(server) as it:
        await it.health()
        await asyncio.sleep(1000)
    assert not server.requests("thread/loaded/list")


@on_a_virtual_clock
async def test_an_app_server_that_grew_too_large_is_succeeded_and_ends_with_its_turns() -> None:
    first, second = Server(), Server()
    first.size = 2**30 + 1
    second.size = 2**30
    async with backend(first, second) as it, it.stream(prompt()) as batches:
        await first.wait_for("turn/start")
        await second.wait_for("initialize")
        assert not first.closed.is_set()
        first.say("still here")
        first.complete()
        assert TextPiece("still here") in [event async for batch in batches for event in batch]
        await first.closed.wait()
        await asyncio.sleep(100)
        assert not second.closed.is_set()


@on_a_virtual_clock
async def test_a_turn_left_behind_before_it_had_a_name_is_ended_too() -> None:
    first, second = Server(), Server()
    first.handlers["turn/start"] = lambda params: None
    async with backend(first, second, turns_outlive_connection=True) as it, it.stream(prompt()) as batches:
        await first.wait_for("turn/start")
        first.end()
        await second.wait_for("turn/start")
        assert second.requests("turn/interrupt")[0]["params"] == {"threadId": "t1", "turnId": ""}
        methods = [message.get("method") for message in second.received]
        assert methods.index("turn/interrupt") < methods.index("thread/start")
        second.say("hello")
        assert await anext(batches) == [TextPiece("hello")]


@on_a_virtual_clock
async def test_a_childs_last_words_are_not_for_clients() -> None:
    class Talkative(Server):
        def describe_end(self) -> str:
            return "exit status 1: somebody's prompt"

    servers = [Talkative(), Talkative()]
    for server in servers:
        server.handlers["thread/start"] = ending(server)
    async with backend(*servers) as it:
        error = await outcome(it)
    assert error.code == "backend_disconnected"
    assert "prompt" not in error.message


@on_a_virtual_clock
async def test_after_the_end_a_turn_is_refused() -> None:
    server = Server()
    async with backend(server) as it:
        await it.health()
    error = await outcome(it)
    assert (error.status, error.code) == (503, "backend_unavailable")


@on_a_virtual_clock
async def test_at_the_end_running_turns_are_told_that_it_is_the_end() -> None:
    server = Server()
    it = backend(server)
    async with asyncio.TaskGroup() as group:
        async with it:
            turn = group.create_task(outcome(it))
            await server.wait_for("turn/start")
    error = turn.result()
    assert (error.status, error.message) == (503, "The proxy is shutting down.")
    assert len(server.requests("turn/start")) == 1


CHATGPT = {"account": {"type": "chatgpt", "email": "a@b.c", "planType": "plus"}, "requiresOpenaiAuth": True}
QUOTA = {"rateLimits": {"limitId": "codex", "primary": {"usedPercent": 40, "windowDurationMins": 300}}}


def refuse(params: RpcObject) -> RpcObject:
    raise RefusedError(-32600, "codex account authentication required to read rate limits")


def with_quota(login: RpcObject = CHATGPT) -> Server:
    server = Server()
    server.handlers["account/read"] = lambda params: login
    server.handlers["account/rateLimits/read"] = lambda params: QUOTA
    return server


@on_a_virtual_clock
async def test_the_quota_of_a_login_is_read_at_once_and_kept_up_to_date() -> None:
    server = with_quota()
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        assert [quota.windows[0].left_percent for quota in it.load().quota] == [60]
        server.tell("account/rateLimits/updated", rateLimits={"limitId": "codex", "primary": {"usedPercent": 41}})
        server.say("hello")
        await anext(batches)
        assert [quota.windows[0].left_percent for quota in it.load().quota] == [59]


@on_a_virtual_clock
@pytest.mark.parametrize("login", [{"type": "apiKey"}, None])
async def test_who_has_no_chatgpt_login_is_asked_for_no_quota(login: RpcObject | None) -> None:
    server = with_quota({"account": login, "requiresOpenaiAuth": False})
    async with backend(server) as it, it.stream(prompt()):
        await server.wait_for("turn/start")
        assert it.load().quota == ()
    assert not server.requests("account/rateLimits/read")


@on_a_virtual_clock
async def test_an_app_server_that_tells_no_quota_takes_turns_all_the_same() -> None:
    server = with_quota()
    server.handlers["account/rateLimits/read"] = refuse
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        server.say("hello")
        assert await anext(batches) == [TextPiece("hello")]
        assert it.load().quota == ()


@on_a_virtual_clock
async def test_the_next_connection_knows_the_quota_of_the_same_login_and_not_of_another() -> None:
    first, same, another = with_quota(), with_quota(), with_quota({"account": {"type": "apiKey"}})
    same.handlers["account/rateLimits/read"] = refuse
    async with backend(first, same, another) as it:
        await first.wait_for("account/rateLimits/read")
        await it.health()
        first.end()
        await same.wait_for("account/rateLimits/read")
        await it.health()
        assert [quota.windows[0].left_percent for quota in it.load().quota] == [60]
        same.end()
        await another.wait_for("account/read")
        await it.health()
        assert it.load().quota == ()


@on_a_virtual_clock
async def test_an_app_server_below_every_floor_is_no_backend_and_says_what_to_do() -> None:
    servers = [Server() for _ in range(5)]
    for server in servers:
        server.handlers["initialize"] = lambda params: {"userAgent": "tagcall/0.42.0 (x)"}
    async with backend(*servers) as it:
        with pytest.raises(BackendError, match=r"codex 0\.42\.0 is too old: npm install -g @openai/codex") as failed:
            await read_turn(it, prompt())
    assert failed.value.code == "backend_unavailable"
    assert not any(server.requests("thread/start") for server in servers)


@on_a_virtual_clock
@pytest.mark.parametrize(("version", "told"), [("0.159.0", True), ("0.169.0", False)])
async def test_an_app_server_that_takes_no_outputs_of_tools_is_told_of(version: str, told: bool) -> None:
    server = Server()
    server.handlers["initialize"] = lambda params: {"userAgent": f"tagcall/{version} (x)"}
    with capture_logs() as logs:
        async with backend(server, lanes=LaneBounds(), results_as_outputs=True) as it, it.stream(prompt()) as batches:
            await server.wait_for("turn/start")
            server.complete()
            assert [event async for batch in batches for event in batch]
    assert [line["version"] for line in logs if line["event"] == "codex_takes_no_tool_outputs"] == [version] * told
