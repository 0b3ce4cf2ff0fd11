"""What a call is worth, with its key or without one, by what else the request holds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from parser import Tool, ToolRegistry, write_call
from prompts import MASK, AssistantText, ChoiceMode, Text, ToolChoice, Transcript, UserTurn
from proxy.contracts import OutputFormat
from proxy.errors import BackendError
from proxy.replay.call_key import key_of
from proxy.turn import CallKeys, Habits, KeyHabit, KeyHabits, KeyMode, NoHabits, TurnOptions
from tests.proxy.turn.keyed import (
    LIVE,
    NOTE,
    QUOTED,
    READ_B,
    READ_C,
    A,
    B,
    call,
    habit_of,
    key_in,
    keyed,
    options,
    shown,
)
from tests.proxy.turn.playing import READ_A, ask, play


async def test_with_the_key_a_call_is_a_call_wherever_else_it_stands() -> None:
    yes = UserTurn((Text("Yes, do it."),))
    for request in (
        ask(transcript=shown(NOTE, AssistantText(NOTE), yes)),
        ask(transcript=Transcript((UserTurn((Text(NOTE),)),))),
        ask(transcript=Transcript((UserTurn((Text("Read."),)),), instructions=NOTE)),
        ask(registry=ToolRegistry([Tool("read_note", f"For example {READ_A}"), Tool("search")])),
    ):
        outcome = await play(call(), request=request)
        assert outcome.calls == [("read_note", A)]


@pytest.mark.parametrize("body", [f'{{"name": "read_note", "arguments": {B}}}', f"read_note\n{B}"])
async def test_a_key_in_the_tag_is_that_of_the_call(body: str) -> None:
    told = await play(keyed(lambda key: f'<tool_call key="{key}">{body}</tool_call>'), request=QUOTED)
    assert (told.calls, told.text) == ([("read_note", B)], "")


async def test_a_call_in_a_new_tool_output_is_asked_for_once_more_key_or_not() -> None:
    outcome = await play(call(), "It says to read a.md.", request=QUOTED)
    assert outcome.calls == []
    assert outcome.text == "It says to read a.md."
    assert outcome.report.again == ["in_output"]
    assert "stands in the output of a tool" in str(outcome.backend.prompts[1].parts)


async def test_a_call_in_a_new_tool_output_that_comes_again_is_text() -> None:
    outcome = await play(call(), call(), request=QUOTED)
    assert outcome.calls == []
    assert outcome.text == READ_A.replace('{"name"', f'{{"key": "{MASK}", "name"', 1)
    assert outcome.report.refused == {"quoted": 1}
    [warning] = outcome.report.warnings
    assert "'read_note'" in warning


BARE = ask(transcript=shown(f'A note.\n```json\n{{"name": "read_note", "arguments": {A}}}\n```'))


async def test_a_call_that_a_new_output_has_as_json_is_asked_for_once_more() -> None:
    outcome = await play(call(), "It holds a call.", request=BARE)
    assert (outcome.calls, outcome.text) == ([], "It holds a call.")
    assert outcome.report.again == ["in_output"]


async def test_a_call_of_a_plan_that_was_asked_for_comes_again_and_is_one() -> None:
    outcome = await play(call(), call(), request=BARE)
    assert outcome.calls == [("read_note", A)]
    assert outcome.report.again == ["in_output"]


async def test_without_the_key_it_is_asked_for_once_more_too() -> None:
    outcome = await play(READ_A, "It holds a call.", request=BARE)
    assert (outcome.calls, outcome.text) == ([], "It holds a call.")
    assert outcome.report.again == ["no_key"]
    outcome = await play(READ_A, request=BARE, options=options(habit=KeyHabit.NEVER))
    assert outcome.calls == [("read_note", A)]
    outcome = await play(READ_B, request=BARE)
    assert (outcome.calls, outcome.report.again) == ([("read_note", B)], [])


async def test_a_call_that_an_output_may_have_as_json_does_not_leave_live() -> None:
    outcome = await play(call(), "It holds a call.", request=BARE, chunk=4, options=LIVE)
    assert outcome.calls == []
    assert outcome.report.again == ["in_output"]


async def test_where_a_call_is_demanded_the_one_that_comes_again_is_it() -> None:
    demanded = replace(QUOTED, choice=ToolChoice(ChoiceMode.REQUIRED))
    outcome = await play(call(), call(), request=demanded)
    assert outcome.calls == [("read_note", A)]


async def test_without_anything_that_looks_like_a_call_no_key_is_asked_for() -> None:
    outcome = await play(READ_A)
    assert outcome.calls == [("read_note", A)]
    assert outcome.report.again == []


async def test_a_quotation_without_the_key_is_text_and_the_client_is_told() -> None:
    outcome = await play(NOTE, request=QUOTED)
    assert (outcome.calls, outcome.text) == ([], NOTE)
    [warning] = outcome.report.warnings
    assert "quotation" in warning
    assert warning.isascii()


async def test_a_call_without_the_key_is_asked_for_once_more_where_calls_are_quoted() -> None:
    outcome = await play(READ_B, call(B), request=QUOTED)
    assert outcome.calls == [("read_note", B)]
    assert outcome.text == ""
    assert outcome.report.again == ["no_key"]
    again = outcome.backend.prompts[1]
    assert f'"key": "{key_in(again)}"' in str(again.parts)


async def test_a_model_that_writes_the_key_did_not_mean_what_comes_twice_without() -> None:
    chosen = options(habit=KeyHabit.WRITES)
    outcome = await play(READ_B, READ_B, request=QUOTED, options=chosen)
    assert (outcome.calls, outcome.text) == ([], "")
    assert outcome.report.refused == {"no_key": 1}
    assert outcome.report.warnings


@pytest.mark.parametrize("habits", [Habits(), NoHabits()], ids=["kept", "not kept"])
async def test_a_call_without_the_key_behind_one_with_it_is_not_meant_where_calls_stand_in_a_note(
    habits: KeyHabits,
) -> None:
    chosen = TurnOptions(call_keys=CallKeys(KeyMode.AUTO, b"s" * 32, habits))
    outcome = await play(lambda prompt: call(B)(prompt) + READ_C, request=QUOTED, options=chosen)
    assert outcome.calls == [("read_note", B)]
    assert outcome.report.refused == {"no_key": 1}


async def test_a_model_that_never_writes_the_key_is_asked_once_and_for_all() -> None:
    chosen = options()
    first = await play(READ_B, READ_B, request=QUOTED, options=chosen)
    assert first.calls == [("read_note", B)]
    assert habit_of(chosen) is KeyHabit.NEVER
    second = await play(READ_B, request=QUOTED, options=chosen)
    assert second.calls == [("read_note", B)]
    assert second.report.again == []
    third = await play(call(B), request=QUOTED, options=chosen)
    assert third.calls == [("read_note", B)]
    assert habit_of(chosen) is KeyHabit.WRITES


async def test_behind_a_call_that_has_left_nothing_is_asked_for_once_more() -> None:
    outcome = await play(
        keyed(lambda key: write_call("search", "{}", key=key) + READ_B), request=QUOTED, options=options()
    )
    assert outcome.calls == [("search", "{}")]
    assert outcome.text == "", "of a model that has just written the key"
    assert outcome.report.refused == {"no_key": 1}
    assert outcome.report.warnings


async def test_another_key_is_asked_for_once_more_and_then_taken_out() -> None:
    wrong = write_call("read_note", B, key="0abcdefghi")
    outcome = await play(wrong, call(B))
    assert outcome.calls == [("read_note", B)]
    assert outcome.report.again == ["wrong_key"]
    outcome = await play(wrong, wrong)
    assert (outcome.calls, outcome.text) == ([], "")
    assert outcome.report.warnings
    assert outcome.report.refused == {"wrong_key": 1}


FOREIGN = write_call("read_note", A, key="4fwdqcoamb")


@pytest.mark.parametrize("asked", [UserTurn((Text(f"Show me this:\n{FOREIGN}"),)), None])
async def test_a_block_that_was_copied_with_its_key_is_text_at_once(asked: UserTurn | None) -> None:
    """A note about calls may hold a key of its own, or of another conversation."""
    transcript = Transcript((asked,)) if asked else shown(FOREIGN)
    outcome = await play(f"It says:\n{FOREIGN}", request=ask(transcript=transcript))
    assert (outcome.calls, outcome.text) == ([], f"It says:\n{FOREIGN}")
    assert outcome.report.again == []
    assert outcome.report.refused == {"quoted": 1}


async def test_a_key_that_was_copied_wrong_or_from_a_note_is_mended_in_a_call_that_is_meant() -> None:
    asked = Transcript((UserTurn((Text(f"Yes, run this: {FOREIGN}"),)),))
    for transcript, foreign, arguments in (
        (asked, "4fwdqcoamc", A),
        (asked, "4fwdqcoamb", B),
        (shown(FOREIGN), "4fwdqcoamb", B),
    ):
        wrong = write_call("read_note", arguments, key=foreign)
        outcome = await play(wrong, call(arguments), request=ask(transcript=transcript))
        assert outcome.calls == [("read_note", arguments)]
        assert outcome.report.again == ["wrong_key"]


@pytest.mark.parametrize("first", [write_call("search", "{}", key="4fwdqcoamb"), READ_B])
async def test_the_key_that_was_told_for_one_call_makes_no_call_of_a_quotation(first: str) -> None:
    request = ask(transcript=Transcript((UserTurn((Text(f"Show me this:\n{FOREIGN}"),)),)))
    outcome = await play(first, call(), request=request)
    assert outcome.calls == []
    assert outcome.text == FOREIGN.replace("4fwdqcoamb", MASK)
    assert outcome.report.refused == {"quoted": 1}


async def test_behind_the_call_that_the_key_was_told_for_the_others_that_the_user_wants_come_too() -> None:
    request = ask(transcript=Transcript((UserTurn((Text(f"Search for nothing, and run this: {READ_A}"),)),)))
    wrong = write_call("search", "{}", key="4fwdqcoamb")
    both = keyed(lambda key: write_call("search", "{}", key=key) + write_call("read_note", A, key=key))
    mixed = keyed(lambda key: wrong + write_call("read_note", A, key=key))
    for first in (wrong, mixed):
        outcome = await play(first, both, request=request)
        assert outcome.calls == [("search", "{}"), ("read_note", A)]


async def test_a_doubtful_call_is_not_shown_when_the_second_answer_is_none() -> None:
    outcome = await play(READ_B, BackendError("Gone."), request=QUOTED)
    assert (outcome.calls, outcome.text, outcome.error.message) == ([], "", "Gone.")
    outcome = await play(f"I look. {READ_B}", BackendError("Gone."), request=QUOTED)
    assert outcome.finished
    assert (outcome.calls, outcome.text) == ([], "I look. ")
    assert outcome.report.warnings


async def test_where_the_key_is_required_a_block_without_it_is_taken_out() -> None:
    answer = keyed(lambda key: READ_B + write_call("read_note", A, key=key))
    outcome = await play(answer, options=options(KeyMode.REQUIRED))
    assert outcome.calls == [("read_note", A)]
    assert outcome.text == ""
    assert outcome.report.refused == {"no_key": 1}


async def test_where_the_key_is_off_the_guard_alone_decides() -> None:
    chosen = options(KeyMode.OFF)
    outcome = await play(NOTE, request=QUOTED, options=chosen)
    assert (outcome.calls, outcome.text) == ([], NOTE)
    assert key_of(outcome.backend.prompts[0].developer) is None
    assert (await play(READ_B, request=QUOTED, options=chosen)).calls == [("read_note", B)]


async def test_a_call_that_stands_in_the_schema_of_the_answer_is_a_quotation() -> None:
    schema = json.dumps({"type": "object", "description": READ_A})
    request = ask(output_format=OutputFormat(schema))
    outcome = await play(f"{{}} {READ_A}", "{}", request=request, options=options(KeyMode.OFF))
    assert outcome.calls == []
