"""What a summary stands for, and what stays beside it."""

from __future__ import annotations

from prompts import (
    AssistantText,
    Entry,
    Guidance,
    PastCall,
    Text,
    ToolResult,
    UserTurn,
    compacted,
    compaction_request,
    summarised,
    to_sum_up,
)

ASKED, ASKED_AGAIN = UserTurn((Text("What is in a.md?"),)), UserTurn((Text("And b.md?"),))
RULE = Guidance("Be brief.")
CONVERSATION: tuple[Entry, ...] = (
    RULE,
    ASKED,
    PastCall("call_1", "read_note", "{}"),
    ToolResult("call_1", (Text("# A"),)),
    AssistantText("It says A."),
    ASKED_AGAIN,
)


def summary_of(text: str) -> UserTurn:
    return UserTurn((Text(summarised(text)),))


def test_a_summary_stands_behind_what_says_that_it_is_one() -> None:
    before, _, shown = summarised("$name did it.").partition("\n\n")
    assert "summary" in before
    assert shown == "$name did it."


def test_the_request_comes_last_and_has_no_placeholder_left() -> None:
    assert to_sum_up(CONVERSATION) == (*CONVERSATION, UserTurn((Text(compaction_request()),)))
    assert "$" not in compaction_request()


def test_the_users_messages_stay_beside_a_summary() -> None:
    assert compacted(CONVERSATION, "Sum", whole=False) == (RULE, ASKED, ASKED_AGAIN, summary_of("Sum"))


def test_beside_a_summary_of_the_whole_only_the_newest_stays() -> None:
    assert compacted(CONVERSATION, "Sum", whole=True) == (RULE, ASKED_AGAIN, summary_of("Sum"))
    same_words = (ASKED, AssistantText("A."), ASKED)
    assert compacted(same_words, "Sum", whole=True) == (ASKED, summary_of("Sum"))


def test_a_newer_summary_stands_for_an_older_one() -> None:
    once = compacted(CONVERSATION, "First", whole=True)
    assert compacted((*once, AssistantText("B.")), "Second", whole=True) == (RULE, ASKED_AGAIN, summary_of("Second"))
    assert compacted(once, "Second", whole=False) == (RULE, ASKED_AGAIN, summary_of("Second"))


def test_a_call_that_waits_for_its_result_stays() -> None:
    waiting = PastCall("call_2", "read_note", "{}")
    assert compacted((*CONVERSATION, waiting), "Sum", whole=True) == (RULE, ASKED_AGAIN, waiting, summary_of("Sum"))


def test_without_any_message_there_is_the_summary() -> None:
    assert compacted((), "Sum", whole=True) == (summary_of("Sum"),)
    assert compacted((UserTurn(()),), "Sum", whole=False) == (UserTurn(()), summary_of("Sum"))
