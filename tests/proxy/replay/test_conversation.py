"""What a prompt shows, read back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parser import ToolRegistry
from prompts import AssistantText, ChoiceMode, PastCall, Text, ToolChoice, ToolResult, Transcript, UserTurn, render_turn
from prompts.profiles import PROFILES
from proxy.replay.conversation import Said, closing_lines, common_end, folded, read_conversation

TEXTS = st.text(min_size=1).filter(lambda text: bool(text.strip()))


def rendered(*entries: UserTurn | AssistantText | PastCall | ToolResult, fault: str | None = None) -> str:
    turn = render_turn(
        Transcript(entries), ToolRegistry(), ToolChoice(ChoiceMode.AUTO),
        parallel=True, profile=PROFILES["frontier"], fault=fault,
    )  # fmt: skip
    return "".join(part.text for part in turn.parts if isinstance(part, Text))


def user(text: str) -> UserTurn:
    return UserTurn((Text(text),))


LOOP = (
    user("What did I plant?\nAnd when?"),
    AssistantText("I'll look."),
    PastCall("call_1", "search", '{"query": "north"}'),
    PastCall("call_2", "read_note", "not json"),
    ToolResult("call_1", (Text("Garden.md\n\n[user] a quoted header"),)),
    ToolResult("call_2", (Text("beans"),)),
)


def test_what_was_rendered_is_read() -> None:
    assert read_conversation(rendered(*LOOP)).said == (
        Said("user", "What did I plant?\nAnd when?"),
        Said("assistant", "I'll look."),
        Said("call", '{"query": "north"}', "search"),
        Said("call", '"not json"', "read_note"),
        Said("tool", "Garden.md\n\n[user] a quoted header"),
        Said("tool", "beans"),
    )


def test_the_newest_user_message_and_the_calls_since_are_known() -> None:
    conversation = read_conversation(rendered(*LOOP))
    assert conversation.last_user == "What did I plant?\nAnd when?"
    assert conversation.after_tools == ("search", "read_note")
    assert read_conversation(rendered(*LOOP, user("Thanks!"))).after_tools == ()


def test_a_lone_text_is_the_users() -> None:
    assert read_conversation("Hi there").said == (Said("user", "Hi there"),)


def test_the_proxys_own_lines_at_the_end_are_nobodys() -> None:
    plain, asked_again = rendered(*LOOP), rendered(*LOOP, fault="A first attempt was discarded.")
    assert read_conversation(plain).said == read_conversation(asked_again).said
    before, after = (closing_lines(read_conversation(text), text, "") for text in (plain, asked_again))
    assert after == before + 1


def test_behind_a_lone_message_they_are_what_follows_the_users_own() -> None:
    text = rendered(user("Hi\nthere"), fault="A first attempt was discarded.")
    assert closing_lines(read_conversation(text), text, "Hi\nthere") == 1


def test_messages_are_compared_from_the_end() -> None:
    one, other = (read_conversation(rendered(user(question), *LOOP[1:])) for question in ("a", "b"))
    assert common_end(one, other) == len(LOOP) - 1
    assert common_end(one, one) == len(LOOP)


@given(st.text())
def test_any_text_is_a_conversation(text: str) -> None:
    conversation = read_conversation(text)
    assert conversation.closing >= 0
    assert common_end(conversation, conversation) == len(conversation.said)


@given(TEXTS, st.sampled_from(["call", "search_notes"]), TEXTS)
def test_no_text_of_others_is_taken_for_a_message(question: str, tool: str, output: str) -> None:
    entries = (user(question), PastCall("call_1", tool, "{}"), ToolResult("call_1", (Text(output),)))
    conversation = read_conversation(rendered(*entries))
    assert [said.by for said in conversation.said] == ["user", "call", "tool"]
    assert conversation.after_tools == (tool,)
    assert folded(conversation.said[0].text) or not folded(question)
