"""Identical results in a row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import Entry, Guidance, PastCall, Text, ToolResult, Transcript, UserTurn
from proxy.errors import RequestError
from proxy.wire.tokligence.loop_guard import guarded, results_in_a_row


def calls(*results: tuple[str, str], first: int = 0) -> list[Entry]:
    """A call of a tool and its result, one after the other."""
    return [
        entry
        for number, (name, result) in enumerate(results, first)
        for entry in (PastCall(f"call_{number}", name, "{}"), ToolResult(f"call_{number}", (Text(result),)))
    ]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), min_size=1))
def test_only_the_newest_run_of_the_same_counts(results: list[tuple[str, str]]) -> None:
    run = 1
    while run < len(results) and results[-run - 1] == results[-1]:
        run += 1
    assert results_in_a_row(Transcript(tuple(calls(*results)))) == (results[-1][0], run)


def test_three_are_worth_a_warning_and_five_an_error() -> None:
    for count in range(1, 5):
        before = Transcript(tuple(calls(*[("f", "no")] * count)), "Be kind.")
        after = guarded(before)
        assert after.instructions == "Be kind."
        assert after.entries[: len(before.entries)] == before.entries
        warned = [entry for entry in after.entries if isinstance(entry, Guidance)]
        assert bool(warned) == (count >= 3)
    with pytest.raises(RequestError) as caught:
        guarded(Transcript(tuple(calls(*[("f", "no")] * 5))))
    told = "infinite loop detected: tool f called 5 times consecutively with the same result"
    assert (caught.value.message, caught.value.code, caught.value.param) == (told, "infinite_loop", "input")


def test_what_the_user_says_begins_anew() -> None:
    entries = [*calls(*[("f", "no")] * 4), UserTurn((Text("again"),)), *calls(("f", "no"), first=9)]
    assert results_in_a_row(Transcript(tuple(entries))) == ("f", 1)
