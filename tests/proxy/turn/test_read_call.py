"""A call of which what stands behind it tells whether it is shown: how its answer is cut does not count."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import write_call
from prompts import PastCall, Text, ToolResult, Transcript, UserTurn
from proxy.contracts import BackendEvent, Prompt, TextPiece, TurnEnded
from proxy.replay.key_placeholder import PLACEHOLDER
from proxy.turn import CallKeys, CallRelease, FixedHabit, KeyHabit, TurnOptions
from tests.support.memory_backend import USAGE, MemoryBackend, Script

from .keyed import key_in, written
from .playing import BROKEN, READ_A, READ_B, ask, outcome_of, play

DONE = Transcript((
    UserTurn((Text("Read a.md."),)),
    PastCall("c1", "read_note", '{"path": "a.md"}'),
    ToolResult("c1", (Text("# Beans and peas"),)),
    UserTurn((Text("Show me what you wrote."),)),
))  # fmt: skip
PIECES = st.sampled_from([
    READ_A, READ_B, write_call("read_note", '{"path": "a.md"}', key=PLACEHOLDER),
    write_call("search", "{}", key=PLACEHOLDER), write_call("rm", "{}"),
    "</tool_call>", "I write ", " for it.", '"', "(", ")", "\n", "\n\n", "- ", "> ", "`", "**",
    "<pre>", "</pre>", "Beans and peas", "\nIt said:\n", "| ", "\u300c", "\u300d", "---|---\n",
    "[tool:c1] # Beans", "    ", "call: ", "{",
    "<tool_call>[" + READ_A[11:-12] + ",",
])  # fmt: skip


def in_pieces(text: str, cuts: Sequence[int]) -> Script:
    """An answer that comes in these pieces, with the key of its prompt."""

    def script(prompt: Prompt) -> list[BackendEvent]:
        said = text.replace(PLACEHOLDER, key_in(prompt))
        ends = [0, *sorted(min(cut, len(said)) for cut in cuts), len(said)]
        return [*(TextPiece(said[start:end]) for start, end in pairwise(ends) if end > start), TurnEnded(USAGE)]

    return script


def told(text: str, cuts: Sequence[int], habit: KeyHabit, release: CallRelease, *, second: bool = False) -> object:
    """What leaves of a turn whose first or second answer comes in these pieces, and what is told of it."""
    options = TurnOptions(release, call_keys=CallKeys(secret=b"s" * 32, habits=FixedHabit(habit)))
    answers = [*([BROKEN] if second else []), in_pieces(text, cuts), "So.", "Well."]
    outcome = asyncio.run(outcome_of(ask(transcript=DONE), MemoryBackend(answers), options))
    return outcome.left, outcome.ending, outcome.notes, outcome.counted, outcome.report.warnings, outcome.report.again


@given(
    st.lists(PIECES, max_size=8).map("".join),
    st.lists(st.integers(0, 400), max_size=12),
    st.sampled_from(KeyHabit),
    st.booleans(),
)
def test_how_an_answer_is_cut_does_not_show(text: str, cuts: list[int], habit: KeyHabit, second: bool) -> None:
    whole = told(text, [], habit, CallRelease.WHOLE, second=second)
    assert told(text, cuts, habit, CallRelease.WHOLE, second=second) == whole
    assert told(text, range(1, len(text)), habit, CallRelease.WHOLE, second=second) == whole


@given(st.lists(PIECES, max_size=8).map("".join), st.lists(st.integers(0, 400), max_size=12), st.sampled_from(KeyHabit))
def test_nor_where_calls_leave_live(text: str, cuts: list[int], habit: KeyHabit) -> None:
    live = told(text, cuts, habit, CallRelease.LIVE)
    assert live == told(text, range(1, len(text)), habit, CallRelease.LIVE)


@pytest.mark.parametrize(
    ("before", "behind", "shown"),
    [
        ("", "\nBeans and peas, it said.", True),
        ("", "\n\n  It was: beans, and peas.\nSo.", True),
        ("", "\nIt said:\nbeans and peas", True),
        ("", " and it said: \n\n Beans and peas.", True),
        ("", "\nI read it.\nbeans and peas", False),
        ("", "\nIt said:\nPeas.\nBeans and peas", False),
        ("- ", "", True),
        ("I wrote ", " for that.", True),
        ("I read it again. ", "", False),
    ],
)
async def test_a_call_with_a_result_is_shown_with_it_in_a_list_or_in_a_sentence(
    before: str, behind: str, shown: bool
) -> None:
    done = write_call("read_note", '{"path": "a.md"}', key=PLACEHOLDER)
    outcome = await play(written(f"{before}{done}{behind}"), request=ask(transcript=DONE), options=TurnOptions())
    assert (outcome.calls == [], len(outcome.report.notes)) == (shown, 1)
