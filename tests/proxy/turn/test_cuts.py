"""`max_output_tokens` and `stop` in a turn."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from parser import ToolRegistry
from prompts import ChoiceMode, ToolChoice
from proxy.contracts import (
    BackendEvent,
    MessageEnded,
    OutputFormat,
    TextPiece,
    ToolCallEnded,
    TurnEnded,
    TurnFinished,
    Usage,
)
from proxy.turn import CallRelease
from tests.proxy.turn.playing import (
    BROKEN,
    READ_A,
    READ_B,
    Outcome,
    ask,
    keyless_model,
    outcome_of,
    play,
)
from tests.support.memory_backend import USAGE, MemoryBackend

CHUNKS = pytest.mark.parametrize("chunk", [0, 1, 3, 7])
PROSE = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"


@CHUNKS
async def test_the_answer_is_cut_at_so_many_tokens_and_ends_incomplete(chunk: int) -> None:
    outcome = await play(PROSE, request=ask(max_output_tokens=16), chunk=chunk)
    assert outcome.text.strip() == PROSE.removesuffix(" seventeen")
    assert isinstance(outcome.end, TurnFinished)
    assert outcome.end.incomplete == "max_output_tokens"
    assert outcome.end.usage.output_tokens == 16
    assert outcome.backend.left_early == 1


async def test_an_answer_that_came_whole_is_cut_all_the_same() -> None:
    """What the backend counted is not what the client gets."""
    events: list[BackendEvent] = [TextPiece(PROSE), MessageEnded(), TurnEnded(Usage(100, 0, 900))]
    backend = MemoryBackend([events], at_once=True)
    outcome = await outcome_of(ask(registry=ToolRegistry(), max_output_tokens=16), backend)
    assert (len(outcome.text.split()), outcome.ending) == (16, "max_output_tokens")
    assert isinstance(outcome.end, TurnFinished)
    assert outcome.end.usage.output_tokens == 16


async def test_an_answer_within_the_limit_is_whole_and_counted_by_the_backend() -> None:
    outcome = await play(PROSE, request=ask(max_output_tokens=17))
    assert outcome.text == PROSE
    assert outcome.end == TurnFinished(USAGE)


@CHUNKS
async def test_a_call_that_the_cut_falls_into_is_no_call_and_those_before_stay(chunk: int) -> None:
    answer = f"I look. {READ_A}{READ_B}"
    for limit in (40, 45, 50, 54):
        outcome = await play(answer, request=ask(max_output_tokens=limit), chunk=chunk)
        assert outcome.calls == [("read_note", '{"path": "a.md"}')]
        assert isinstance(outcome.end, TurnFinished)
        assert outcome.end.incomplete == "max_output_tokens"
        assert answer.replace(READ_A, "").startswith(outcome.text)


@CHUNKS
async def test_wherever_the_cut_falls_no_call_is_made_up_and_no_markup_is_shown(chunk: int) -> None:
    call = '<tool_call>{"name": "search", "arguments": {"n": [12, 3456], "s": "a b"}}</tool_call>'
    for limit in range(1, 45):
        outcome = await play(call, request=ask(max_output_tokens=limit), chunk=chunk)
        whole = '{"n": [12, 3456], "s": "a b"}'
        assert outcome.text == "" or limit < 3
        assert all(name == "search" and whole.startswith(arguments) for name, arguments in outcome.calls)
        assert isinstance(outcome.end, TurnFinished)
        if outcome.end.incomplete:
            # As far as it has come, or taken out where its name had not.
            is_whole = [("search", whole)] == outcome.calls
            assert bool(outcome.calls) == is_whole or ToolCallEnded(complete=False) in outcome.events
            assert outcome.calls or outcome.text == "<" or outcome.report.counts["taken_out"] == {"block": 1}
        else:
            assert outcome.calls == [("search", whole)]


async def test_a_live_call_that_the_cut_falls_into_ends_incomplete() -> None:
    live = keyless_model(release=CallRelease.LIVE)
    outcome = await play(READ_A, request=ask(max_output_tokens=16), chunk=4, options=live)
    assert ToolCallEnded(complete=False) in outcome.events
    assert isinstance(outcome.end, TurnFinished)
    assert outcome.end.incomplete == "max_output_tokens"


async def test_reasoning_is_not_counted_before_the_backend_counts_it() -> None:
    outcome = await play(
        [TextPiece("short"), MessageEnded(), TurnEnded(Usage(10, 0, 900, 899))], request=ask(max_output_tokens=16)
    )
    assert outcome.text == "short"
    assert outcome.end == TurnFinished(Usage(10, 0, 900, 899))


async def test_the_limit_is_for_all_answers_together() -> None:
    outcome = await play(BROKEN, PROSE, request=ask(max_output_tokens=25))
    assert outcome.text.strip() == "one two three four five"
    assert isinstance(outcome.end, TurnFinished)
    assert outcome.end.usage.output_tokens == 25


async def test_no_second_answer_is_asked_for_when_no_token_is_left() -> None:
    choice = ToolChoice(ChoiceMode.REQUIRED)
    outcome = await play("No need.", request=ask(max_output_tokens=20, choice=choice))
    assert outcome.error.code == "tool_call_missing"
    assert outcome.report.again == []


@CHUNKS
async def test_the_text_ends_before_a_stop_string_and_the_answer_is_complete(chunk: int) -> None:
    outcome = await play("one\ntwo\n\nthree", request=ask(stop=("\n\n", "four")), chunk=chunk)
    assert outcome.text == "one\ntwo"
    assert isinstance(outcome.end, TurnFinished)
    assert outcome.end.incomplete is None
    assert outcome.backend.left_early == 1
    assert outcome.report.interrupted


@CHUNKS
async def test_a_stop_string_in_a_call_stops_nothing(chunk: int) -> None:
    outcome = await play(f"I look at it.\n{READ_A}", request=ask(stop=("a.md",)), chunk=chunk)
    assert outcome.text == "I look at it.\n"
    assert outcome.calls == [("read_note", '{"path": "a.md"}')]


@CHUNKS
async def test_calls_behind_a_stop_string_do_not_leave(chunk: int) -> None:
    outcome = await play(f"I look. END {READ_A}", request=ask(stop=("END",)), chunk=chunk)
    assert outcome.text == "I look. "
    assert outcome.calls == []


@CHUNKS
async def test_a_demanded_call_leaves_behind_a_stop_string_too(chunk: int) -> None:
    """Agents stop at the words that they show past calls with, and models repeat those in front of the next."""
    request = ask(stop=("END", "Observation:"), choice=ToolChoice(ChoiceMode.REQUIRED))
    outcome = await play(f"I look. END So:\n{READ_A}\nObservation: none\n{READ_B}", request=request, chunk=chunk)
    assert outcome.text == "I look. "
    assert outcome.calls == [("read_note", '{"path": "a.md"}')]
    assert outcome.report.again == []


@CHUNKS
async def test_a_demanded_call_that_does_not_come_behind_one_is_asked_for(chunk: int) -> None:
    request = ask(stop=("END",), choice=ToolChoice(ChoiceMode.REQUIRED))
    outcome = await play("I look. END Done.", f"END\n{READ_A}", request=request, chunk=chunk)
    assert outcome.calls == [("read_note", '{"path": "a.md"}')]


async def test_the_beginning_of_a_stop_string_at_the_end_is_text() -> None:
    outcome = await play("one EN", request=ask(stop=("END",)), chunk=1)
    assert outcome.text == "one EN"
    outcome = await play([TextPiece("EN"), MessageEnded(), TextPiece("D"), MessageEnded()], request=ask(stop=("END",)))
    assert outcome.text == "END"


async def test_an_answer_that_a_stop_string_ends_is_not_held_to_its_form() -> None:
    request = ask(registry=ToolRegistry(), output_format=OutputFormat(), stop=(",",))
    assert (await play('{"a": 1, "b": 2}', request=request)).text == '{"a": 1'


FRAGMENTS = st.sampled_from(
    [READ_A, READ_B, BROKEN, "I look. ", "one two", "\n", "<tool_call>", "STOP", "S", r"<\tool_call>"]
)


CUTS = st.sampled_from([("STOP", "k. I"), ("TO", "\n")]) | st.integers(16, 90)


@given(st.lists(FRAGMENTS, max_size=6), CUTS, st.integers(1, 20))
def test_how_the_answer_comes_in_pieces_does_not_show(
    fragments: list[str], cut: tuple[str, ...] | int, chunk: int
) -> None:
    request = ask(max_output_tokens=cut) if isinstance(cut, int) else ask(stop=cut)

    async def both() -> tuple[Outcome, Outcome]:
        answers = ["".join(fragments), "fine"]
        backends = [MemoryBackend([*answers], size) for size in (0, chunk)]
        whole, pieces = [await outcome_of(request, backend) for backend in backends]
        return whole, pieces

    whole, pieces = asyncio.run(both())
    assert whole.text == pieces.text
    assert whole.calls == pieces.calls
    assert type(whole.end) is type(pieces.end)
    assert whole.report.again == pieces.report.again


async def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    answer = f"I look.\n{READ_A}\n{READ_B}"
    plain, limited = await play(answer), await play(answer, request=ask(max_output_tokens=10_000, stop=("zzz",)))
    assert plain.calls == limited.calls
    assert plain.text == limited.text
    assert replace(plain.report, calls=[]) == replace(limited.report, calls=[])
