from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import MASK
from proxy.turn.masking import Mask, masked

KEY = "3b0f9c2d71e84a56"


def escaped(text: str, slashes: int = 1) -> str:
    return "".join("\\" * slashes + f"u00{ord(char):02x}" for char in text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (KEY, MASK),
        (f"a{KEY}b{KEY}", f"a{MASK}b{MASK}"),
        (f"33b3b{KEY}", f"33b3b{MASK}"),
        (KEY.upper(), MASK),
        (escaped(KEY), MASK),
        (f"{KEY[:4]}{escaped(KEY[4:], 2)}", MASK),
        (KEY[:7], KEY[:7]),
        (KEY[:8], MASK),
        (KEY[:-1], MASK),
        (f"{KEY[:-1]}\\u", MASK),
        (f"{KEY[:-1]}\\u0", MASK),
        (f"{KEY[:-1]}\\u003", MASK),
        (f"{KEY[:8]}\\\\u00", MASK),
        (f"{KEY[:-1]}\\u004", f"{KEY[:-1]}\\u004"),
        (f"{KEY[:-1]}x", f"{KEY[:-1]}x"),
        ("3", "3"),
        ("\\", "\\"),
        ("C:\\u0033", "C:\\u0033"),
    ],
)
def test_the_key_is_masked_and_nothing_else(text: str, left: str) -> None:
    assert masked(text, KEY) == left
    mask = Mask(KEY)
    assert "".join(map(mask.feed, text)) + mask.flush() == left
    assert masked(text, None) == text, "without a key there is nothing to mask"


PIECES = st.sampled_from([KEY, KEY[:6], KEY[6:], "3", "b", "\\", "\\u00", "33", " ", "\n", "é"])
TEXTS = st.lists(PIECES | st.text()).map("".join)


@given(TEXTS, st.lists(st.integers(0, 200)))
def test_how_it_is_cut_does_not_show(text: str, cuts: list[int]) -> None:
    mask = Mask(KEY)
    borders = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    left = [mask.feed(text[start:end]) for start, end in pairwise(borders)]
    assert "".join(left) + mask.flush() == masked(text, KEY)
    assert KEY not in "".join(left)


def test_behind_the_end_of_a_text_a_new_one_begins() -> None:
    mask = Mask(KEY)
    assert [mask.feed(KEY[:7]), mask.flush(), mask.feed(KEY[7:]), mask.flush()] == ["", KEY[:7], KEY[7:], ""]


@given(st.text().filter(lambda text: "3" not in text and "\\" not in text))
def test_other_text_passes_at_once(text: str) -> None:
    assert Mask(KEY).feed(text) == text
