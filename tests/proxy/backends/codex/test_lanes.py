from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from parser import Tool, ToolRegistry
from prompts import (
    FRONTIER,
    AssistantText,
    ChoiceMode,
    Entry,
    Image,
    PastCall,
    Text,
    ToolChoice,
    ToolResult,
    Transcript,
    UserTurn,
    meanings_of_answer,
    normalise_newlines,
    render_turn,
)
from proxy.backends.codex.errors import MAX_INPUT
from proxy.backends.codex.lanes import REMINDED_FOR, HeldThread, Lanes, beginnings, binding_lines, identity
from proxy.backends.codex.options import LaneBounds
from proxy.backends.codex.spare_threads import Started
from proxy.contracts import Prompt, Usage
from proxy.errors import BackendError

TOOLS = ToolRegistry([Tool("read_note")])


def user(text: str) -> UserTurn:
    return UserTurn((Text(text),))


def read(call_id: str, path: str = "a.md") -> PastCall:
    return PastCall(call_id, "read_note", f'{{"path": "{path}"}}')


def result(call_id: str, text: str = "# A") -> ToolResult:
    return ToolResult(call_id, (Text(text),))


def prompt(*entries: Entry, choice: ChoiceMode = ChoiceMode.AUTO, **changes: object) -> Prompt:
    transcript = Transcript(entries, "Be brief.")
    turn = render_turn(transcript, TOOLS, ToolChoice(choice), parallel=True, profile=FRONTIER)
    made = Prompt("m", turn.developer, turn.parts, head=turn.head, items=turn.items, bare_head=turn.bare_head)
    return replace(made, **changes)


def lane(asked: Prompt, answer: Sequence[AssistantText | PastCall], thread: str = "t") -> HeldThread:
    """A lane that has answered so."""
    made = HeldThread(identity(asked), Started(thread, ephemeral=True))
    made.hold(asked, meanings_of_answer(answer, TOOLS), Usage(output_tokens=10))
    return made


def lanes(*kept: HeldThread, **bounds: float) -> Lanes:
    made = Lanes(LaneBounds(**bounds))  # type: ignore[arg-type]  # names are checked by msgspec
    for now, each in enumerate(kept):
        assert made.keep(each, float(now)) == []
    return made


@given(st.lists(st.binary(min_size=16, max_size=16), unique=True, max_size=8), st.sets(st.integers(0, 8)))
def test_a_beginning_of_a_conversation_has_a_digest_of_its_own(said: list[bytes], counts: set[int]) -> None:
    counts = {count for count in counts if count <= len(said)}
    digests = beginnings(said, counts)
    assert digests == {count: beginnings(said[:count], [count])[count] for count in counts}
    assert len(set(digests.values())) == len(counts)


FIRST = (user("Read a.md."),)
CALL = (AssistantText("I look."), read("c1"))
SECOND = (*FIRST, *CALL, result("c1"))


def test_a_conversation_goes_on_in_its_lane_with_what_is_new() -> None:
    held = lane(prompt(*FIRST), CALL)
    asked = prompt(*SECOND)
    table = lanes(held)
    assert table.take(asked) is held
    assert table.reason == "history"
    assert held.say(asked).older == []
    assert held.say(asked).newest == [Text("[tool:c1] # A")]
    assert table.take(asked) is None, "it is busy now"


def test_a_fresh_thread_is_given_what_is_old_and_asked_what_is_new() -> None:
    asked = prompt(*SECOND, user("And?"))
    said = HeldThread(identity(asked), Started("t", ephemeral=True)).say(asked)
    assert [item.role for item in said.older] == ["user", "assistant"]
    assert said.newest == [Text("[tool:c1] # A"), Text("And?")]


def test_what_the_assistant_is_to_go_on_from_is_given_and_nothing_asked() -> None:
    asked = prompt(*FIRST, AssistantText("It says"))
    said = HeldThread(identity(asked), Started("t", ephemeral=True)).say(asked)
    assert [item.role for item in said.older] == ["user", "assistant"]
    assert said.newest == []


@pytest.mark.parametrize("sent_back", [(), (AssistantText(" "),)])
def test_behind_an_empty_answer_the_conversation_goes_on(sent_back: tuple[Entry, ...]) -> None:
    held = lane(prompt(*SECOND), [])
    asked = prompt(*SECOND, *sent_back, user("Well?"))
    assert lanes(held).take(prompt(*SECOND)) is None, "nothing is new"
    assert lanes(held).take(asked) is held
    assert (held.say(asked).older, held.say(asked).newest) == ([], [Text("Well?")])


