"""Whatever the order of calls and results: each call gets one, none is lost, and what stood right stays as it was."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from prompts import AssistantText, Entry, PastCall, Text, ToolResult, UserTurn
from proxy.wire.pairing import MISSING, missing_result, paired

IDS = st.sampled_from(["a", "b"])
ENTRIES = st.lists(
    st.one_of(
        st.builds(PastCall, IDS, st.just("read"), st.just("{}")),
        st.builds(ToolResult, IDS, st.sampled_from(["x", "y"]).map(lambda text: (Text(text),))),
        st.just(UserTurn((Text("u"),))),
        st.just(AssistantText("t")),
    ),
    max_size=8,
)


@given(ENTRIES)
def test_each_call_has_a_result_and_nothing_else_is_lost(entries: list[Entry]) -> None:
    made = paired(entries)
    calls = [entry.call_id for entry in entries if isinstance(entry, PastCall)]
    added = [entry for entry in made.entries if entry in [missing_result("a"), missing_result("b")]]
    assert len(added) == made.repairs.get(MISSING, 0)
    assert {entry for entry in entries if isinstance(entry, ToolResult)} == {
        entry for entry in made.entries if isinstance(entry, ToolResult) and entry not in added
    }
    results = [entry.call_id for entry in made.entries if isinstance(entry, ToolResult)]
    assert all(results.count(call_id) >= calls.count(call_id) for call_id in set(calls)) or not added
    others = [entry for entry in entries if not isinstance(entry, ToolResult)]
    assert [entry for entry in made.entries if not isinstance(entry, ToolResult)] == others


@given(ENTRIES)
def test_what_is_paired_stays_as_it_is(entries: list[Entry]) -> None:
    calls = [entry.call_id for entry in entries if isinstance(entry, PastCall)]
    assume(len(calls) == len(set(calls)))
    made = paired(entries)
    again = paired(made.entries)
    assert again.entries == made.entries
    assert MISSING not in again.repairs


def test_a_group_in_order_is_left_alone() -> None:
    call, other = PastCall("a", "read", "{}"), PastCall("b", "read", "{}")
    results = [ToolResult("b", (Text("y"),)), ToolResult("a", (Text("x"),))]
    entries: list[Entry] = [AssistantText("t"), call, other, *results, UserTurn((Text("u"),))]
    assert paired(entries).entries == tuple(entries)
    assert not paired(entries).repairs


def test_calls_of_one_answer_that_share_an_id_get_their_results_in_order() -> None:
    def call(path: str) -> PastCall:
        return PastCall("a", "read", path)

    def result(text: str) -> ToolResult:
        return ToolResult("a", (Text(text),))

    both: list[Entry] = [call("1"), call("2"), result("x"), result("x")]
    assert paired(both).entries == tuple(both)
    assert not paired(both).repairs
    assert paired([*both, result("x")]).entries == tuple(both)
    later: list[Entry] = [call("1"), UserTurn((Text("u"),)), call("2"), result("x")]
    first, *rest = later
    assert paired(later).entries == (first, missing_result("a"), *rest)
