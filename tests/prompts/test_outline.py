"""What is known of a conversation is the same, whether it was counted as a whole or goes on from what was counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import Tool, ToolRegistry
from prompts import (
    AssistantText,
    Entry,
    Guidance,
    Outline,
    PastCall,
    Text,
    ToolResult,
    Transcript,
    UserTurn,
    characters_sent,
    outline_of,
    untrusted_strings,
)
from prompts.beginnings import Beginnings

IDS = st.sampled_from("ab")
ENTRIES = st.lists(
    st.one_of(
        st.builds(PastCall, IDS, st.just("read"), st.just("{}")),
        st.builds(ToolResult, IDS, st.just((Text("it"),)), st.sampled_from([(), ("late",)])),
        st.builds(AssistantText, st.just("I look."), st.sampled_from([None, "commentary"])),
        st.sampled_from([Guidance("Be brief."), Guidance("", ("found",)), UserTurn((Text("go"),)), UserTurn(())]),
    ),
    max_size=10,
).map(tuple)


@given(ENTRIES, st.lists(st.integers(0, 10), max_size=3))
def test_what_is_known_does_not_depend_on_what_was_known_before(entries: tuple[Entry, ...], cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prompts.outline._BEGINNINGS", Beginnings(1_000_000))
        for cut in cuts:
            outline_of(entries[:cut])
        again = (*entries,)
        assert outline_of(entries) == outline_of(entries) == outline_of(again) == Outline().behind(entries)


@given(ENTRIES, st.sampled_from([None, "Be kind."]))
def test_the_characters_that_are_sent_are_those_of_all_strings(
    entries: tuple[Entry, ...], instructions: str | None
) -> None:
    tools, transcript = (
        ToolRegistry([Tool("read", "Reads."), Tool("write", None, "{}")]),
        Transcript(entries, instructions),
    )
    assert characters_sent(transcript, tools) == sum(map(len, untrusted_strings(transcript, tools)))


@given(ENTRIES)
def test_calls_and_results_are_paired_where_each_id_is_of_one_call_and_one_result_behind_it(
    entries: tuple[Entry, ...],
) -> None:
    calls = [entry.call_id for entry in entries if isinstance(entry, PastCall)]
    places = {entry.call_id: at for at, entry in enumerate(entries) if isinstance(entry, PastCall)}
    results = [(entry.call_id, at) for at, entry in enumerate(entries) if isinstance(entry, ToolResult)]
    answered = [call_id for call_id, _ in results]
    single = all(each.count(call_id) == 1 for each in (calls, answered) for call_id in each)
    known = outline_of(entries)
    assert known.paired == (single and all(places.get(call_id, at) < at for call_id, at in results))
    assert not known.paired or known.waiting == set(calls) - set(answered)
