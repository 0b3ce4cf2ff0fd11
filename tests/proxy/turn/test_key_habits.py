"""What is known of a model, from whom it is known, and how long."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from prompts import AssistantText, Text, Transcript, UserTurn
from proxy.turn import Habits, KeyHabit, Known, Speaker
from proxy.turn.key_habits import MOST_KNOWN, MOST_TURNS
from tests.proxy.turn.playing import ask

FIRST = Speaker("owner", "m", "first")
SECOND = replace(FIRST, conversation="second")


def test_one_call_with_the_key_is_enough() -> None:
    habits = Habits()
    assert habits.begin(FIRST) is KeyHabit.UNKNOWN
    habits.note_key(FIRST)
    assert habits.begin(SECOND) is KeyHabit.WRITES


def test_two_conversations_without_it_are_a_habit_and_one_only_of_itself() -> None:
    habits = Habits()
    habits.note_lack(FIRST)
    habits.note_lack(FIRST)
    assert (habits.begin(FIRST), habits.begin(SECOND)) == (KeyHabit.NEVER, KeyHabit.UNKNOWN)
    habits.note_lack(SECOND)
    assert habits.begin(replace(FIRST, conversation="third")) is KeyHabit.NEVER


def test_a_model_that_writes_it_loses_that_name_in_two_conversations_and_gets_it_back_in_one() -> None:
    habits = Habits()
    habits.note_key(FIRST)
    habits.note_lack(FIRST)
    assert habits.begin(FIRST) is KeyHabit.WRITES
    habits.note_key(FIRST)
    habits.note_lack(SECOND)
    assert habits.begin(SECOND) is KeyHabit.WRITES, "a proof between them"
    habits.note_lack(FIRST)
    assert habits.begin(FIRST) is KeyHabit.NEVER
    habits.note_key(FIRST)
    assert habits.begin(FIRST) is KeyHabit.WRITES


def test_it_is_known_of_one_owners_model_alone() -> None:
    habits = Habits()
    habits.note_key(FIRST)
    for other in (replace(FIRST, owner="another"), replace(FIRST, model="n")):
        assert habits.begin(other) is KeyHabit.UNKNOWN


@pytest.mark.parametrize("habit", [KeyHabit.WRITES, KeyHabit.NEVER])
def test_it_is_forgotten_after_so_many_turns_without_a_proof(habit: KeyHabit) -> None:
    habits = Habits([("owner", "m", Known(habit))])
    assert {habits.begin(FIRST) for _ in range(MOST_TURNS)} == {habit}
    assert habits.begin(FIRST) is KeyHabit.UNKNOWN


def test_of_too_many_models_the_one_that_was_longest_not_heard_of_is_forgotten() -> None:
    habits = Habits()
    speakers = [Speaker("", f"m{number}") for number in range(MOST_KNOWN + 1)]
    for speaker in speakers[:-1]:
        habits.note_key(speaker)
    habits.begin(speakers[0])
    habits.note_key(speakers[-1])
    known = [habits.of(speaker).habit is KeyHabit.WRITES for speaker in (*speakers[:3], speakers[-1])]
    assert known == [True, False, True, True]


def test_a_conversation_is_known_by_how_it_began() -> None:
    begun = ask("How are you?").transcript.entries
    longer = (*begun, AssistantText("Fine."), UserTurn((Text("And now?"),)))
    speakers = {Speaker.of(ask(transcript=Transcript(entries))) for entries in (begun, longer)}
    assert len(speakers) == 1
    assert Speaker.of(ask("Hello.")) not in speakers
    assert Speaker.of(ask(transcript=Transcript(()))).model == "m"