def test_a_lane_that_was_not_answered_is_asked_once_more_for_the_same_and_for_more() -> None:
    held = lane(prompt(*SECOND), [])
    held.unanswered = frozenset()
    for more in ([], [user("Well?")]):
        asked = prompt(*SECOND, *more)
        assert lanes(held).take(asked) is held
        assert held.say(asked).older == []
        assert held.say(asked).newest == [part for entry in more for part in entry.parts]
    assert lanes(held).take(prompt(*FIRST)) is None


@pytest.mark.parametrize(
    ("demanded", "demands", "goes_on"), [(False, True, True), (True, True, True), (True, False, False)]
)
def test_a_demand_that_was_not_answered_stays_for_requests_that_demand_the_same(
    demanded: bool, demands: bool, goes_on: bool
) -> None:
    first, then = (
        prompt(*SECOND, choice=ChoiceMode.REQUIRED if demand else ChoiceMode.AUTO) for demand in (demanded, demands)
    )
    held = lane(first, [])
    held.unanswered = binding_lines(first)
    assert (lanes(held).take(then) is held) is goes_on


def test_a_request_without_tools_that_was_not_answered_is_asked_again_without_tools_alone() -> None:
    """The line that forbids calls stands in the thread, also where the prompt has none."""
    summing = (*FIRST, AssistantText("Hi."), user("Sum it up."))
    held = lane(prompt(*FIRST), [AssistantText("Hi.")])
    held.hold(summed_up(*summing), frozenset([b""]), Usage())
    held.unanswered = binding_lines(summed_up(*summing))
    assert lanes(held).take(summed_up(*summing)) is held
    assert lanes(held).take(prompt(*summing)) is None


LOOP: tuple[Entry, ...] = (*FIRST, read("c1"), result("c1"), read("c2", "b.md"), result("c2", "# B"))
ONE_ROUND: tuple[Entry, ...] = (*FIRST, read("c1"), read("c2", "b.md"), result("c1"), result("c2", "# B"))
DONE = AssistantText("Done.")


def test_a_client_that_makes_one_round_of_several_goes_on_at_each_step_and_at_the_next_question() -> None:
    held = lane(prompt(*LOOP[:3]), [read("c2", "b.md")])
    asked = prompt(*ONE_ROUND)
    assert lanes(held).take(asked) is held
    assert held.say(asked).older == []
    assert held.say(asked).newest == [Text("[tool:c2] # B")]
    for before in (LOOP, ONE_ROUND):
        held = lane(prompt(*before), [DONE])
        asked = prompt(*ONE_ROUND, DONE, user("And?"))
        assert lanes(held).take(asked) is held
        assert held.say(asked).newest == [Text("And?")]


@pytest.mark.parametrize(
    "other",
    [
        (*FIRST, read("c2", "b.md"), read("c1"), result("c2", "# B"), result("c1")),
        (*FIRST, read("c1"), read("c2", "b.md"), result("c1", "# B"), result("c2")),
        (*FIRST, read("c1"), read("c2"), result("c1"), result("c2", "# B")),
        (*FIRST, read("c1"), read("c2", "b.md"), result("c1")),
        (*FIRST, read("c1"), result("c1"), result("c2", "# B")),
        (*FIRST, read("c1"), read("c2", "b.md"), read("c3"), result("c1"), result("c2", "# B"), result("c3")),
        (*FIRST, AssistantText("I look."), *ONE_ROUND[1:]),
    ],
)
def test_one_round_of_others_is_another_history(other: tuple[Entry, ...]) -> None:
    assert lanes(lane(prompt(*LOOP), [DONE])).take(prompt(*other, DONE, user("And?"))) is None


def test_rounds_with_words_between_them_are_not_made_one() -> None:
    spoken: tuple[Entry, ...] = (*LOOP[:3], AssistantText("And b.md."), *LOOP[3:])
    for joined in (
        (*FIRST, AssistantText("And b.md."), *ONE_ROUND[1:]),
        (*ONE_ROUND[:2], AssistantText("And b.md."), *ONE_ROUND[2:]),
        ONE_ROUND,
    ):
        assert lanes(lane(prompt(*spoken), [DONE])).take(prompt(*joined, DONE, user("And?"))) is None
    held = lane(prompt(*LOOP[:3]), [AssistantText("And b.md."), read("c2", "b.md")])
    assert lanes(held).take(prompt(*ONE_ROUND)) is None, "its words would come behind it"
    assert lanes(held).take(prompt(*LOOP)) is held


