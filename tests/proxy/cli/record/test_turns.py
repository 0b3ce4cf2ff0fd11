"""What a backend says, heard where it passes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from proxy.cli.record.turns import RecordedBackend, recorded_request
from proxy.contracts import BackendEvent, MessageEnded, TextPiece, TurnEnded
from proxy.errors import BackendError
from proxy.ingress.inspect import HeardTurn
from tests.support.backend_events import prompt, read_turn
from tests.support.memory_backend import MemoryBackend

WHOLE: list[BackendEvent | BackendError] = [TextPiece("one"), TextPiece("two"), MessageEnded(), TurnEnded(None)]


def events(turn: HeardTurn) -> Sequence[BackendEvent]:
    return [event for _, event in turn.told]


async def test_a_turn_passes_as_it_is_and_is_noted() -> None:
    backend = RecordedBackend(MemoryBackend([WHOLE]))
    with recorded_request() as request:
        assert await read_turn(backend, prompt("hi")) == WHOLE
    (turn,) = request.turns
    assert events(turn) == WHOLE
    assert turn.prompt.parts == prompt("hi").parts
    assert turn.begun <= turn.told[0][0] <= turn.told[-1][0] <= turn.over
    assert (turn.left_early, turn.error, turn.stopped) == (False, None, False)


async def test_what_is_left_early_is_noted_up_to_there_and_ends_at_the_backend() -> None:
    memory = MemoryBackend([WHOLE])
    with recorded_request() as request:
        async with RecordedBackend(memory).stream(prompt()) as batches:
            await anext(batches)
    (turn,) = request.turns
    assert events(turn) == [TextPiece("one")]
    assert turn.left_early
    assert memory.left_early == 1


@pytest.mark.parametrize("before", [[], [TextPiece("one")]])
async def test_an_error_is_noted_and_passes(before: list[BackendEvent]) -> None:
    error = BackendError("gone", code="mine")
    with recorded_request() as request, pytest.raises(BackendError, match="gone"):
        await read_turn(RecordedBackend(MemoryBackend([[*before, error]])), prompt())
    (turn,) = request.turns
    assert (events(turn), turn.error, turn.left_early) == (before, error, False)


async def test_a_turn_belongs_to_the_request_in_whose_task_it_runs() -> None:
    """Also when it runs in a task that the request starts, as one in the background does."""
    backend = RecordedBackend(MemoryBackend([str, str, str], chunk=1))

    async def serve(text: str) -> list[str]:
        with recorded_request() as request:
            async with asyncio.TaskGroup() as group:
                group.create_task(read_turn(backend, prompt(text)))
        return [part.text for turn in request.turns for part in turn.prompt.parts if hasattr(part, "text")]

    assert list(await asyncio.gather(serve("a"), serve("b"), serve("c"))) == [["a"], ["b"], ["c"]]


async def test_what_no_request_asked_for_passes_unnoted() -> None:
    assert await read_turn(RecordedBackend(MemoryBackend([WHOLE])), prompt()) == WHOLE


class Stopping(MemoryBackend):
    """Fails what runs when it is left, as a backend does."""

    gone = asyncio.Event()

    async def __aexit__(self, *exc: object) -> None:
        self.gone.set()


async def test_a_turn_that_the_servers_end_cut_off_is_marked() -> None:
    backend = RecordedBackend(memory := Stopping([WHOLE]))
    memory.gone = asyncio.Event()

    async def read() -> HeardTurn:
        with recorded_request() as request:
            async with backend.stream(prompt()) as batches:
                await anext(batches)
                await memory.gone.wait()
        return request.turns[0]

    async with asyncio.TaskGroup() as group:
        async with backend:
            reading = group.create_task(read())
            await asyncio.sleep(0)
    assert reading.result().stopped
