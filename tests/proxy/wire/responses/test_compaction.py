"""Summaries in a compaction item."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.responses.compaction import Summary, read_summary, write_summary


@given(st.builds(Summary, st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip), st.booleans()))
def test_a_summary_comes_back_as_it_was(summary: Summary) -> None:
    assert read_summary(write_summary(summary)) == summary


@given(st.text() | st.none())
def test_what_is_not_ours_reads_as_nothing(content: str | None) -> None:
    assert read_summary(content) is None


def test_an_empty_summary_says_nothing() -> None:
    assert read_summary(write_summary(Summary(" "))) is None