ROUNDS = st.lists(
    st.tuples(
        st.sampled_from(["", "", "I look."]), st.lists(st.sampled_from(["a.md", "b.md"]), min_size=1, max_size=3)
    ),
    max_size=5,
)


@given(ROUNDS, ROUNDS)
def test_only_the_rounds_that_it_holds_go_on_whether_as_they_were_or_as_one(
    rounds: list[tuple[str, list[str]]], others: list[tuple[str, list[str]]]
) -> None:
    def history(rounds: list[tuple[str, list[str]]], *, as_one: bool) -> list[Entry]:
        said: list[Entry] = [*FIRST]
        results: list[Entry] = []
        number = 0
        for text, paths in rounds:
            if text or not as_one:
                said, results = [*said, *results], []
            said += [AssistantText(text)] if text else []
            for path in paths:
                number += 1
                said.append(read(f"c{number}", path))
                results.append(result(f"c{number}", f"of {path}"))
        return [*said, *results, DONE, user("And?")]

    held = lane(prompt(*history(rounds, as_one=False)[:-2]), [DONE])
    forms = [history(rounds, as_one=as_one) for as_one in (False, True)]
    for asked in (*forms, *(history(others, as_one=as_one) for as_one in (False, True))):
        assert (lanes(held).take(prompt(*asked)) is held) is (asked in forms)


def test_nothing_goes_on_where_nothing_was_said() -> None:
    assert lanes(lane(prompt(), [])).take(prompt(*FIRST)) is None


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ((user("Read b.md."), *CALL, result("c1")), "other_history"),
        ((*FIRST, AssistantText("I see."), read("c1"), result("c1")), "other_history"),
        ((*FIRST, AssistantText("I look."), read("c2"), result("c2")), "other_history"),
        ((*FIRST, AssistantText("I look."), read("c1", "b.md"), result("c1")), "other_history"),
        (FIRST, "first"),
        ((*FIRST, *CALL), "other_history"),
    ],
)
def test_another_history_has_another_thread(entries: tuple[Entry, ...], reason: str) -> None:
    table = lanes(lane(prompt(*FIRST), CALL))
    assert table.take(prompt(*entries)) is None
    assert table.reason == reason


@pytest.mark.parametrize(
    "entries",
    [
        (user("Read a.md.\r\n"), *CALL, result("c1")),
        (*FIRST, AssistantText("\nI look.\n"), PastCall("c1", "read_note", '{ "path":"a.md" }'), result("c1")),
    ],
)
def test_other_spelling_is_the_same_history(entries: tuple[Entry, ...]) -> None:
    assert lanes(lane(prompt(*FIRST), CALL)).take(prompt(*entries)) is not None


@pytest.mark.parametrize("change", [{"owner": "b"}, {"model": "n"}, {"head": "Be long."}])
def test_a_lane_is_for_its_owner_model_and_developer_text_alone(change: dict[str, Any]) -> None:
    table = lanes(lane(prompt(*FIRST), CALL))
    assert table.take(prompt(*SECOND, **change)) is None
    assert table.reason == "none_idle"


def test_a_verbosity_that_was_asked_for_stays_so_the_lane_is_another() -> None:
    held = lane(replace(prompt(*FIRST), verbosity="high"), CALL)
    table = lanes(held)
    assert table.take(prompt(*SECOND)) is None
    assert table.take(replace(prompt(*SECOND), verbosity="high")) is held


def test_a_tier_that_was_asked_for_is_taken_back() -> None:
    held = lane(replace(prompt(*FIRST), tier="flex"), CALL)
    assert lanes(held).take(prompt(*SECOND)) is held
    assert held.say(prompt(*SECOND)).tiered
    held.hold(prompt(*SECOND), meanings_of_answer([AssistantText("Done.")], TOOLS), Usage())
    assert held.tiered
    assert not lane(prompt(*FIRST), CALL).say(prompt(*SECOND)).tiered


