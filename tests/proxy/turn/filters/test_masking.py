from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import MASK
from proxy.turn.filters import Mask, masked

KEY = "7qhvxmrtbz"


def escaped(text: str, slashes: int = 1) -> str:
    return "".join("\\" * slashes + f"u00{ord(char):02x}" for char in text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (KEY, MASK),
        (f"a{KEY}b{KEY}", f"a{MASK}b{MASK}"),
        (f"77q7qh{KEY}", f"77q7qh{MASK}"),
        (KEY.upper(), MASK),
        (escaped(KEY), MASK),
        (f"{KEY[:4]}{escaped(KEY[4:], 2)}", MASK),
        (escaped(KEY, 4), MASK),
        (f"{KEY[:-1]}\\U007", MASK),
        (KEY[:4], KEY[:4]),
        (KEY[:5], MASK),
        (KEY[:-1], MASK),
        (f"{KEY[:-1]}\\u", MASK),
        (f"{KEY[:-1]}\\u0", MASK),
        (f"{KEY[:-1]}\\u007", MASK),
        (f"{KEY[:5]}\\\\u00", MASK),
        (f"{KEY[:-1]}\\u004", f"{KEY[:-1]}\\u004"),
        (f"{KEY[:-1]}x", f"{KEY[:-1]}x"),
        ("7", "7"),
        ("\\", "\\"),
        ("C:\\u0037", "C:\\u0037"),
    ],
)
def test_the_key_is_masked_and_nothing_else(text: str, left: str) -> None:
    assert masked(text, KEY) == left
    mask = Mask(KEY)
    assert "".join(map(mask.feed, text)) + mask.flush() == left
    assert masked(text, None) == text, "without a key there is nothing to mask"


PIECES = st.sampled_from([KEY, KEY[:6], KEY[6:], "7", "q", "\\", "\\u00", "37", " ", "\n", "é"])
TEXTS = st.lists(PIECES | st.text()).map("".join)


@given(TEXTS, st.lists(st.integers(0, 200)))
def test_how_it_is_cut_does_not_show(text: str, cuts: list[int]) -> None:
    mask = Mask(KEY)
    borders = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    left = [mask.feed(text[start:end]) for start, end in pairwise(borders)]
    assert "".join(left) + mask.flush() == masked(text, KEY)
    assert KEY not in "".join(left)


@given(st.lists(st.sampled_from([KEY, KEY.upper(), KEY[:6], KEY[6:], "7", "İ", "é"]) | st.text()).map("".join))
def test_text_with_a_backslash_is_read_as_text_without(text: str) -> None:
    assert masked(f"{text} \\", KEY) == masked(f"{text} ", KEY) + "\\"


def test_behind_the_end_of_a_text_a_new_one_begins() -> None:
    mask = Mask(KEY)
    assert [mask.feed(KEY[:4]), mask.flush(), mask.feed(KEY[4:]), mask.flush()] == ["", KEY[:4], KEY[4:], ""]


@given(st.text().filter(lambda text: "7" not in text and "\\" not in text))
def test_other_text_passes_at_once(text: str) -> None:
    assert Mask(KEY).feed(text) == text
