"""What asks for a summary, and what shows one."""

from __future__ import annotations

from prompts import compaction_request, summarised


def test_a_summary_stands_behind_what_says_that_it_is_one() -> None:
    before, _, shown = summarised("$name did it.").partition("\n\n")
    assert "summary" in before
    assert shown == "$name did it."


def test_the_request_has_no_placeholder_left() -> None:
    assert "$" not in compaction_request()
