"""A model that never ends: its answer does, and so does its backend's turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import ToolRegistry
from proxy.contracts import BackendEvent, OutputFormat, Reasoning, ReasoningPiece, TextPiece, TurnEnded, TurnFinished
from proxy.turn import CallRelease
from tests.proxy.turn.playing import ask, keyless_model, outcome_of
from tests.support.memory_backend import USAGE, MemoryBackend

ROOM = 10_000


class Endless(Sequence[BackendEvent]):
    """`first`, and then `event` for as long as anybody asks, or nearly. Counts what was `asked` for."""

    def __init__(self, event: BackendEvent, *first: BackendEvent) -> None:
        self.asked = 0
        self._event = event
        self._first = first

    def __len__(self) -> int:
        return 1_000_000

    @overload
    def __getitem__(self, index: int) -> BackendEvent: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[BackendEvent]: ...
    def __getitem__(self, index: int | slice) -> Any:
        assert isinstance(index, int)
        self.asked += 1
        return self._first[index] if index < len(self._first) else self._event


ENDLESS = {
    "text": lambda: Endless(TextPiece("word ")),
    "lines": lambda: Endless(TextPiece("word\n")),
    "wide text": lambda: Endless(TextPiece("\N{GRINNING FACE}")),
    "thoughts": lambda: Endless(ReasoningPiece(0, "hm ")),
    "thoughts that nobody asked for": lambda: Endless(ReasoningPiece(0, "hm ", asked=False)),
    "parts of thoughts": lambda: Endless(ReasoningPiece(1, "hm "), ReasoningPiece(0, "well ")),
    "a call": lambda: Endless(TextPiece("long "), TextPiece('<tool_call>{"name": "search", "arguments": {"q": "')),
    "an open tag": lambda: Endless(TextPiece("<tool_call>")),
    "a line of tags": lambda: Endless(TextPiece("<tool_call>{}</tool_call>")),
}  # fmt: skip


@pytest.mark.parametrize("release", CallRelease)
@pytest.mark.parametrize("script", ENDLESS.values(), ids=ENDLESS)
async def test_an_endless_answer_is_cut_and_its_backends_turn_ended(script: Any, release: CallRelease) -> None:
    endless = script()
    backend = MemoryBackend([endless])
    outcome = await outcome_of(ask(), backend, keyless_model(release, max_answer=ROOM))
    assert isinstance(outcome.end, TurnFinished)
    assert outcome.end.incomplete == "max_output_tokens"
    assert (backend.left_early, backend.open_turns, len(backend.prompts)) == (1, 0, 1)
    assert endless.asked <= ROOM
    assert len(outcome.text.encode()) <= ROOM
    assert any("--max-answer" in warning for warning in outcome.report.warnings)


async def test_text_that_has_to_be_json_is_bounded_as_well() -> None:
    backend = MemoryBackend([Endless(TextPiece("1, "), TextPiece("["))])
    request = ask(registry=ToolRegistry(), output_format=OutputFormat())
    outcome = await outcome_of(request, backend, keyless_model(max_answer=ROOM))
    assert isinstance(outcome.end, TurnFinished)
    assert outcome.end.incomplete == "max_output_tokens"


async def test_an_answer_that_fits_is_whole() -> None:
    backend = MemoryBackend(["w" * ROOM])
    outcome = await outcome_of(ask(), backend, keyless_model(max_answer=ROOM))
    assert outcome.text == "w" * ROOM
    assert outcome.report.warnings == []


@given(st.lists(st.text(max_size=8), max_size=8), st.integers(0, 20))
def test_what_is_taken_is_the_beginning_and_no_more_bytes_than_there_are(texts: list[str], limit: int) -> None:
    script: list[BackendEvent] = [*(ReasoningPiece(0, text) for text in texts), TurnEnded(USAGE)]
    outcome = asyncio.run(outcome_of(ask(), MemoryBackend([script]), keyless_model(max_answer=limit)))
    taken = "".join(event.text for event in outcome.events if isinstance(event, Reasoning))
    whole = "".join(texts)
    is_full = len(whole.encode("utf-8", "surrogatepass")) > limit
    assert len(taken.encode("utf-8", "surrogatepass")) <= limit
    assert whole.startswith(taken)
    assert is_full or taken == whole
    assert (outcome.ending == "max_output_tokens") is is_full
