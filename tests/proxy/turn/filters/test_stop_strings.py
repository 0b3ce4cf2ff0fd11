from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.turn.filters import StopStrings

LETTERS = st.text("ab\n", max_size=30)
STRINGS = st.lists(st.text("ab\n", min_size=1, max_size=5), min_size=1, max_size=4)


def shown(stops: StopStrings, pieces: list[str]) -> str:
    return "".join(map(stops.feed, pieces)) + stops.flush()


def first_completed(text: str, strings: list[str]) -> str:
    """What stands before the stop string that is complete first, looked for at each end in turn."""
    for end in range(len(text) + 1):
        ending = [string for string in strings if text[:end].endswith(string)]
        if ending:
            return text[: end - max(map(len, ending))]
    return text


@given(st.lists(LETTERS, max_size=8), STRINGS)
def test_the_text_ends_before_the_stop_string_that_is_complete_first(pieces: list[str], strings: list[str]) -> None:
    stops = StopStrings(strings)
    text = "".join(pieces)
    assert shown(stops, pieces) == first_completed(text, strings)
    assert (stops.reached is not None) == any(string in text for string in strings)


@given(st.lists(LETTERS, max_size=8), STRINGS)
def test_no_more_is_held_back_than_may_become_a_stop_string(pieces: list[str], strings: list[str]) -> None:
    stops, out, read = StopStrings(strings), "", ""
    for piece in pieces:
        out += stops.feed(piece)
        read += piece
        held = "" if stops.reached else read[len(out) :]
        assert not held or any(string.startswith(held) and string != held for string in strings)


@pytest.mark.parametrize(
    ("string", "text"), [("aab", "aaab"), ("abab\n", "ababab\n"), ("aabaaa", "aabaabaaa"), ("a", "ba")]
)
def test_a_stop_string_is_found_behind_a_beginning_of_itself(string: str, text: str) -> None:
    for pieces in ([text], list(text)):
        stops = StopStrings([string])
        assert shown(stops, pieces) == text.removesuffix(string)
        assert stops.reached == string


def test_text_passes_at_once_where_no_stop_string_is_begun() -> None:
    stops = StopStrings(["\n\n"])
    assert stops.feed("one line") == "one line"
    assert stops.feed("\n") == ""
    assert stops.feed("another") == "\nanother"


def test_a_new_text_begins_after_a_flush() -> None:
    stops = StopStrings(["ab"])
    assert stops.feed("a") + stops.flush() == "a"
    assert stops.feed("b") == "b"
    assert not stops.reached


def test_hostile_stop_strings_cost_no_more_than_others() -> None:
    stops = StopStrings(["a" * 100_000 + "b"] * 4)
    assert shown(stops, ["a" * 50] * 1_000 + ["c"]) == "a" * 50_000 + "c"
