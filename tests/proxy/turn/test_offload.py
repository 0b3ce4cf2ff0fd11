"""What takes long is offloaded, and comes to the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest
from msgspec.structs import replace

from parser import Tool, ToolRegistry
from prompts import Deferred, PastCall, Text, ToolResult, Transcript, UserTurn, untrusted_strings
from proxy.contracts import MessageEnded, OutputFormat, TextPiece, TurnEnded, TurnRequest
from proxy.turn.offload import (
    ENTRIES_AT_ONCE,
    JUDGED_AT_ONCE,
    OFFLOADED_AT_ONCE,
    PREPARED_AT_ONCE,
    READ_AT_ONCE,
)
from tests.proxy.turn.playing import READ_A, READ_B, TOOLS, ask, keyless_model, outcome_of, play
from tests.support.memory_backend import USAGE, MemoryBackend, Script
from tests.support.patience import PATIENCE

R = TypeVar("R")

# What `ask` sends besides the user's words.
KNOWN = sum(map(len, untrusted_strings(Transcript(()), TOOLS)))
LONG_JSON = json.dumps({"a": "x" * (READ_AT_ONCE - len('{"a": ""}'))})


@pytest.mark.parametrize(
    ("request_", "answer", "pieces"),
    [
        (ask(), f"I look.\n{READ_A}", 0),
        (ask(), "x" * READ_AT_ONCE, 0),
        (ask("x" * (JUDGED_AT_ONCE - KNOWN)), READ_A, 0),
        (ask("x" * (PREPARED_AT_ONCE - KNOWN)), "I look.", 1),
        (ask(transcript=Transcript((UserTurn((Text("x"),)),) * ENTRIES_AT_ONCE)), READ_A, 0),
        (ask(output_format=OutputFormat()), LONG_JSON, 0),
        (ask(output_format=OutputFormat()), f" {LONG_JSON}", 3),
        (ask(), f"I look.\n{READ_A}" + "x" * READ_AT_ONCE, 2),
        (ask("x" * JUDGED_AT_ONCE), f"I look.\n{READ_A}", 2),
        (ask("x" * JUDGED_AT_ONCE), "I look.", 1),
        (ask("x" * (PREPARED_AT_ONCE + 1)), "I look.", 3),
        (ask(transcript=Transcript((UserTurn((Text("x"),)),) * (ENTRIES_AT_ONCE + 1))), "I look.", 2),
    ],
    ids=[
        "short",
        "an answer that is just short enough",
        "a request that is",
        "one that is for its prompt",
        "messages that are",
        "JSON that is",
        "long JSON",
        "long answer",
        "long request",
        "long request, no call",
        "longer request",
        "many messages",
    ],
)
async def test_what_takes_long_is_read_elsewhere(request_: TurnRequest, answer: str, pieces: int) -> None:
    """A long answer, the end of one, and a call beside a long request; such a request and its prompt, where it is
    longer still. Of one owner each time.
    """
    owners: list[str] = []

    async def offload(owner: str, work: Callable[[], R], /) -> R:
        owners.append(owner)
        return work()

    request = replace(request_, owner="ann")
    apart = await play(answer, request=request, options=keyless_model(offload=offload))
    assert owners == ["ann"] * pieces
    assert apart.text == (await play(answer, request=request)).text


@pytest.mark.parametrize("items", [True, False], ids=["as items", "as one text"])
async def test_what_a_backend_takes_of_a_long_prompt_is_made_elsewhere(
    monkeypatch: pytest.MonkeyPatch, items: bool
) -> None:
    made = list[str]()
    where = ["here"]

    def deferred(make: Callable[[], Sequence[R]]) -> Deferred[R]:
        def noted() -> Sequence[R]:
            made.append(where[0])
            return make()

        return Deferred(noted)

    async def offload(owner: str, work: Callable[[], R], /) -> R:
        where[0] = "elsewhere"
        try:
            return work()
        finally:
            where[0] = "here"

    monkeypatch.setattr("proxy.turn.prompting.Deferred", deferred)
    monkeypatch.setattr(MemoryBackend, "takes_items", items)
    outcome = await play("Hello.", request=ask("x" * (PREPARED_AT_ONCE + 1)), options=keyless_model(offload=offload))
    taken = outcome.backend.prompts[0].items if items else outcome.backend.prompts[0].parts
    assert taken
    assert made == ["elsewhere"], "the other form costs nothing"


async def test_a_long_request_with_a_schema_that_is_none_fails_as_a_short_one_does() -> None:
    unusable = ToolRegistry([Tool("f", None, '{"type": "nothing"}', strict=True)])
    short, long = [await play(request=ask("x" * length, registry=unusable)) for length in (1, PREPARED_AT_ONCE + 1)]
    assert str(long.error) == str(short.error)
    assert "Invalid schema for function 'f'" in str(long.error)


async def test_what_is_offloaded_ends_with_its_client() -> None:
    done = 0
    first = asyncio.Event()

    async def offload(_: str, work: Callable[[], R], /) -> R:
        nonlocal done
        done += 1
        first.set()
        await asyncio.sleep(0)
        return work()

    backend = MemoryBackend(["x" * (20 * OFFLOADED_AT_ONCE)])
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        turn = group.create_task(outcome_of(ask(), backend, keyless_model(offload=offload)), name="turn")
        await first.wait()
        turn.cancel()
    assert turn.cancelled()
    assert done <= 2
    assert backend.open_turns == 0


async def test_a_long_answer_that_is_read_in_parts_comes_to_the_same() -> None:
    text = f"{'word ' * OFFLOADED_AT_ONCE}\n{READ_A}\n{READ_B}"
    whole: Script = [TextPiece(text), MessageEnded(), TextPiece(READ_B), TurnEnded(USAGE)]
    pieces: Script = [
        *(TextPiece(text[at : at + 1_000]) for at in range(0, len(text), 1_000)),
        MessageEnded(), TextPiece(READ_B), TurnEnded(USAGE),
    ]  # fmt: skip
    one, other = [await play(script) for script in (whole, pieces)]
    assert (one.text, one.calls, one.end) == (other.text, other.calls, other.end)
    assert one.text.startswith("word word ")
    beside_a_long_request = await play(whole, request=ask("x" * JUDGED_AT_ONCE))
    assert (beside_a_long_request.text, beside_a_long_request.calls) == (one.text, one.calls), "each part is read"


@pytest.mark.parametrize("repeats", [0, 1])
async def test_a_request_is_read_for_headers_once_a_turn(monkeypatch: pytest.MonkeyPatch, repeats: int) -> None:
    looks = 0

    def looked(transcript: Transcript) -> bool:
        nonlocal looks
        looks += 1
        return False

    monkeypatch.setattr("proxy.turn.plan.shows_header", looked)
    past = (UserTurn((Text("x"),)), PastCall("c1", "read_note", "{}"), ToolResult("c1", (Text("note"),)))
    request = ask(transcript=Transcript((*past, UserTurn((Text("And?"),)))))
    await outcome_of(request, MemoryBackend(["[tool:c1] x\n" * (1 + 500 * repeats)] * 3), keyless_model())
    assert looks == 1