def test_only_what_is_held_goes_on_behind_an_answer_that_was_held() -> None:
    held = lane(prompt(*FIRST, calls_held=True), CALL)
    table = lanes(held)
    assert table.take(prompt(*SECOND)) is None
    assert table.reason == "held"
    asked = prompt(*SECOND, calls_held=True)
    assert table.take(asked) is held
    held.hold(asked, meanings_of_answer([AssistantText("Done.")], TOOLS), Usage())
    table.keep(held, 1.0)
    assert table.take(prompt(*SECOND, AssistantText("Done."), user("And?"))) is None
    free = lane(prompt(*FIRST), CALL)
    assert lanes(free).take(asked) is free


def test_an_effort_that_was_sent_stays_so_none_is_another_lane() -> None:
    held = lane(prompt(*FIRST, effort="high"), CALL)
    table = lanes(held)
    assert table.take(prompt(*SECOND)) is None
    assert table.reason == "effort"
    assert table.take(prompt(*SECOND, effort="low")) is held


def test_the_longest_beginning_wins_then_the_same_conversation_then_the_newest() -> None:
    short, long = lane(prompt(*FIRST), CALL, "short"), lane(prompt(*SECOND), [AssistantText("A.")], "long")
    asked = prompt(*SECOND, AssistantText("A."), user("More."))
    assert lanes(long, short).take(asked) is long
    named = lane(prompt(*FIRST, names=frozenset({"conv_1"})), CALL, "named")
    assert lanes(named, short).take(prompt(*SECOND, names=frozenset({"conv_1"}))) is named
    assert lanes(named, short).take(prompt(*SECOND)) is short


def test_what_is_too_old_too_many_or_too_large_goes_oldest_first() -> None:
    one, two, three = (lane(prompt(user(text)), CALL, text) for text in ("1", "2", "3"))
    table = lanes(one, two, lanes=2)
    assert table.keep(three, 2.0) == [one]
    assert table.lapsed(1801.0) == [two]
    assert len(table) == 1
    large = lane(prompt(user("x" * 900)), CALL)
    table = lanes(large, characters=1000)
    assert table.keep(lane(prompt(user("y" * 200)), CALL), 1.0) == [large]
    assert table.keep(lane(prompt(user("z" * 500)), CALL), 2.0) == []


def test_a_line_of_ours_goes_out_and_is_none_of_the_conversation() -> None:
    asked = prompt(*FIRST, choice=ChoiceMode.REQUIRED)
    held = HeldThread(identity(asked), Started("t", ephemeral=True))
    assert [part for part in held.say(asked).newest if "at least one tool call" in str(part)]
    held.hold(asked, meanings_of_answer(CALL, TOOLS), Usage())
    assert lanes(held).take(prompt(*SECOND)) is held


