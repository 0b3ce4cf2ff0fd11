"""Threads that are ready before they are asked for."""

from __future__ import annotations

import asyncio

import pytest

from proxy.backends.codex.spare_threads import GOOD_FOR
from proxy.contracts import BackendEvent, TextPiece
from proxy.errors import BackendError
from proxy.rpc import RpcObject
from tests.support.backend_events import prompt, read_turn
from tests.support.fake_app_server import RefusedError
from tests.support.scripted_codex import Server, backend
from tests.support.virtual_clock import on_a_virtual_clock

BRIEF = prompt(developer="Be brief.")


class Answering(Server):
    """Answers each turn with the number of its thread. `gone` are threads that it knows no more."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: set[str] = set()
        self.handlers["turn/start"] = self.answer

    def answer(self, params: RpcObject) -> RpcObject:
        thread = params["threadId"]
        if thread in self.gone:
            raise RefusedError(-32600, f"thread not found: {thread}")
        loop = asyncio.get_running_loop()
        loop.call_soon(self.say, thread, thread)
        loop.call_soon(self.complete, thread)
        return {"turn": {"id": "1"}}

    def instructions(self) -> list[object]:
        """Those of all threads so far."""
        return [request["params"].get("developerInstructions") for request in self.requests("thread/start")]


async def all_is_quiet() -> None:
    """Until everybody waits: time passes on a virtual clock only then."""
    await asyncio.sleep(0.1)


def text_of(events: list[BackendEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextPiece))


@on_a_virtual_clock
async def test_the_thread_of_the_next_request_is_started_beside_the_turn() -> None:
    server = Answering()
    async with backend(server, spare_threads=1) as it:
        assert text_of(await read_turn(it, BRIEF)) == "t1"
        await all_is_quiet()
        assert text_of(await read_turn(it, BRIEF)) == "t2"
        await all_is_quiet()
    assert server.instructions() == ["Be brief."] * 3


@on_a_virtual_clock
async def test_a_thread_waits_for_its_own_instructions_and_model_alone() -> None:
    server = Answering()
    async with backend(server, spare_threads=4) as it:
        await read_turn(it, BRIEF)
        await all_is_quiet()
        assert text_of(await read_turn(it, prompt(developer="Be long."))) == "t3"
        await all_is_quiet()
        assert text_of(await read_turn(it, prompt(model="another", developer="Be brief."))) == "t5"
        await all_is_quiet()
        assert text_of(await read_turn(it, BRIEF)) == "t2"


@on_a_virtual_clock
async def test_no_more_threads_wait_than_may() -> None:
    server = Answering()
    async with backend(server, spare_threads=1) as it:
        await read_turn(it, BRIEF)
        await all_is_quiet()
        await read_turn(it, prompt(developer="Be long."))
        await all_is_quiet()
        assert text_of(await read_turn(it, BRIEF)) == "t5"


@on_a_virtual_clock
async def test_none_is_started_unless_asked_for() -> None:
    server = Answering()
    async with backend(server) as it:
        for number in (1, 2, 3):
            assert text_of(await read_turn(it, BRIEF)) == f"t{number}"
    assert len(server.instructions()) == 3


@on_a_virtual_clock
async def test_a_version_that_writes_threads_down_has_none_waiting() -> None:
    server = Answering()
    start = server.handlers["thread/start"]

    def without_ephemeral(params: RpcObject) -> RpcObject | None:
        answer = start(params)
        return answer and {"thread": {"id": answer["thread"]["id"]}}

    server.handlers["thread/start"] = without_ephemeral
    async with backend(server, spare_threads=1) as it:
        for number in (1, 2, 3):
            assert text_of(await read_turn(it, BRIEF)) == f"t{number}"


@on_a_virtual_clock
async def test_a_thread_that_waited_for_long_is_not_used() -> None:
    server = Answering()
    async with backend(server, spare_threads=1) as it:
        await read_turn(it, BRIEF)
        await all_is_quiet()
        await asyncio.sleep(GOOD_FOR + 1)
        assert text_of(await read_turn(it, BRIEF)) == "t3"


@on_a_virtual_clock
async def test_a_thread_that_is_gone_costs_nothing_but_another() -> None:
    server = Answering()
    async with backend(server, spare_threads=1) as it:
        await read_turn(it, BRIEF)
        await all_is_quiet()
        server.gone.add("t2")
        assert text_of(await read_turn(it, BRIEF)) == "t3"


@on_a_virtual_clock
async def test_a_prompt_that_is_refused_on_a_new_thread_as_well_is_refused() -> None:
    server = Answering()
    async with backend(server, spare_threads=1) as it:
        await read_turn(it, BRIEF)
        await all_is_quiet()
        server.gone |= {"t2", "t3"}
        with pytest.raises(BackendError):
            await read_turn(it, BRIEF)


@on_a_virtual_clock
async def test_a_thread_that_cannot_be_started_ahead_harms_nobody() -> None:
    server = Answering()
    start = server.handlers["thread/start"]

    def refuse_the_second(params: RpcObject) -> RpcObject | None:
        if len(server.requests("thread/start")) == 2:
            raise RefusedError(-32603)
        return start(params)

    server.handlers["thread/start"] = refuse_the_second
    async with backend(server, spare_threads=1) as it:
        await read_turn(it, BRIEF)
        await all_is_quiet()
        assert text_of(await read_turn(it, BRIEF)) == "t2"
