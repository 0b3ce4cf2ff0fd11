"""What takes long is offloaded, and comes to the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import pytest

from parser import Tool, ToolRegistry
from prompts import Deferred, Text, Transcript, UserTurn, untrusted_strings
from proxy.contracts import OutputFormat, TurnRequest
from proxy.turn.offload import ENTRIES_AT_ONCE, JUDGED_AT_ONCE, PREPARED_AT_ONCE, READ_AT_ONCE
from tests.proxy.turn.playing import READ_A, TOOLS, ask, keyless_model, play

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


async def test_all_of_a_long_prompt_is_made_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
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
    outcome = await play("Hello.", request=ask("x" * (PREPARED_AT_ONCE + 1)), options=keyless_model(offload=offload))
    assert outcome.backend.prompts[0].parts
    assert outcome.backend.prompts[0].items
    assert made == ["elsewhere", "elsewhere"]


async def test_a_long_request_with_a_schema_that_is_none_fails_as_a_short_one_does() -> None:
    unusable = ToolRegistry([Tool("f", None, '{"type": "nothing"}', strict=True)])
    short, long = [await play(request=ask("x" * length, registry=unusable)) for length in (1, PREPARED_AT_ONCE + 1)]
    assert str(long.error) == str(short.error)
    assert "Invalid schema for function 'f'" in str(long.error)