def test_a_reminder_goes_out_once_for_so_many_characters() -> None:
    told: tuple[Entry, ...] = (user("x" * (REMINDED_FOR + 1)),)
    held = HeldThread(identity(prompt(*told)), Started("t", ephemeral=True))
    reminded = []
    for more in ("y", "y" * (REMINDED_FOR // 2), "y" * (REMINDED_FOR // 2), "y"):
        asked = prompt(*told)
        reminded.append(any("Reminder" in str(part) for part in held.say(asked).newest))
        held.hold(asked, meanings_of_answer([AssistantText("A.")], TOOLS), Usage())
        told += (AssistantText("A."), user(more))
    assert reminded == [True, False, False, True]


def test_a_new_message_that_is_too_long_is_refused_and_a_long_history_is_not() -> None:
    long = user("x" * (MAX_INPUT + 1))
    with pytest.raises(BackendError) as caught:
        HeldThread(identity(prompt(long)), Started("t", ephemeral=True)).say(prompt(long))
    assert caught.value.code == "context_length_exceeded"
    asked = prompt(long, AssistantText("Much."), user("And?"))
    assert len(HeldThread(identity(asked), Started("t", ephemeral=True)).say(asked).older) == 2


def test_images_are_part_of_what_is_said() -> None:
    image = Image("data:image/png;base64,AA==")
    held = lane(prompt(UserTurn((Text("See"), image))), CALL)
    assert lanes(held).take(prompt(UserTurn((Text("See"), image)), *CALL, result("c1"))) is held
    other = Image("data:image/png;base64,AB==")
    held = lane(prompt(UserTurn((Text("See"), image))), CALL)
    assert lanes(held).take(prompt(UserTurn((Text("See"), other)), *CALL, result("c1"))) is None


@given(
    st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=6),
    st.integers(0, 5),
    st.text().filter(str.strip),
)
def test_a_lane_never_goes_on_where_the_history_differs(words: list[str], place: int, other: str) -> None:
    entries: list[Entry] = []
    for number, word in enumerate(words):
        entries += [user(word), AssistantText(f"{number}")]
    held = lane(prompt(*entries[:-1]), [AssistantText(f"{len(words) - 1}")])
    asked = prompt(*entries, user("And?"))
    assert lanes(held).take(asked) is held
    place = 2 * (place % len(words))
    changed = [*entries]
    changed[place] = user(other)
    taken = lanes(held).take(prompt(*changed, user("And?")))
    assert (taken is held) is (normalise_newlines(other).strip() == normalise_newlines(words[place // 2]).strip())


def summed_up(*entries: Entry, instructions: str = "Be brief.", **changes: object) -> Prompt:
    """What a client asks that declares no tools, though the conversation has calls."""
    turn = render_turn(Transcript(entries, instructions), ToolRegistry(), ToolChoice(), parallel=True, profile=FRONTIER)
    made = Prompt(
        "m", turn.developer, turn.parts, head=turn.head, items=turn.items, bare_head=turn.bare_head, toolless=True
    )
    return replace(made, **changes)


def test_a_request_without_tools_goes_on_behind_the_calls_of_its_conversation() -> None:
    loop = (user("Read it."), read("call_1"), result("call_1"))
    lanes = Lanes(LaneBounds())
    asked = prompt(*loop)
    assert asked.head is not None
    assert asked.bare_head == "Be brief."
    lanes.keep(lane(asked, [AssistantText("It says A.")]), 0)
    summing = (*loop, AssistantText("It says A."), user("Sum it up."))
    assert lanes.holds(summed_up(*summing))
    for other in (
        summed_up(*summing, instructions="Be"),
        summed_up(*summing, model="n"),
        summed_up(*summing, toolless=False),
        summed_up(user("Read it not."), *summing[1:]),
    ):
        assert not lanes.holds(other)
    found = lanes.take(summed_up(*summing))
    assert found is not None
    said = "".join(part.text for part in found.say(summed_up(*summing)).newest if isinstance(part, Text))
    assert said.startswith("Sum it up.")
    assert "No tool can be called in this turn" in said


def test_a_request_without_tools_forbids_calls_only_where_its_lane_offers_some() -> None:
    """Nobody has called one yet, so nothing else says it."""
    summing = summed_up(user("Hello."), AssistantText("Hi."), user("Sum it up."))
    for first, forbids in ((prompt(user("Hello.")), True), (summed_up(user("Hello.")), False)):
        lanes = Lanes(LaneBounds())
        lanes.keep(lane(first, [AssistantText("Hi.")]), 0)
        found = lanes.take(summing)
        assert found is not None
        said = [part.text for part in found.say(summing).newest if isinstance(part, Text)]
        assert said[0] == "Sum it up."
        assert ("No tool can be called in this turn: answer in plain text." in said) is forbids


def test_a_conversation_with_tools_goes_on_behind_one_request_without_them() -> None:
    loop = (user("Read it."), read("call_1"), result("call_1"))
    lanes = Lanes(LaneBounds())
    lanes.keep(lane(prompt(*loop), [AssistantText("It says A.")]), 0)
    summing = (*loop, AssistantText("It says A."), user("Sum it up."))
    found = lanes.take(summed_up(*summing))
    assert found is not None
    found.hold(summed_up(*summing), meanings_of_answer([AssistantText("A.")], TOOLS), Usage())
    lanes.keep(found, 0)
    later = (*summing, AssistantText("A."), user("And now?"))
    assert lanes.holds(prompt(*later))
    assert lanes.holds(summed_up(*later))


def test_a_conversation_without_tools_does_not_go_on_where_its_instructions_are_gone() -> None:
    asked = summed_up(user("Hello"))
    held = lane(asked, [AssistantText("Hi.")])
    later = (user("Hello"), AssistantText("Hi."), user("And now?"))
    assert lanes(held).holds(summed_up(*later))
    without = summed_up(*later, instructions="")
    assert without.head is None
    assert not lanes(held).holds(without)
