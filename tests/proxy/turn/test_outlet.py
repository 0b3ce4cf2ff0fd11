"""What of an answer leaves at once, what is kept back, and what frees it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import write_call
from prompts import MASK, PROFILES, PastCall, Text, ToolResult
from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    BackendEvent,
    MessageEnded,
    OutputFormat,
    Prompt,
    Reasoning,
    ReasoningPiece,
    TextPiece,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
)
from proxy.replay.key_placeholder import PLACEHOLDER
from proxy.turn import CallKeys, CallRelease, FixedHabit, KeyHabit, StreamJson, TurnOptions
from tests.support.memory_backend import USAGE, Script, pieces

from .keyed import key_in, written
from .playing import (
    BROKEN,
    READ_A,
    READ_B,
    UNDECLARED,
    UNFIT,
    ask,
    in_short,
    keyless_model,
    leaving,
    play,
)
from .ways import ALL_STRICT, AS_JSON, DEMANDED, FITTING, FREE, GOES_ROUND, LIVE, WHOLE, Way, after

NOTE = (PastCall("c", "read_note", '{"path":"c.md"}'), ToolResult("c", (Text("A note"),)))
WELL, SO, NOW = "Well.\n", "\nSo.\n", "\nNow.\n"
END = AnswerMessageEnded()
ECHOES: Way = {**after(*NOTE), "options": keyless_model(profile=PROFILES["small"])}


@pytest.mark.parametrize(
    ("way", "answer", "left"),
    [
        (FREE, [WELL, READ_A, SO, BROKEN, READ_B], [[WELL], [READ_A], [SO], [], [READ_B], []]),
        (ALL_STRICT, [WELL, READ_A, SO, READ_B], [[WELL], [], [], [], [READ_A, SO, READ_B]]),
        (WHOLE, [WELL, READ_A, SO, READ_B], [[WELL], [], [], [], [READ_A, SO, READ_B]]),
        (DEMANDED, [WELL, READ_A, SO], [[], [WELL, READ_A], [SO], []]),
        (AS_JSON, [WELL, READ_A, SO], [[], [READ_A], [], []]),
        (FREE, [WELL, BROKEN, SO, READ_A, NOW], [[WELL], [], [], ["So.\n", READ_A], [NOW], []]),
        (GOES_ROUND, [WELL, READ_A, SO, READ_B, NOW], [[WELL], [], [], [READ_A, SO, READ_B], [NOW], []]),
        (ECHOES, ["A", " note", " is", "."], [[], [], ["A note is"], ["."], []]),
        (ECHOES, ["A", " note\n", READ_A], [[], [], ["A note\n", READ_A], []]),
    ],
    ids=["free", "strict", "not streamed", "demanded", "JSON", "broken", "goes round", "no echo", "calls"],
)
async def test_what_is_kept_leaves_with_a_good_call_or_where_calls_go_together_at_the_end(
    way: Way, answer: Sequence[str], left: object
) -> None:
    assert [in_short(events) for events in await leaving(*answer, **way)] == left


@pytest.mark.parametrize(
    ("way", "answer", "second", "left"),
    [
        (FITTING, [WELL, UNFIT, SO, READ_A, BROKEN], "", [[WELL], [], [], [], [], [UNFIT, SO, READ_A]]),
        (FITTING, [WELL, UNFIT, SO, READ_A], "No.", [[WELL], [], [], [], [END, "No."]]),
        (ALL_STRICT, [WELL, READ_B, UNFIT, SO, READ_A], READ_A, [[WELL], [], [], [], [], [READ_A]]),
        (FREE, [WELL, BROKEN, SO], NOW + READ_A, [[WELL], [], [], [READ_A]]),
        (FREE, [WELL, BROKEN, SO], NOW + BROKEN, [[WELL], [], [], ["So.\n"]]),
        (FREE, [WELL, BROKEN], "Now.", [[WELL], [], [END, "Now."]]),
        (FREE, [WELL, BROKEN], "Well.\nNow.", [[WELL], [], ["Now."]]),
        (GOES_ROUND, [WELL, READ_A, SO], "", [[WELL], [], [], [READ_A, SO]]),
        (ECHOES, ["A", " note"], "It is one.", [[], [], ["It is one."]]),
        (ECHOES, ["A", " note"], "", [[], [], ["A note"]]),
        (DEMANDED, [WELL], f"Now.\n{READ_A}", [[], ["Now.\n", READ_A]]),
    ],
)
async def test_else_it_leaves_only_if_a_second_answer_is_no_better(
    way: Way, answer: Sequence[str], second: str, left: object
) -> None:
    found = await leaving(*answer, then=[second], **way)
    assert [in_short(events) for events in found] == left


@given(
    st.lists(st.sampled_from([f"{number}\n" for number in range(4)] + [READ_A, READ_B]), max_size=8),
    st.sampled_from([FREE, ALL_STRICT, WHOLE, DEMANDED, LIVE]),
    st.integers(0, 9),
)
def test_events_leave_once_and_in_order_and_none_is_lost(answer: Sequence[str], way: Way, chunk: int) -> None:
    text = READ_B + "".join(answer)
    outcome = asyncio.run(play(text, chunk=chunk, **way))
    assert "".join(map(str, in_short(outcome.events))) == text


# A call that leaves while it is written


async def test_it_leaves_as_it_comes_and_reasoning_waits_for_its_end() -> None:
    first, second, third = (ReasoningPiece(0, text) for text in "abc")
    half, rest = READ_A[:50], READ_A[50:]
    found = await leaving(WELL, first, half, second, rest, third, SO, **LIVE)
    begun, arguments = ToolCallStarted("call_1", "read_note"), '{"path": "a.md"}'
    cut = len(half) - READ_A.index(arguments)
    assert found[:-1] == [
        [AnswerText(WELL)],
        [Reasoning(0, "a")],
        [begun, ToolCallArguments(arguments[:cut])],
        [],
        [ToolCallArguments(arguments[cut:]), ToolCallEnded(), Reasoning(0, "b")],
        [Reasoning(0, "c")],
        [AnswerText(SO)],
    ]


@pytest.mark.parametrize("way", [ALL_STRICT, GOES_ROUND])
async def test_one_that_may_be_kept_does_not_leave_so(way: Way) -> None:
    found = await leaving(WELL, READ_A[:50], READ_A[50:], SO, READ_B, **{**way, **LIVE})
    assert [in_short(events) for events in found][:4] == [[WELL], [], [], []]


LIVE_KEY = TurnOptions(CallRelease.LIVE, call_keys=CallKeys(habits=FixedHabit(KeyHabit.WRITES)))


async def test_a_key_is_masked_in_its_arguments_however_they_are_cut() -> None:
    for size in (1, 7, 0):
        search = write_call("search", f'{{"a": "{PLACEHOLDER}"}}', key=PLACEHOLDER)
        outcome = await play(written(search * 2, size=size), options=LIVE_KEY)
        assert outcome.calls == [("search", f'{{"a": "{MASK}"}}')] * 2


async def test_what_may_be_the_beginning_of_a_key_leaves_where_the_answer_is_cut() -> None:
    def script(prompt: Prompt) -> list[BackendEvent]:
        half = write_call("search", '{"a": "', key=key_in(prompt)).partition("}</tool_call>")[0]
        return [*pieces(half + key_in(prompt)[:3], 1), TurnEnded(USAGE, "max_output_tokens")]

    outcome = await play(script, options=LIVE_KEY)
    [key] = map(key_in, outcome.backend.prompts)
    assert outcome.calls == [("search", f'{{"a": "{key[:3]}')]


# Whether text that left is an answer, and whether a second one goes on with it

LONGEST = "word " * 40


@pytest.mark.parametrize(
    ("before", "behind", "is_answer"),
    [
        ("I look.\n And see. ", " \n", False),
        (LONGEST, "", False),
        (LONGEST + "s", "", True),
        ("I look.\n", "So.", True),
    ],
)
@pytest.mark.parametrize("size", [0, 1])
async def test_words_in_front_of_a_call_that_is_taken_out_are_no_answer(
    before: str, behind: str, is_answer: bool, size: int
) -> None:
    plain: list[Script] = [] if is_answer else ["I cannot."]
    outcome = await play(before + UNDECLARED + behind, *plain, chunk=size)
    assert (outcome.report.again, END in outcome.events) == (["undeclared"] * len(plain), not is_answer)


async def test_the_lines_of_such_words_are_not_said_again() -> None:
    outcome = await play(f"I look.\n And see. {UNDECLARED}", "And see.\nI look.\nSo.")
    assert "".join(outcome.text.split()) == "Ilook.Andsee.So."


async def test_json_that_left_early_is_an_answer() -> None:
    request = ask(output_format=OutputFormat())
    outcome = await play(
        f'{{"a": 1}}\n{UNDECLARED}', request=request, options=keyless_model(stream_json=StreamJson.EARLY)
    )
    assert (outcome.text, outcome.report.again) == ('{"a": 1}', [])


@pytest.mark.parametrize(
    ("first", "goes_on"),
    [
        ([TextPiece("one "), TextPiece("two ")], True),
        ([TextPiece("one "), MessageEnded(), TextPiece("two ")], False),
        (pieces("x" * 4094, 1), True),
        (pieces("x" * 4095, 1), False),
    ],
)
async def test_a_second_answer_goes_on_with_one_message_that_is_not_too_long(
    first: Sequence[TextPiece | MessageEnded], goes_on: bool
) -> None:
    """Counted are the pieces in which it left."""
    text = "".join(piece.text for piece in first if isinstance(piece, TextPiece))
    outcome = await play([*first, TextPiece(f"\n{BROKEN}"), TurnEnded(USAGE)], f"{text}\nSo.")
    assert (END in outcome.events[len(first) :]) is not goes_on
    assert outcome.text.endswith("So.")
