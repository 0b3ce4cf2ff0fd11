"""What a prompt shows, read back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parser import ToolRegistry
from prompts import AssistantText, ChoiceMode, PastCall, Text, ToolChoice, ToolResult, Transcript, UserTurn, render_turn
from prompts.profiles import PROFILES
from proxy.replay.conversation import (
    Asking,
    Conversation,
    SaidItem,
    ThreadMessage,
    common_end,
    folded,
    folded_lines,
    read_conversation,
)
from tests.proxy.replay.child import shown
from tests.support.parts import text_of_parts

TEXTS = st.text(min_size=1).filter(lambda text: bool(text.strip()))


def rendered(*entries: UserTurn | AssistantText | PastCall | ToolResult, fault: str | None = None) -> str:
    turn = render_turn(
        Transcript(entries), ToolRegistry(), ToolChoice(ChoiceMode.AUTO),
        parallel=True, profile=PROFILES["frontier"], fault=fault,
    )  # fmt: skip
    return text_of_parts(turn.parts)


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


def read(text: str) -> Conversation:
    return read_conversation(shown(text))


def exchanged(text: str) -> list[SaidItem]:
    """What was said, without the proxy's own lines."""
    return [said for said in read(text).said if said.by != "own"]


def asking(conversation: Conversation) -> Asking:
    """The likeliest."""
    return conversation.askings[0]


def own_lines(conversation: Conversation, last_user: str) -> int:
    return conversation.own_lines(asking(conversation), len(folded_lines(last_user)))


def test_what_was_rendered_is_read() -> None:
    assert exchanged(rendered(*LOOP)) == [
        SaidItem("user", "What did I plant?\nAnd when?"),
        SaidItem("assistant", "I'll look."),
        SaidItem("call", '{"query": "north"}', "search"),
        SaidItem("call", '"not json"', "read_note"),
        SaidItem("tool", "Garden.md\n\n[user] a quoted header"),
        SaidItem("tool", "beans"),
    ]


def test_the_newest_user_message_and_the_calls_since_are_known() -> None:
    asked = asking(read(rendered(*LOOP)))
    assert asked.last_user == "What did I plant?\nAnd when?"
    assert asked.after_tools == ("search", "read_note")
    assert asking(read(rendered(*LOOP, user("Thanks!")))).after_tools == ()


def test_a_lone_text_is_the_users() -> None:
    assert [(said.by, said.text) for said in read("Hi there").said] == [("user", "Hi there")]


def test_the_proxys_own_lines_at_the_end_are_nobodys() -> None:
    plain, again = read(rendered(*LOOP)), read(rendered(*LOOP, fault="A first attempt was discarded."))
    assert plain.exchange(asking(plain)) == again.exchange(asking(again))
    assert own_lines(again, QUESTION) == own_lines(plain, QUESTION) + 1


def test_behind_a_lone_message_they_are_what_follows_the_users_own() -> None:
    conversation = read(rendered(user("Hi\nthere"), fault="A first attempt was discarded."))
    assert own_lines(conversation, "Hi\nthere") == 1


QUESTION = "What did I plant?\nAnd when?"
MESSAGES = (
    ThreadMessage("user", ("What did I plant?", "And when?")),
    ThreadMessage("developer", ("Be brief.",)),
    ThreadMessage(
        "assistant",
        (
            """I'll look.
<tool_call>{"key": "[call key]", "name": "search", "arguments": {"query": "north"}}</tool_call>
<tool_call>{"key": "[call key]", "name": "read_note", "arguments": "not json"}</tool_call>""",
        ),
    ),
    ThreadMessage("user", ("[tool:call_1] Garden.md\n\n  [user] a quoted header", "[tool:call_2] beans")),
)


def test_a_message_for_each_is_read_like_a_page() -> None:
    page, thread = read(rendered(*LOOP)), read_conversation(MESSAGES)
    assert thread.exchange(asking(thread)) == page.exchange(asking(page))
    assert asking(thread).after_tools == ("search", "read_note")


def test_results_may_be_messages_of_their_own() -> None:
    *before, results = MESSAGES
    apart = [*before, *(ThreadMessage("user", (text,)) for text in results.texts)]
    assert read_conversation(apart).said == read_conversation(MESSAGES).said


def test_results_may_name_their_tool_behind_calls_and_nowhere_else() -> None:
    *before, _ = MESSAGES
    found, read = (
        "Result of search (call_1): Garden.md\n\n  [user] a quoted header",
        "Result of read_note (call_2): beans",
    )
    assert read_conversation([*before, ThreadMessage("user", (found, read))]).said == read_conversation(MESSAGES).said
    (said,) = read_conversation(shown(read)).said
    assert said.by == "user"
    assert asking(read_conversation([*MESSAGES, ThreadMessage("user", (read,))])).last_user == read


def test_an_answer_is_read_as_the_model_wrote_it() -> None:
    written = 'First <tool_call>\n{"name": "a",\n "arguments": {}}\n</tool_call> then\n<tool_call>no JSON</tool_call>'
    assert read_conversation([ThreadMessage("assistant", (written,))]).said == (
        SaidItem("assistant", "First"),
        SaidItem("call", "{}", "a"),
        SaidItem("assistant", "then"),
        SaidItem("call", "<tool_call>no JSON</tool_call>"),
    )
    open_ended, deep = "<tool_call>{" * 3, f"<tool_call>{'[' * 100_000}</tool_call>"
    assert [said.by for said in read_conversation([ThreadMessage("assistant", (open_ended,))]).said] == ["assistant"]
    assert [said.by for said in read_conversation([ThreadMessage("assistant", (deep,))]).said] == ["call"]


def test_a_message_of_images_alone_is_a_message() -> None:
    assert asking(read_conversation([*MESSAGES, ThreadMessage("user", ())])).last_user == ""


def test_what_may_be_the_proxys_own_is_asked_first_and_passed_over_then() -> None:
    results = MESSAGES[-1].texts
    conversation = read_conversation([*MESSAGES[:-1], ThreadMessage("user", (*results, "Go on."))])
    assert [(asked.last_user, asked.after_tools) for asked in conversation.askings] == [
        ("Go on.", ()),
        (QUESTION, ("search", "read_note")),
        (QUESTION.splitlines()[1], ("search", "read_note")),
    ]
    assert [conversation.own_lines(asked, 2) for asked in conversation.askings] == [0, 1, 1]


def test_values_are_compared_from_the_end() -> None:
    one, other = (exchanged(rendered(user(question), *LOOP[1:])) for question in ("a", "b"))
    assert common_end(one, other) == len(LOOP) - 1
    assert common_end(one, one) == len(LOOP)


@given(st.lists(st.builds(ThreadMessage, st.sampled_from(["user", "assistant"]), st.lists(st.text()).map(tuple))))
def test_any_messages_are_a_conversation(messages: list[ThreadMessage]) -> None:
    conversation = read_conversation(messages)
    for asked in conversation.askings:
        assert conversation.own_lines(asked, 0) >= 0
        assert len(conversation.exchange(asked)) <= len(conversation.said)


@given(TEXTS, st.sampled_from(["call", "search_notes"]), TEXTS)
def test_no_text_of_others_is_taken_for_a_message(question: str, tool: str, output: str) -> None:
    entries = (user(question), PastCall("call_1", tool, "{}"), ToolResult("call_1", (Text(output),)))
    said = exchanged(rendered(*entries))
    assert [message.by for message in said] == ["user", "call", "tool"]
    assert asking(read(rendered(*entries))).after_tools == (tool,)
    assert folded(said[0].text) or not folded(question)
