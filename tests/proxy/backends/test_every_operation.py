"""The n-th operation fails, or is cancelled, for every n: nothing is left running and everyone hears one end.

On a virtual clock, so that a run is the same each time and waits for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from proxy.backends.codex import CodexBackend, RestartPolicy, SessionOptions
from proxy.rpc import RpcObject, Transport
from tests.support.fake_app_server import FakeAppServer
from tests.support.faulty_app_server import TEXT, usual_turn
from tests.support.faulty_backend import Seen, see_turn
from tests.support.virtual_clock import on_a_virtual_clock

WHOLE = Seen("".join(TEXT), "ended")
AT_ONCE = RestartPolicy(backoff=(0.0,), ends=1000, starts_in_vain=1000)
ENDS = {"ended", "backend_disconnected", "backend_timeout", "backend_unavailable", "backend_error"}


@dataclass
class World:
    """All connections together. `turns` are those that run, by connection and thread."""

    fail_at: int | None = None
    how: str = ""
    operations: int = 0
    turns: set[tuple[int, str]] = field(default_factory=set)
    servers: list[Server] = field(default_factory=list)

    def operation(self) -> bool:
        """Counts one, and says whether it is the one that fails."""
        self.operations += 1
        return self.operations == self.fail_at

    async def connect(self) -> Transport:
        if self.operation():
            raise OSError("no such program")
        self.servers.append(Server(self, len(self.servers)))
        return self.servers[-1]


class Server(FakeAppServer):
    """Plays a turn line by line, each as a read of its own. Every read and every write is an operation."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__()
        self._world = world
        self.number = number
        self._threads = 0
        self.handlers = {
            "initialize": lambda params: {"userAgent": "tagcall/0.169.0 (x)"},
            "model/list": lambda params: {"data": []},
            "thread/start": self._start_thread,
            "turn/start": self.start_turn,
            "turn/interrupt": self._interrupt,
        }

    def _start_thread(self, params: RpcObject) -> RpcObject:
        self._threads += 1
        return {"thread": {"id": f"t{self._threads}", "ephemeral": True}}

    def start_turn(self, params: RpcObject) -> RpcObject:
        thread = params["threadId"]
        self._world.turns.add((self.number, thread))
        for place, line in enumerate(usual_turn(thread)):
            after_steps(3 * place + 1, partial(self._play, thread, line))
        return {"turn": {"id": "1"}}

    def _play(self, thread: str, line: RpcObject) -> None:
        if (self.number, thread) in self._world.turns:
            self.write(line)
            if line["method"] == "turn/completed":
                self._world.turns.discard((self.number, thread))

    def _interrupt(self, params: RpcObject) -> RpcObject:
        if (self.number, params["threadId"]) in self._world.turns:
            turn = {"id": "1", "status": "interrupted"}
            self._play(params["threadId"], {"method": "turn/completed", "params": {**params, "turn": turn}})
        return {}

    def _gone(self) -> None:
        """A child's turns end with it."""
        self._world.turns -= {turn for turn in self._world.turns if turn[0] == self.number}

    async def receive(self) -> bytes:
        data = await super().receive()
        if self._world.operation():
            match self._world.how:
                case "ends":
                    self._gone()
                    return b""
                case "breaks":
                    self._gone()
                    raise OSError("broken pipe")
                case _:
                    return b"garbage\n"
        return data

    async def send(self, line: bytes) -> None:
        if self._world.operation():
            match self._world.how:
                case "ends" | "breaks":
                    self._gone()
                    self.end()
                    raise ConnectionResetError
                case _:
                    return
        await super().send(line)

    async def close(self) -> None:
        self._gone()
        await super().close()

    def abort(self) -> None:
        self._gone()
        super().abort()


def after_steps(steps: int, act: Callable[[], None]) -> None:
    """So many steps of the loop later, so that what comes is read one by one."""
    loop = asyncio.get_running_loop()
    if steps:
        loop.call_soon(after_steps, steps - 1, act)
    else:
        act()


def backend(world: World) -> CodexBackend:
    return CodexBackend(world.connect, SessionOptions(idle_timeout=60), policy=AT_ONCE)


async def settle() -> None:
    """Long enough for interrupts, probes and restarts, of a clock that jumps."""
    await asyncio.sleep(600)


def operations_of_a_turn() -> int:
    world = World()

    @on_a_virtual_clock
    async def run() -> None:
        async with backend(world) as it:
            assert await see_turn(it) == WHOLE

    run()
    return world.operations


@pytest.mark.parametrize("how", ["ends", "breaks", "loses"])
def test_whichever_operation_fails_there_is_one_end_and_the_next_turn_works(how: str) -> None:
    total = operations_of_a_turn()
    assert total >= 20
    seen: dict[int, Seen] = {}
    for n in range(1, total + 1):
        world = World(fail_at=n, how=how)

        @on_a_virtual_clock
        async def run(world: World = world, n: int = n) -> None:
            async with backend(world) as it:
                seen[n] = await see_turn(it)
                assert seen[n].end in ENDS
                assert await see_turn(it) == WHOLE
                await settle()
                assert not world.turns

        run()
    for n, turn in seen.items():
        # What was told is a beginning of the text, and nothing in it comes twice or is left out.
        lost_a_piece = how == "loses" and turn.end == "ended"
        assert lost_a_piece or WHOLE.text.startswith(turn.text), f"operation {n}: {turn}"
        assert turn.text or turn.end != "backend_disconnected", f"operation {n} was not tried again"


# Of the loop: more than a whole turn takes.
STEPS = range(80)


@pytest.mark.parametrize("how", ["answers", "is mute", "is slow to answer"])
def test_whenever_the_consumer_is_cancelled_no_turn_is_left_running(how: str) -> None:
    """At every step of the loop: that is every point at which anything waits."""
    cut = 0
    for step in STEPS:
        world = World()

        @on_a_virtual_clock
        async def run(world: World = world, step: int = step) -> None:
            nonlocal cut
            async with backend(world) as it:
                await it.health()
                [server] = world.servers
                if how != "answers":
                    server.handlers["turn/start"] = slow_start(server, world, answers=how == "is slow to answer")
                async with asyncio.TaskGroup() as group:
                    consumer = group.create_task(see_turn(it))
                    for _ in range(step):
                        await asyncio.sleep(0)
                    cut += bool(world.turns)
                    consumer.cancel()
                await settle()
                assert not world.turns, f"step {step}"
                server.handlers["turn/start"] = server.start_turn
                assert await see_turn(it) == WHOLE

        run()
    assert cut > 10, "turns were running when they were cut"


def slow_start(server: Server, world: World, *, answers: bool) -> Callable[[RpcObject], RpcObject | None]:
    """The turn runs at once; its answer comes a second later, or its lines never do."""

    def start(params: RpcObject) -> RpcObject | None:
        world.turns.add((server.number, params["threadId"]))
        if not answers:
            return {"turn": {"id": "1"}}
        reply = {"id": server.requests("turn/start")[-1]["id"], "result": {"turn": {"id": "1"}}}
        asyncio.get_running_loop().call_later(1.0, server.write, reply)
        return None

    return start


@pytest.mark.parametrize("step", STEPS[1:])
@on_a_virtual_clock
async def test_whenever_the_backend_is_left_its_turn_hears_one_end_and_nothing_is_left(step: int) -> None:
    world = World()
    async with asyncio.TaskGroup() as group:
        async with backend(world) as it:
            turn = group.create_task(see_turn(it))
            for _ in range(step):
                await asyncio.sleep(0)
    assert turn.result().end in ENDS
    assert not world.turns
