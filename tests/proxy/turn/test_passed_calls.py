"""The calls of one answer: which of them leave, and what is known of them in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from parser import Tool, ToolRegistry, write_call
from prompts import MASK, ChoiceMode, PastCall, Text, ToolChoice, ToolResult, Transcript, UserTurn
from proxy.contracts import (
    AnswerText,
    TextPiece,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    TurnEvent,
)
from proxy.turn import (
    CallRelease,
    Fate,
    FixedHabit,
    Habits,
    KeyHabit,
    KeyHabits,
    KeyMode,
    Reason,
    Ruling,
    Speaker,
    TurnReport,
)
from proxy.turn.block_note import BlockNote
from proxy.turn.blocks import QUOTED, TAKEN_OUT, unreadable
from proxy.turn.passed_calls import Stop
from proxy.turn.plan import Try
from proxy.turn.reading import Reading
from proxy.turn.turn_key import TurnKey
from proxy.turn.verdict import Answer, fault_of
from tests.proxy.turn.playing import BROKEN, NO_KEY, READ_A, READ_B, TOOLS, planned, read, reading_of
from tests.support.memory_backend import pieces


def test_a_call_leaves_whole() -> None:
    left = read(reading_of(), pieces(READ_A, 3))
    assert left == [ToolCallStarted("call_1", "read_note"), ToolCallArguments('{"path": "a.md"}'), ToolCallEnded()]


@pytest.mark.parametrize("release", list(CallRelease))
def test_good_calls_are_counted(release: CallRelease) -> None:
    report = TurnReport()
    reading = reading_of(planned(release=release), report)
    read(reading, pieces(f"{READ_A}\n{READ_B}", 5))
    assert (reading.answer.calls, report.calls) == (2, ["read_note"] * 2)


LOOPED = (PastCall("c", "read_note", '{"path":"a.md"}'), ToolResult("c", (Text("# A"),))) * 2


def test_a_call_that_goes_round_is_held_once() -> None:
    transcript = Transcript((UserTurn((Text("What is in a.md?"),)), *LOOPED))
    reading = reading_of(planned(transcript=transcript))
    assert read(reading, [TextPiece(READ_A)]) == []
    assert (reading.answer.kept_for, reading.answer.calls) == (Reason.REPEATED, 0)
    again = reading_of(planned(transcript=transcript), may_repeat=True)
    assert len(read(again, [TextPiece(READ_A)])) == 3


def test_undeclared_calls_are_counted_and_leave_nothing() -> None:
    reading = reading_of()
    assert read(reading, [TextPiece(write_call("rm", "{}") * 2)]) == []
    assert reading.answer == Answer(rulings=(Ruling(Fate.GONE, Reason.UNDECLARED),) * 2, lost=(NOT_OFFERED,) * 2)


def test_one_call_is_enough_where_one_was_asked_for() -> None:
    reading = reading_of(planned(parallel=False))
    assert len(reading.receive([TextPiece(READ_A + READ_B)])) == 3
    assert reading.end.stop == Stop("one call was asked for", winds_down=True)


def test_behind_a_live_call_that_broke_nothing_is_wanted() -> None:
    reading = reading_of(planned(release=CallRelease.LIVE))
    broken = READ_A.replace('"}}', '"]}')
    assert reading.receive(pieces(broken, 4))[-1] == ToolCallEnded(complete=False)
    assert reading.end.stop is not None
    assert (reading.end.stop.reason or "").startswith("the call cannot be read: ")
    assert reading.receive([TextPiece(f"Once more: {READ_B}")]) == []
    assert reading.finish() == []
    assert (broken_by(reading.answer), reading.answer.calls) == (reading.end.stop.reason, 0)


def broken_by(answer: Answer) -> str | None:
    broken = answer.ruled(Reason.BROKEN)
    return broken.problem if broken else None


# What is told of each block


@dataclass
class Heard:
    """What an observer heard: what was told, and the block."""

    notes: list[tuple[object, ...]] = field(default_factory=list)

    def judged(self, note: BlockNote, block: str) -> None:
        if note.is_call:
            self.notes.append((note.name, *note.rules, block))
        else:
            told = note.problem if note.reason in {Reason.MALFORMED, Reason.QUOTED, Reason.MENTION} else ""
            self.notes.append((told or note.reason, block))


NOT_OFFERED = TAKEN_OUT[Reason.UNDECLARED].format(tool="'rm'")
KEY = "7qhvxmrtbz"
WHO = Speaker("", "m")
AUTO, REQUIRED = KeyMode.AUTO, KeyMode.REQUIRED
UNKNOWN, NEVER = FixedHabit(), FixedHabit(KeyHabit.NEVER)


def key_of(mode: KeyMode, habits: KeyHabits = UNKNOWN) -> TurnKey:
    return TurnKey(mode, KEY, WHO, habits)


SCHEMA = '{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}},"required":["path"]}'
LENIENT, STRICT = (ToolRegistry([Tool("read_note", None, SCHEMA, strict=strict)]) for strict in (False, True))
BARE = READ_A.removeprefix("<tool_call>").removesuffix("</tool_call>")
KEYED = READ_A.replace('{"name"', f'{{"key": "{KEY}", "id": "call_7", "name"')
UNFIT = write_call("read_note", '{"path": 3}')
OTHER_KEY = write_call("read_note", "{}", key="0000")
LIVE = {"release": CallRelease.LIVE}
SECOND = {"number": Try.SECOND}
NUMBER = '{"path": "a.md", "line": "3"}'
INCOMPLETE = ToolCallEnded(complete=False)
PROBLEM = "at 'path': 3 is not of type 'string'"
MISFIT = (Reason.ARGUMENTS_MISFIT, "read_note", PROBLEM)
COMMA = "'}' where a comma or ']' should be"
READ = "the tool 'read_note'"
WITHOUT_KEY, OF_WRONG_KEY = (TAKEN_OUT[why].format(tool=READ) for why in (Reason.NO_KEY, Reason.WRONG_KEY))
CUT = "the answer was cut in the middle of it"


def played(text: str, setting: Mapping[str, Any]) -> tuple[Reading, TurnReport, Heard, list[TurnEvent]]:
    """`setting`: what the user said, the tools, the key, how the answer was cut, and more of its plan."""
    options = {"said": "Read it.", "tools": LENIENT, "key": None, "habits": UNKNOWN, "cut": None, **setting}
    transcript = Transcript((UserTurn((Text(options.pop("said")),)),))
    tools, mode, habits, cut = (options.pop(name) for name in ("tools", "key", "habits", "cut"))
    how = {name: options.pop(name) for name in ("keep_for", "number") if name in options}
    key = key_of(mode, habits) if mode else NO_KEY
    heard = Heard()
    report = TurnReport(observer=heard)
    reading = reading_of(planned(tools, key=key, transcript=transcript, **options), report, **how)
    return reading, report, heard, read(reading, [TextPiece(text), TurnEnded(None, cut)])


@pytest.mark.parametrize(
    ("block", "setting", "note", "known"),
    [
        (READ_A, {}, ("read_note",), {"calls": 1}),
        (READ_A.replace("}}", ",}}"), {}, ("read_note", "trailing-comma"), {"calls": 1}),
        (write_call("read_note", NUMBER), {}, ("read_note", "coerced_number"), {"calls": 1}),
        (write_call("read_note", NUMBER), LIVE, ("read_note",), {"calls": 1}),
        (
            write_call("rm", "{}"),
            {},
            ("undeclared",),
            {"lost": (NOT_OFFERED,), "ruling": Ruling(Fate.GONE, Reason.UNDECLARED)},
        ),
        (READ_A, {"said": READ_A}, ("quoted",), {}),
        (READ_A, {"key": REQUIRED}, ("no_key",), {"lost": (WITHOUT_KEY,)}),
        (
            READ_B,
            {"key": AUTO, "said": READ_A},
            ("no_key",),
            {
                "lost": (WITHOUT_KEY,),
                "ruling": Ruling(Fate.AGAIN, Reason.NO_KEY, "read_note"),
            },
        ),
        (
            OTHER_KEY,
            {"key": AUTO},
            ("wrong_key",),
            {
                "lost": (OF_WRONG_KEY,),
                "ruling": Ruling(Fate.AGAIN, Reason.WRONG_KEY, "read_note"),
            },
        ),
        (
            OTHER_KEY,
            {"key": AUTO, "number": Try.SECOND},
            ("wrong_key",),
            {"lost": (OF_WRONG_KEY,)},
        ),
        (
            BROKEN,
            {},
            (COMMA,),
            {"lost": (unreadable("read_note"),), "ruling": Ruling(Fate.AGAIN, Reason.MALFORMED, problem=COMMA)},
        ),
        (BROKEN, {"said": BROKEN}, (COMMA,), {}),
        (UNFIT, {"tools": STRICT}, ("arguments_misfit",), {"ruling": Ruling(Fate.REFUSE, *MISFIT)}),
        (UNFIT, {}, ("read_note",), {"calls": 1, "ruling": Ruling(Fate.AGAIN, *MISFIT, then=Fate.CALL)}),
        (UNFIT, {"number": Try.SECOND}, ("read_note",), {"calls": 1}),
        (UNFIT, LIVE, ("read_note",), {"calls": 1}),
        (BARE, {"bare_calls": True}, ("read_note", "bare-answer"), {"calls": 1}),
        (BARE, {"bare_calls": True, "key": REQUIRED}, ("no_key",), {}),
        (BARE, {"bare_calls": True, "cut": "content_filter"}, (CUT,), {}),
    ],
)
def test_of_each_block_is_told_what_it_was_taken_for(
    block: str, setting: Mapping[str, Any], note: tuple[str, ...], known: Mapping[str, object]
) -> None:
    """Its words are for who watches; counted is what became of it."""
    reading, report, heard, _ = played(block, setting)
    assert heard.notes == [(*note, block)]
    what, *rules = note
    asked, called = bool(reading.answer.doubtful), what == "read_note"
    assert (report.counts["refused"], report.counts["tiers"].total()) == ({} if called or asked else {what: 1}, called)
    assert report.counts["repaired"] == dict.fromkeys(rules, 1)
    assert report.counts["taken_out"] == ({"block": 1} if "lost" in known and what != "undeclared" else {})
    answer = reading.answer
    [ruling] = answer.rulings
    assert (answer.calls, answer.lost) == (known.get("calls", 0), known.get("lost", ()))
    assert ruling == known.get("ruling", ruling)


@pytest.mark.parametrize(
    ("block", "setting", "markup", "warnings"),
    [
        (READ_A, {"said": READ_A}, {"quotation": 1}, [QUOTED.format(tool=READ)]),
        (BARE, {"bare_calls": True, "said": BARE}, {}, [QUOTED.format(tool=READ)]),
        (BARE, {"bare_calls": True, "key": REQUIRED}, {}, []),
        (BARE, {"bare_calls": True, "cut": "content_filter"}, {"mention": 1}, []),
        (BROKEN, {"said": BROKEN}, {"quotation": 1}, []),
        (READ_A, {"said": f"{READ_A} ", "tools": TOOLS, "key": REQUIRED}, {"quotation": 1}, [QUOTED.format(tool=READ)]),
        (
            OTHER_KEY,
            {"said": OTHER_KEY, "key": AUTO, "number": Try.SECOND},
            {"quotation": 1},
            [QUOTED.format(tool=READ)],
        ),
    ],
)
def test_a_block_that_is_no_call_is_text_where_it_is_quoted_or_of_no_notation_of_ours(
    block: str, setting: Mapping[str, Any], markup: Mapping[str, int], warnings: Sequence[str]
) -> None:
    text = block if block is BARE else f"It says:\n{block}"
    _, report, _, left = played(text, setting)
    assert "".join(event.text for event in left if isinstance(event, AnswerText)) == text
    assert (report.counts["markup_shown"], report.warnings, report.counts["taken_out"]) == (markup, warnings, {})


@pytest.mark.parametrize(
    ("block", "setting", "why"),
    [
        (READ_A.replace("}}", '}, "key": "0000"}'), {"key": AUTO, "habits": NEVER}, "the call was refused: wrong_key"),
        (READ_A.replace("}}", '}, "line": 3}'), {}, "a part of the arguments came when they had ended"),
        (READ_A.replace("}}", '}, "lines": 3}'), {}, "the call cannot be read: 'lines' stands beside the arguments"),
        (BROKEN.replace("[1}", '{"path": ]'), {}, "the call cannot be read: ']' where a value should be"),
    ],
)
def test_a_call_that_left_live_and_is_none_breaks_the_answer(block: str, setting: Mapping[str, Any], why: str) -> None:
    reading, _, _, left = played(block, {**setting, **LIVE})
    assert (left[0], left[-1]) == (ToolCallStarted("call_1", "read_note"), INCOMPLETE)
    assert (broken_by(reading.answer), reading.answer.calls) == (why, 0)
    assert reading.end.stop == Stop(why, winds_down=False), "the model may go on, and is interrupted"


@pytest.mark.parametrize("end", ["}", '}, "key": "0000"}', '}, "line": 3}', '}, "lines": 3}'])
def test_one_that_was_cut_does_not(end: str) -> None:
    block = READ_A.removesuffix("}}</tool_call>") + end
    reading, _, _, left = played(block, {**LIVE, "key": AUTO, "habits": NEVER, "cut": "content_filter"})
    assert (left[0], left[-1]) == (ToolCallStarted("call_1", "read_note"), INCOMPLETE)
    assert (reading.answer.ruled(Reason.BROKEN), reading.answer.ending.incomplete) == (None, "content_filter")


def test_what_closes_a_block_once_more_goes_with_it() -> None:
    _, _, _, left = played(f"Look: {READ_A}</tool_call>\nend", {"key": REQUIRED})
    assert "".join(event.text for event in left if isinstance(event, AnswerText)) == "Look: end"


def test_white_space_behind_a_call_that_is_taken_out_goes_with_it() -> None:
    _, _, _, left = played(f"Look.\n{write_call('rm', '{}')}\n\nSo.", {})
    assert "".join(event.text for event in left if isinstance(event, AnswerText)) == "Look.\nSo."


def test_a_quoted_block_is_text_behind_a_good_call_too() -> None:
    reading, _, _, left = played(f"{KEYED}So: {BROKEN} end", {"key": AUTO, "said": BROKEN})
    assert "".join(event.text for event in left if isinstance(event, AnswerText)) == f"So: {BROKEN} end"
    assert (reading.answer.calls, reading.answer.lost) == (1, ())


@pytest.mark.parametrize("held", [True, False])
def test_what_a_model_could_not_write_otherwise_needs_no_key(held: bool) -> None:
    """A held call leaves beside a note that it might have been copied from."""
    transcript = Transcript((UserTurn((Text(f"A note: {READ_A}"),)),))
    demanding = ToolChoice(ChoiceMode.REQUIRED)
    plan = planned(LENIENT, transcript=transcript, key=key_of(AUTO), choice=demanding)
    reading = reading_of(plan, keep_for=Reason.CALL_MISSING, held=held)
    other = READ_B.removeprefix("<tool_call>").removesuffix("</tool_call>")
    read(reading, [TextPiece(f'{{"calls": [{other}]}}')])
    assert (reading.answer.calls, reading.answer.doubtful is None) == (held, held)


def test_a_model_that_was_not_asked_for_the_key_is_not_known_to_write_none() -> None:
    habits = Habits()
    reading, _, _, _ = played(READ_B, {"key": AUTO, "habits": habits, "said": READ_A, "number": Try.SECOND})
    assert (reading.answer.calls, habits.of(WHO).habit) == (1, KeyHabit.UNKNOWN)


# A call that the answer was cut in

HALF = KEYED.removesuffix('a.md"}}</tool_call>') + KEY
HALF_LEFT = [
    ToolCallStarted("call_7", "read_note"),
    ToolCallArguments(f'{{"path": "{MASK}'),
    ToolCallEnded(complete=False),
]
CUT_OFF: Mapping[str, Any] = {"key": AUTO, "habits": NEVER, "cut": "content_filter"}


@pytest.mark.parametrize("before", ["", READ_B])
@pytest.mark.parametrize("keep_for", [None, Reason.CALL_MISSING])
def test_a_cut_call_with_the_key_leaves_as_far_as_it_came(before: str, keep_for: Reason | None) -> None:
    reading, report, heard, left = played(f"I look.{before}{HALF}", {**CUT_OFF, "keep_for": keep_for})
    assert left[0] == AnswerText("I look.")
    assert left[-3:] == HALF_LEFT
    assert (reading.answer.calls, report.counts["refused"]) == (bool(before), {})
    assert report.calls == ["read_note"] * (1 + bool(before))
    assert [note[0] for note in heard.notes] == ["read_note"] * (1 + bool(before))


def test_so_does_one_without_where_nothing_can_be_quoted_but_behind_no_other() -> None:
    half = READ_A.removesuffix('"}}</tool_call>')
    reading, _, _, left = played(half, CUT_OFF)
    assert left == [
        ToolCallStarted("call_1", "read_note"),
        ToolCallArguments('{"path": "a.md'),
        ToolCallEnded(complete=False),
    ]
    assert reading.answer.lost == ()
    reading, report, _, left = played(READ_B + half, CUT_OFF)
    assert (len(left), left[-1]) == (3, ToolCallEnded())
    assert (reading.answer.lost, report.counts["refused"]) == ((unreadable("read_note"),), {"the call is cut off": 1})
    assert reading.answer.rulings[1].fate is Fate.GONE


def test_a_cut_call_takes_the_place_of_words_that_were_shown_before() -> None:
    reading, _, _, left = played(f"I look. {HALF}", {**CUT_OFF, "keep_for": Reason.SAID})
    assert (left, reading.answer.kept) == (HALF_LEFT, ())


# Calls beside others


def test_a_live_call_leaves_behind_the_text_that_was_held_for_it_and_with_the_id_that_it_has() -> None:
    _, _, _, left = played(f"I look. {KEYED}", {**LIVE, "key": AUTO, "keep_for": Reason.CALL_MISSING})
    assert left[:2] == [AnswerText("I look. "), ToolCallStarted("call_7", "read_note")]


def test_behind_a_call_that_has_left_no_other_is_asked_for() -> None:
    reading, report, _, _ = played(f"{KEYED}{OTHER_KEY}", {"key": AUTO})
    assert (reading.answer.calls, reading.answer.doubtful, report.counts["refused"]) == (1, None, {"wrong_key": 1})
    reading, _, _, left = played(READ_A + UNFIT, {})
    assert (reading.answer.misfit, len(left)) == (None, 6)


def test_all_calls_are_held_from_one_on_that_does_not_fit() -> None:
    reading, report, _, left = played(f"{UNFIT}{READ_A}{UNFIT}", {})
    answer = reading.answer
    assert (left, len(answer.kept), answer.calls, len(answer.let_misfits)) == ([], 9, 3, 2)
    assert (report.calls, report.counts["misfits"]) == ([], {})


def test_where_calls_go_together_one_that_does_not_fit_is_asked_for_behind_another() -> None:
    reading = reading_of(planned(LENIENT, streamed=False))
    assert read(reading, [TextPiece(READ_A + UNFIT)]) == []
    assert (reading.answer.calls, reading.answer.let_misfits) == (2, ["read_note"])


def test_of_calls_that_cannot_be_read_the_one_behind_a_good_one_is_not_asked_for() -> None:
    reading, _, _, _ = played(READ_A + BROKEN, {})
    assert (reading.answer.calls, fault_of(reading.answer, planned())) == (1, None)
