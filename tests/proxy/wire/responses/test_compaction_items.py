"""Summaries in a compaction item."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.responses.compaction_items import (
    Summary,
    compaction_body,
    compaction_item,
    kept_messages,
    read_summary,
    write_summary,
)


@given(st.builds(Summary, st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip), st.booleans()))
def test_a_summary_comes_back_as_it_was(summary: Summary) -> None:
    assert read_summary(write_summary(summary)) == summary


@given(st.text() | st.none())
def test_what_is_not_ours_reads_as_nothing(content: str | None) -> None:
    assert read_summary(content) is None


def test_an_empty_summary_says_nothing() -> None:
    assert read_summary(write_summary(Summary(" "))) is None


def test_of_what_was_said_the_users_messages_are_kept() -> None:
    user = {"type": "message", "role": "user", "content": "Hi."}
    assistant = {**user, "role": "assistant"}
    assert kept_messages([user, assistant, {"type": "reasoning", "role": "user"}, user]) == [user, user]


def test_a_compaction_is_one_item_behind_them() -> None:
    item = compaction_item(Summary("Beans."), mint=lambda prefix: f"{prefix}_1")
    assert (item["id"], item["type"]) == ("cmp_1", "compaction")
    assert read_summary(str(item["encrypted_content"])) == Summary("Beans.")
    body = compaction_body("resp_1", iter([item]), {"total_tokens": 3}, 7)
    assert body == {
        "id": "resp_1",
        "object": "response.compaction",
        "created_at": 7,
        "output": [item],
        "usage": {"total_tokens": 3},
    }
