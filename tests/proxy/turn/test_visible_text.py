from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import MASK
from proxy.turn.visible_text import StopStrings, VisibleText

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
    assert stops.reached == any(string in text for string in strings)


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
        assert stops.reached


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


KEY = "7qhvxmrtbz"


@pytest.mark.parametrize("stop", [(), ("END",)])
def test_text_leaves_unescaped_and_without_the_key_and_nothing_of_it_is_lost(stop: tuple[str, ...]) -> None:
    """What was held back is no less visible: of the key, of an escaped tag and of a stop string."""
    for text, left in (
        (rf"The key {KEY} and <\tool_call>", f"The key {MASK} and <tool_call>"),
        (f"The key {KEY[:4]}", f"The key {KEY[:4]}"),
        ("A tag <\\", "A tag <\\"),
        ("one EN", "one EN"),
    ):
        for pieces in ([text], list(text)):
            visible = VisibleText(stop, KEY)
            assert "".join(map(visible.feed, pieces)) + visible.flush() == left
            assert not visible.stopped


def test_nothing_is_visible_from_a_stop_string_on() -> None:
    visible = VisibleText(["</tool_call>"], KEY)
    assert visible.feed(r"one <\/tool_call> two") + visible.flush() == "one "
    assert visible.stopped
    assert visible.feed("three") + visible.flush() == ""


def test_hostile_stop_strings_cost_no_more_than_others() -> None:
    stops = StopStrings(["a" * 100_000 + "b"] * 4)
    assert shown(stops, ["a" * 50] * 1_000 + ["c"]) == "a" * 50_000 + "c"
