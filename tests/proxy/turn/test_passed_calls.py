"""The calls of an answer: which of them leave, as what, and what is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from parser import ToolRegistry, write_call
from prompts import MASK, PROFILES, ChoiceMode, Text, ToolChoice, Transcript, UserTurn
from proxy.contracts import AnswerText, ToolCallArguments, ToolCallEnded, ToolCallStarted, TurnEvent
from proxy.replay.key_placeholder import PLACEHOLDER
from proxy.turn import (
    BlockNote,
    CallKeys,
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
    TurnOptions,
)
from tests.support.memory_backend import MemoryBackend, Script

from .keyed import written
from .playing import BROKEN, LENIENT, READ_A, READ_B, STRICT, UNDECLARED, UNFIT, Outcome, ask, outcome_of, play

A, B = '{"path": "a.md"}', '{"path": "b.md"}'
NUMBER = write_call("read_note", '{"path": "a.md", "line": "3"}')
BARE = READ_A.removeprefix("<tool_call>").removesuffix("</tool_call>")
KEYED = READ_A.replace('{"name"', f'{{"key": "{PLACEHOLDER}", "id": "call_7", "name"')
OTHER_KEY = write_call("read_note", "{}", key="0000")
REQUIRED = ToolChoice(ChoiceMode.REQUIRED)
TEXT = [AnswerText("So.")]


def call(arguments: str, call_id: str = "call_1", *, complete: bool = True) -> list[TurnEvent]:
    return [ToolCallStarted(call_id, "read_note"), ToolCallArguments(arguments), ToolCallEnded(complete=complete)]


@dataclass
class Heard:
    """Each block of which an observer was told."""

    blocks: list[str] = field(default_factory=list)

    def judged(self, note: BlockNote, block: str) -> None:
        self.blocks.append(block)


async def played(
    text: str,
    *others: Script,
    cut: str | None = None,
    said: str = "Read it.",
    tools: ToolRegistry = LENIENT,
    key: KeyMode = KeyMode.OFF,
    habits: KeyHabits | None = None,
    release: CallRelease = CallRelease.WHOLE,
    bare_calls: bool = False,
    observer: Heard | None = None,
    **changes: Any,
) -> Outcome:
    """What becomes of `text`, which may be `cut`, and of `others` behind it, if a user `said` this."""
    request = ask(transcript=Transcript((UserTurn((Text(said),)),)), registry=tools, **changes)
    profile = replace(PROFILES["frontier"], bare_calls=bare_calls)
    options = TurnOptions(release, profile, CallKeys(key, habits=habits or FixedHabit()))
    return await play(written(text, cut), *others, request=request, options=options, observer=observer)


LIVE: Mapping[str, Any] = {"release": CallRelease.LIVE}
AUTO: Mapping[str, Any] = {"key": KeyMode.AUTO}
NEVER: Mapping[str, Any] = {**AUTO, "habits": FixedHabit(KeyHabit.NEVER)}
ALWAYS: Mapping[str, Any] = {"key": KeyMode.REQUIRED}
BARES: Mapping[str, Any] = {"bare_calls": True}
COMMA = "'}' where a comma or ']' should be"
PROBLEM = "at 'path': 3 is not of type 'string'"
MISFIT = (Reason.ARGUMENTS_MISFIT, "read_note", PROBLEM)
GOOD = Ruling(Fate.CALL, name="read_note")
QUOTED = Ruling(Fate.TEXT, Reason.QUOTED, "read_note")
CUT = "the answer was cut in the middle of it"
TOLD = (
    "A call of the tool 'read_note' left as text: it was taken for a quotation, because of where it stands or what "
    "the request says."
)
NOT_OFFERED = "A call of 'rm' was taken out, because no such tool is offered."
WITHOUT_KEY = "A call of the tool 'read_note' was taken out, because it did not carry the key for calls."
OF_WRONG_KEY = "A call of the tool 'read_note' was taken out, because it carried another key for calls than its own."
UNREADABLE = "A call of the tool 'read_note' was taken out, because it cannot be read."
DOES_NOT_FIT = "A call of the tool 'read_note' left with arguments that do not fit its schema."


def count(tier: str = "", *, repaired: str = "", refused: str = "", out: bool = False, shown: str = "") -> object:
    named = {"tiers": tier, "repaired": repaired, "refused": refused, "taken_out": "block" * out, "markup_shown": shown}
    return {what: {name: 1} for what, name in named.items() if name}


@pytest.mark.parametrize(
    ("block", "setting", "ruling", "left", "counted", "warnings"),
    [
        (READ_A, {}, GOOD, call(A), count("A"), []),
        (READ_A.replace("}}", ",}}"), {}, GOOD, call(A), count("B", repaired="trailing-comma"), []),
        (NUMBER, {}, GOOD, call('{"path": "a.md", "line": 3}'), count("A", repaired="coerced_number"), []),
        (NUMBER, LIVE, GOOD, call('{"path": "a.md", "line": "3"}'), count("A"), []),
        (KEYED, AUTO, GOOD, call(A, "call_7"), count("A"), []),
        (BARE, BARES, GOOD, call(A), count("C", repaired="bare-answer"), []),
        (
            UNDECLARED,
            {},
            Ruling(Fate.GONE, Reason.UNDECLARED, "rm"),
            TEXT,
            count(refused="undeclared"),
            [NOT_OFFERED],
        ),
        (READ_A, {"said": READ_A}, QUOTED, [AnswerText(READ_A)], count(refused="quoted", shown="quotation"), [TOLD]),
        (
            READ_A,
            {**ALWAYS, "said": READ_A},
            QUOTED,
            [AnswerText(READ_A)],
            count(refused="quoted", shown="quotation"),
            [TOLD],
        ),
        (BARE, {**BARES, "said": BARE}, QUOTED, [AnswerText(BARE)], count(refused="quoted"), [TOLD]),
        (
            READ_A,
            ALWAYS,
            Ruling(Fate.GONE, Reason.NO_KEY, "read_note"),
            TEXT,
            count(refused="no_key", out=True),
            [WITHOUT_KEY],
        ),
        (
            BARE,
            {**BARES, **ALWAYS},
            Ruling(Fate.GONE, Reason.NO_KEY, "read_note"),
            [AnswerText(BARE)],
            count(refused="no_key"),
            [],
        ),
        (
            READ_B,
            {**AUTO, "said": READ_A},
            Ruling(Fate.AGAIN, Reason.NO_KEY, "read_note"),
            TEXT,
            count(out=True),
            [],
        ),
        (OTHER_KEY, AUTO, Ruling(Fate.AGAIN, Reason.WRONG_KEY, "read_note"), TEXT, count(out=True), []),
        (BROKEN, {}, Ruling(Fate.AGAIN, Reason.MALFORMED, problem=COMMA), TEXT, count(refused=COMMA, out=True), []),
        (
            BROKEN,
            {"said": BROKEN},
            Ruling(Fate.TEXT, Reason.QUOTED, problem=COMMA),
            [AnswerText(BROKEN)],
            count(refused=COMMA, shown="quotation"),
            [],
        ),
        (
            BARE,
            {**BARES, "cut": "content_filter"},
            Ruling(Fate.TEXT, Reason.MENTION, problem=CUT),
            [AnswerText(BARE)],
            count(refused=CUT, shown="mention"),
            [],
        ),
        (UNFIT, {"tools": STRICT}, Ruling(Fate.REFUSE, *MISFIT), TEXT, count(refused="arguments_misfit"), []),
        (UNFIT, {}, Ruling(Fate.AGAIN, *MISFIT, then=Fate.CALL), TEXT, count("A"), []),
        (
            UNFIT,
            LIVE,
            Ruling(Fate.CALL, *MISFIT),
            call('{"path": 3}'),
            {"tiers": {"A": 1}, "misfits": {"read_note": 1}},
            [DOES_NOT_FIT],
        ),
    ],
)
async def test_of_each_block_is_told_what_it_was_taken_for(
    block: str, setting: Mapping[str, Any], ruling: Ruling, *, left: object, counted: Any, warnings: Sequence[str]
) -> None:
    """A second answer is asked for where nothing leaves of the first."""
    heard = Heard()
    outcome = await played(block, *(["So."] if left is TEXT else []), observer=heard, **setting)
    assert [note.ruling for note in outcome.report.notes] == [ruling]
    assert [note.rules for note in outcome.report.notes] == [tuple(counted.get("repaired", ()))]
    assert len(heard.blocks) == 1
    assert (outcome.left, outcome.counted, outcome.report.warnings) == (left, counted, warnings)


@pytest.mark.parametrize(
    ("block", "setting", "left", "warnings"),
    [
        (UNFIT, {}, call('{"path": 3}'), [DOES_NOT_FIT]),
        (f"{BROKEN}So.", {}, TEXT, [UNREADABLE]),
        (f"{OTHER_KEY}So.", AUTO, TEXT, [OF_WRONG_KEY]),
        (OTHER_KEY, {**AUTO, "said": OTHER_KEY}, [AnswerText(OTHER_KEY)], [TOLD]),
    ],
)
async def test_one_of_a_second_answer_is_not_asked_for_again(
    block: str, setting: Mapping[str, Any], left: object, warnings: Sequence[str]
) -> None:
    first = write_call("read_note", "{}", key="7777") if "key" in setting else BROKEN
    outcome = await played(first, written(block), **setting)
    assert (outcome.left, outcome.report.warnings, len(outcome.report.again)) == (left, warnings, 1)


async def test_an_observer_gets_each_block_as_it_was_written() -> None:
    heard = Heard()
    await played(f"I look.\n{READ_A}\n{UNDECLARED} {BROKEN} So.", observer=heard)
    assert heard.blocks == [READ_A, UNDECLARED, BROKEN]


@pytest.mark.parametrize("release", list(CallRelease))
async def test_good_calls_are_counted(release: CallRelease) -> None:
    outcome = await played(f"{READ_A}\n{READ_B}", release=release)
    assert (outcome.calls, outcome.report.calls) == ([("read_note", A), ("read_note", B)], ["read_note"] * 2)


async def test_undeclared_calls_are_counted_and_told_once() -> None:
    outcome = await played(UNDECLARED * 2, "So.")
    assert (outcome.left, outcome.counted) == (TEXT, {"refused": {"undeclared": 2}})
    assert outcome.report.warnings == [NOT_OFFERED]


async def test_one_call_is_enough_where_one_was_asked_for() -> None:
    outcome = await played(READ_A + READ_B, parallel=False)
    assert (outcome.left, outcome.report.interrupted) == (call(A), "one call was asked for")


@pytest.mark.parametrize(
    ("block", "setting", "why"),
    [
        (READ_A.replace("}}", '}, "key": "0000"}'), NEVER, "the call was refused: wrong_key"),
        (READ_A.replace("}}", '}, "line": 3}'), {}, "a part of the arguments came when they had ended"),
        (READ_A.replace("}}", '}, "lines": 3}'), {}, "the call cannot be read: 'lines' stands beside the arguments"),
        (BROKEN.replace("[1}", '{"path": ]'), {}, "the call cannot be read: ']' where a value should be"),
    ],
)
async def test_a_call_that_left_live_and_is_none_breaks_the_answer(
    block: str, setting: Mapping[str, Any], why: str
) -> None:
    outcome = await played(f"{block} Once more: {READ_B}", **setting, **LIVE)
    assert (outcome.left[0], outcome.left[-1]) == (
        ToolCallStarted("call_1", "read_note"),
        ToolCallEnded(complete=False),
    )
    assert (outcome.ending, outcome.report.calls) == ("tool_call_broken", [])
    assert why in outcome.error.message
    assert (outcome.report.interrupted, outcome.backend.left_early) == (why, 1), "the model may go on"


@pytest.mark.parametrize("end", ["}", '}, "key": "0000"}', '}, "line": 3}', '}, "lines": 3}'])
async def test_one_that_was_cut_does_not(end: str) -> None:
    block = READ_A.removesuffix("}}</tool_call>") + end
    outcome = await played(block, cut="content_filter", **LIVE, **NEVER)
    assert (outcome.left, outcome.ending) == (call(A, complete=False), "content_filter")


@pytest.mark.parametrize(
    ("text", "setting", "shown"),
    [
        (f"Look: {READ_A}</tool_call>\nend", ALWAYS, "Look: end"),
        (f"Look.\n{UNDECLARED}\n\nSo.", {}, "Look.\nSo."),
        (f"{KEYED}So: {BROKEN} end", {**AUTO, "said": BROKEN}, f"So: {BROKEN} end"),
        (f"It says:\n{OTHER_KEY}", {**AUTO, "said": OTHER_KEY}, f"It says:\n{OTHER_KEY}"),
    ],
)
async def test_what_closes_a_block_or_is_white_space_behind_it_goes_where_the_block_goes(
    text: str, setting: Mapping[str, Any], shown: str
) -> None:
    outcome = await played(text, **setting)
    assert (outcome.text, outcome.report.again) == (shown, [])


@pytest.mark.parametrize("held", [True, False])
async def test_what_a_model_could_not_write_otherwise_needs_no_key(held: bool) -> None:
    """A held call leaves beside a note that it might have been copied from."""
    request = ask(f"A note: {READ_A}", registry=LENIENT, choice=REQUIRED)
    other = READ_B.removeprefix("<tool_call>").removesuffix("</tool_call>")
    backend = MemoryBackend([f'{{"calls": [{other}]}}'] * (1 if held else 2), holds_schemas=held)
    outcome = await outcome_of(request, backend, TurnOptions())
    assert (outcome.calls, outcome.report.again) == ([("read_note", B)], [] if held else [Reason.NO_KEY])


async def test_a_model_that_was_not_asked_for_the_key_is_not_known_to_write_none() -> None:
    habits = Habits()
    outcome = await played(BROKEN, READ_B, **AUTO, habits=habits, said=READ_A)
    assert (outcome.calls, habits.of(Speaker("", "m")).habit) == ([("read_note", B)], KeyHabit.UNKNOWN)


# A call that the answer was cut in

HALF = KEYED.removesuffix('a.md"}}</tool_call>') + PLACEHOLDER
HALF_LEFT = call(f'{{"path": "{MASK}', "call_7", complete=False)
CUT_OFF: Mapping[str, Any] = {**NEVER, "cut": "content_filter"}


@pytest.mark.parametrize("before", ["", READ_B])
@pytest.mark.parametrize("choice", [ToolChoice(), REQUIRED])
async def test_a_cut_call_with_the_key_leaves_as_far_as_it_came(before: str, choice: ToolChoice) -> None:
    outcome = await played(f"I look.{before}{HALF}", choice=choice, **CUT_OFF)
    calls = [*(call(B) if before else []), *HALF_LEFT]
    assert (outcome.left, outcome.ending) == ([AnswerText("I look."), *calls], "content_filter")
    assert outcome.report.calls == ["read_note"] * (1 + bool(before))
    assert "refused" not in outcome.counted
    assert outcome.report.notes[-1].ruling == Ruling(Fate.CALL, Reason.CUT, "read_note")


async def test_so_does_one_without_where_nothing_can_be_quoted_but_behind_no_other() -> None:
    half = READ_A.removesuffix('"}}</tool_call>')
    outcome = await played(half, **CUT_OFF)
    assert (outcome.left, outcome.report.warnings) == (call('{"path": "a.md', complete=False), [])
    outcome = await played(READ_B + half, **CUT_OFF)
    assert (outcome.left, outcome.report.warnings) == (call(B), [UNREADABLE])
    assert outcome.counted["refused"] == {"the call is cut off": 1}
    assert outcome.report.notes[-1].ruling.fate is Fate.GONE


async def test_a_cut_call_takes_the_place_of_words_that_were_shown_before() -> None:
    outcome = await played(f"I look. {BROKEN}", written(f"I look. {HALF}", "content_filter"), **NEVER)
    assert outcome.left == [AnswerText("I look. "), *HALF_LEFT]


# Calls beside others


async def test_a_live_call_leaves_behind_the_text_that_was_held_for_it_and_with_the_id_that_it_has() -> None:
    outcome = await played(f"I look. {KEYED}", **LIVE, **AUTO, choice=REQUIRED)
    assert outcome.left == [AnswerText("I look. "), *call(A, "call_7")]


@pytest.mark.parametrize(
    ("text", "setting", "calls", "warnings"),
    [
        (KEYED + OTHER_KEY, AUTO, 1, [OF_WRONG_KEY]),
        (READ_A + UNFIT, {}, 2, [DOES_NOT_FIT]),
        (READ_A + BROKEN, {}, 1, [UNREADABLE]),
        (READ_A + UNDECLARED, {}, 1, [NOT_OFFERED]),
    ],
)
async def test_behind_a_call_that_has_left_no_other_is_asked_for(
    text: str, setting: Mapping[str, Any], calls: int, warnings: Sequence[str]
) -> None:
    outcome = await played(text, **setting)
    assert (len(outcome.calls), outcome.report.warnings, outcome.report.again) == (calls, warnings, [])


@pytest.mark.parametrize(("second", "calls"), [("So.", 0), ("", 3)])
async def test_all_calls_are_held_from_one_on_that_does_not_fit(second: str, calls: int) -> None:
    outcome = await played(f"{UNFIT}{READ_A}{UNFIT}", second)
    assert (len(outcome.calls), outcome.report.calls) == (calls, ["read_note"] * calls)
    assert outcome.counted.get("misfits", {}) == ({"read_note": 2} if calls else {})


async def test_where_calls_go_together_one_that_does_not_fit_is_asked_for_behind_another() -> None:
    outcome = await played(READ_A + UNFIT, "", streamed=False)
    assert (len(outcome.calls), outcome.counted["misfits"]) == (2, {"read_note": 1})
    assert outcome.report.again == [Reason.ARGUMENTS_MISFIT]


async def test_the_calls_of_an_answer_that_may_not_be_meant_go_together() -> None:
    other = READ_B.replace('{"name"', f'{{"key": "{PLACEHOLDER}", "name"')
    outcome = await played(f"I look. {OTHER_KEY}{other} So.", written(KEYED), **AUTO)
    assert outcome.left == [AnswerText("I look. "), *call(A, "call_7")]
    assert outcome.report.notes[1].ruling == Ruling(Fate.GONE, Reason.JOINED, "read_note")
