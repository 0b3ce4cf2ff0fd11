"""Filters one behind the other, in the order in which text leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import MASK, Unescaper
from proxy.turn.filters import (
    Mask,
    OwnNotation,
    StopStrings,
    TextFilter,
    chained,
    headers,
    invented_results,
    own_lines,
)

KEY = "7qhvxmrtbz"
LINE = "If all parts are done, answer."
STOPS = ("END", "\n\n\n")


def behind_a_call() -> OwnNotation:
    notation = OwnNotation([invented_results(["search"], named=True)])
    notation.pass_call("search")
    return notation


# Each filter, what it is for, and what it leaves of that.
FILTERS: dict[str, tuple[Callable[[], TextFilter], str, str]] = {
    "headers": (lambda: OwnNotation([headers(lambda: False)]), "[assistant] [user] So.", "So."),
    "lines of ours": (lambda: OwnNotation([own_lines([LINE])]), f"So.\n{LINE}", "So.\n"),
    "invented results": (behind_a_call, "[search: 7]\nSo.", "So."),
    "the key": (lambda: Mask(KEY), f"It is {KEY}.", f"It is {MASK}."),
    "escaped tags": (Unescaper, r"<\tool_call> is a tag", "<tool_call> is a tag"),
    "stop strings": (lambda: StopStrings(STOPS), "one END two", "one "),
}  # fmt: skip
EACH = pytest.mark.parametrize(("made", "text", "left"), FILTERS.values(), ids=FILTERS)


def through(each: TextFilter, *pieces: str) -> str:
    return "".join(map(each.feed, pieces)) + each.flush()


def chain(stop: tuple[str, ...] = STOPS) -> TextFilter:
    own = OwnNotation([headers(lambda: False), own_lines([LINE])])
    return chained([own, Mask(KEY), Unescaper(), StopStrings(stop)])


@EACH
def test_a_filter_takes_out_what_it_is_for_wherever_the_text_is_cut(
    made: Callable[[], TextFilter], text: str, left: str
) -> None:
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            assert through(made(), text[:first], text[first:second], text[second:]) == left
    assert through(made(), *text) == left


PLAIN = st.text("abc .\n", max_size=12).filter(lambda text: STOPS[1] not in text)
PIECES = st.sampled_from([KEY, KEY[:6], KEY[6:], "7", "<\\", "tool_call>", "END", "EN", "[assistant]", "[us", "[search",
                          ": 7]", LINE, LINE[:9], "\n", " ", "So.", "Result of search (1):"])  # fmt: skip
TEXTS = st.lists(PIECES, max_size=8)


@EACH
@given(st.lists(PLAIN, max_size=5).map("".join).filter(lambda text: STOPS[1] not in text))
def test_nothing_else_is_lost(made: Callable[[], TextFilter], text: str, left: str, plain: str) -> None:
    assert through(made(), plain) == plain
    assert through(made(), *plain) == plain


@EACH
@given(TEXTS)
def test_how_the_text_is_cut_shows_in_no_filter(
    made: Callable[[], TextFilter], text: str, left: str, pieces: list[str]
) -> None:
    assert through(made(), *pieces) == through(made(), "".join(pieces))


@given(TEXTS)
def test_nor_in_all_of_them(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert through(chain(), *pieces) == through(chain(), text) == through(chain(), *text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (rf"The key {KEY} and <\tool_call>", f"The key {MASK} and <tool_call>"),
        (f"[assistant] {LINE}\n{KEY[:4]}", KEY[:4]),
        ("A tag <\\", "A tag <\\"),
        ("one EN", "one EN"),
        (rf"<\tool_call>END{KEY}", "<tool_call>"),
    ],
)
def test_each_sees_what_the_one_before_it_left(text: str, left: str) -> None:
    assert through(chain(), text) == through(chain(), *text) == left


def test_a_stop_string_may_be_a_tag_that_was_escaped() -> None:
    assert through(chain(("</tool_call>",)), r"one <\/tool_call> two") == "one "


def test_behind_the_end_of_a_text_a_new_one_begins() -> None:
    filters = chain()
    assert filters.feed("one E") + filters.flush() == "one E"
    assert filters.feed("ND two") + filters.flush() == "ND two"
