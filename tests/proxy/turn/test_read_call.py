"""A call of which what stands behind it tells whether it is shown: how its answer is cut does not count."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import write_call
from prompts import PastCall, Place, Text, ToolResult, Transcript, UserTurn
from proxy.contracts import AnswerText, TextPiece, ToolCallArguments, TurnEnded, TurnEvent
from proxy.turn import CallRelease, FixedHabit, KeyHabit, KeyMode, Speaker, TurnReport
from proxy.turn.plan import Try
from proxy.turn.read_call import Showing
from proxy.turn.turn_key import TurnKey
from tests.proxy.turn.playing import READ_A, READ_B, planned, read, reading_of

KEY = "7qhvxmrtbz"
DONE = Transcript((
    UserTurn((Text("Read a.md."),)),
    PastCall("c1", "read_note", '{"path": "a.md"}'),
    ToolResult("c1", (Text("# Beans and peas"),)),
    UserTurn((Text("Show me what you wrote."),)),
))  # fmt: skip
PIECES = st.sampled_from([
    READ_A, READ_B, write_call("read_note", '{"path": "a.md"}', key=KEY), write_call("search", "{}", key=KEY),
    write_call("rm", "{}"), "</tool_call>", "I write ", " for it.", '"', "(", ")", "\n", "\n\n", "- ", "> ", "`", "**",
    "<pre>", "</pre>", "Beans and peas", "\nIt said:\n", "| ", "\u300c", "\u300d", "---|---\n",
    "[tool:c1] # Beans", "    ", "call: ", "{",
    "<tool_call>[" + READ_A[11:-12] + ",",
])  # fmt: skip


def settled(text: str, cuts: Sequence[int], habit: KeyHabit, release: CallRelease, *, final: bool) -> object:
    """What leaves of an answer that comes in these pieces, and what is known of it."""
    key = TurnKey(KeyMode.AUTO, KEY, Speaker("", "m"), FixedHabit(habit))
    report = TurnReport()
    number = Try.SECOND if final else Try.FIRST
    reading = reading_of(planned(transcript=DONE, key=key, release=release), report, number=number)
    ends = [*sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [TextPiece(text[start:end]) for start, end in zip([0, *ends], ends, strict=False) if end > start]
    left = read(reading, [*pieces, TurnEnded(None, None)])
    answer = reading.answer
    known = (answer.rulings, answer.lost)
    return (
        joined([*left, *answer.kept]),
        known,
        report.counts["refused"],
        report.warnings,
        report.counts["markup_shown"],
    )


def joined(events: Sequence[TurnEvent]) -> list[object]:
    """The events, with neighbouring deltas as one."""
    found: list[object] = []
    for event in events:
        match found[-1:], event:
            case [AnswerText(before, phase)], AnswerText(text):
                found[-1] = AnswerText(before + text, phase)
            case [ToolCallArguments(before)], ToolCallArguments(text):
                found[-1] = ToolCallArguments(before + text)
            case _:
                found.append(event)
    return found


@given(
    st.lists(PIECES, max_size=8).map("".join),
    st.lists(st.integers(0, 400), max_size=12),
    st.sampled_from(KeyHabit),
    st.booleans(),
)
def test_how_an_answer_is_cut_does_not_show(text: str, cuts: list[int], habit: KeyHabit, final: bool) -> None:
    whole = settled(text, [], habit, CallRelease.WHOLE, final=final)
    assert settled(text, cuts, habit, CallRelease.WHOLE, final=final) == whole
    assert settled(text, range(1, len(text)), habit, CallRelease.WHOLE, final=final) == whole


@given(st.lists(PIECES, max_size=8).map("".join), st.lists(st.integers(0, 400), max_size=12), st.sampled_from(KeyHabit))
def test_nor_where_calls_leave_live(text: str, cuts: list[int], habit: KeyHabit) -> None:
    live = settled(text, cuts, habit, CallRelease.LIVE, final=False)
    assert live == settled(text, range(1, len(text)), habit, CallRelease.LIVE, final=False)


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
def test_a_call_with_a_result_is_shown_with_it_in_a_list_or_in_a_sentence(
    before: str, behind: str, shown: bool
) -> None:
    showing = Showing(Place(before), frozenset({"beansandpeas"}))
    assert bool(showing.is_shown(behind, ended=True)) is shown
