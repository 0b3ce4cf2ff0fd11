"""`truncation: auto`: the oldest part goes when the whole is too long."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import (
    AssistantText,
    Entry,
    Guidance,
    Image,
    PastCall,
    Text,
    ToolResult,
    Transcript,
    UserTurn,
    without_oldest,
)
from proxy.errors import BackendError
from tests.proxy.turn.playing import ask, play
from tests.support.parts import text_of_parts

TOO_LONG = BackendError("too long", status=400, code="context_length_exceeded", param="input")


def user(text: str) -> UserTurn:
    return UserTurn((Text(text),))


def step(name: str, result: str = "done") -> list[Entry]:
    return [PastCall(f"call_{name}", "read_note", "{}"), ToolResult(f"call_{name}", (Text(result),))]


LONG = Transcript(
    (user("first " * 50), AssistantText("answer " * 50), user("second " * 50), *step("a"), user("third")),
    "Be brief.",
)


async def test_the_oldest_turns_go_until_the_prompt_fits() -> None:
    outcome = await play(TOO_LONG, TOO_LONG, "ok", request=ask(transcript=LONG, truncate=True))
    assert outcome.text == "ok"
    first, second, third = (text_of_parts(prompt.parts) for prompt in outcome.backend.prompts)
    assert "first" in first
    assert "first" not in second
    assert "answer" not in second
    assert "second" in second
    assert third == "third"
    developers = {prompt.developer for prompt in outcome.backend.prompts}
    assert len(developers) == 1
    assert outcome.report.conversation.truncated == 5
    assert outcome.report.again == []


async def test_without_leave_to_truncate_the_error_is_the_answer() -> None:
    outcome = await play(TOO_LONG, request=ask(transcript=LONG))
    assert outcome.error is TOO_LONG


async def test_what_cannot_be_made_shorter_is_an_error() -> None:
    outcome = await play(TOO_LONG, request=ask(truncate=True))
    assert outcome.error is TOO_LONG


async def test_the_number_of_attempts_has_a_limit() -> None:
    many = Transcript(tuple(user("x" * 100) for _ in range(500)))
    outcome = await play(*[TOO_LONG] * 9, request=ask(transcript=many, truncate=True))
    assert outcome.error is TOO_LONG
    assert 0 < text_of_parts(outcome.backend.prompts[-1].parts).count("[user]") < 60


async def test_a_later_answer_is_asked_for_with_the_shorter_conversation() -> None:
    broken = '<tool_call>{"name": "read_note", "arguments": [1}}</tool_call>'
    outcome = await play(TOO_LONG, broken, "ok", request=ask(transcript=LONG, truncate=True))
    assert "first first" not in text_of_parts(outcome.backend.prompts[2].parts)


def test_of_one_long_turn_the_oldest_calls_go_with_their_results() -> None:
    entries = (Guidance("g"), user("ask"), *step("a", "x" * 100), *step("b", "x" * 100), *step("c"), *step("d"))
    shorter = without_oldest(Transcript(entries))
    assert shorter == Transcript((Guidance("g"), user("ask"), *step("b", "x" * 100), *step("c"), *step("d")))


@pytest.mark.parametrize(("sizes", "left"), [((10, 10, 10, 10), 3), ((10, 11, 11, 10), 2), ((40, 1, 1, 1), 3)], ids=str)
def test_a_quarter_goes_or_a_little_more_and_guidance_weighs_nothing(sizes: Sequence[int], left: int) -> None:
    texts = [user("x" * size) for size in sizes]
    shorter = without_oldest(Transcript((Guidance("Be brief."), *texts)))
    assert shorter == Transcript((Guidance("Be brief."), *texts[-left:]))


def test_an_image_weighs_as_much_as_a_page_of_text() -> None:
    image = UserTurn((Image("data:image/png;base64,AAAA"),))
    texts = [user("x" * 1000) for _ in range(5)]
    assert without_oldest(Transcript((image, *texts))) == Transcript(tuple(texts))


def test_without_a_message_of_the_user_the_oldest_call_goes_all_the_same() -> None:
    entries = (*step("a"), *step("b"), *step("c"), *step("d"))
    assert without_oldest(Transcript(entries)) == Transcript(entries[2:])


def test_calls_weigh_what_their_arguments_do_and_go_with_the_others_of_their_answer() -> None:
    together: list[Entry] = [PastCall("a", "f", '"' + "x" * 100 + '"'), PastCall("b", "f", "{}"), ToolResult("a", ())]
    entries = (user("ask"), *together, ToolResult("b", ()), *step("c"))
    assert without_oldest(Transcript(entries)) == Transcript((user("ask"), *step("c")))


def test_calls_that_were_made_together_stay_together() -> None:
    together: list[Entry] = [
        PastCall("a", "f", "{}"),
        PastCall("b", "f", "{}"),
        ToolResult("a", ()),
        ToolResult("b", ()),
    ]
    entries = (user("ask"), *together, *step("c"))
    assert without_oldest(Transcript(entries)) == Transcript((user("ask"), *step("c")))


def test_a_result_goes_with_its_call_wherever_it_stands() -> None:
    entries = (user("x" * 100), PastCall("a", "f", "{}"), user("wait"), ToolResult("a", ()), AssistantText("done"))
    assert without_oldest(Transcript(entries)) == Transcript((user("wait"), AssistantText("done")))


ENTRIES = st.lists(
    st.sampled_from(["user", "assistant", "guidance", "step"]).flatmap(
        lambda kind: st.integers(0, 50).map(lambda size: (kind, size))
    ),
    max_size=12,
)


@given(ENTRIES)
def test_what_is_left_is_a_conversation_in_its_order_with_its_newest_message(kinds: list[tuple[str, int]]) -> None:
    entries: list[Entry] = []
    for number, (kind, size) in enumerate(kinds):
        match kind:
            case "user":
                entries.append(user("x" * size + str(number)))
            case "assistant":
                entries.append(AssistantText("x" * size + str(number)))
            case "guidance":
                entries.append(Guidance(str(number)))
            case _:
                entries += step(str(number), "x" * size)
    shorter = Transcript(tuple(entries))
    users = [entry for entry in entries if isinstance(entry, UserTurn)]
    while (next_one := without_oldest(shorter)) is not None:
        assert len(next_one.entries) < len(shorter.entries)
        shorter = next_one
        kept = list(shorter.entries)
        assert kept == [entry for entry in entries if entry in kept]
        assert [entry for entry in kept if isinstance(entry, Guidance)] == [
            entry for entry in entries if isinstance(entry, Guidance)
        ]
        assert users[-1:] == [entry for entry in kept if isinstance(entry, UserTurn)][-1:]
        calls = {entry.call_id for entry in kept if isinstance(entry, PastCall)}
        assert calls == {entry.call_id for entry in kept if isinstance(entry, ToolResult)}
