from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tokens import TokenMeter

# Text, and what o200k_base makes of it.
COUNTED = [
    ("The quick brown fox jumps over the lazy dog, and nobody seems to mind at all.", 18),
    ("def add(a: int, b: int) -> int:\n    return a + b\n", 19),
    ('{"id": 1, "name": "Item 1", "price": 1.37}', 22),
    ("Der Bericht beschreibt die wichtigsten Änderungen der vergangenen Monate.", 10),
    ("这份报告描述了过去几个月的主要变化。", 12),
]
TEXTS = st.text(st.sampled_from("abAB12 \n\t.,{}éж漢字🎉"), max_size=60)


def count(text: str) -> int:
    meter = TokenMeter(10**9)
    assert meter.take(text) == text
    return meter.spent


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_the_estimate_is_near_the_real_count(text: str, tokens: int) -> None:
    assert 0.8 * tokens <= count(text) <= 1.4 * tokens


@pytest.mark.parametrize(
    ("char", "tokens"),
    [
        ("a", [1] * 9 + [2]),
        ("A", [0, 1, 1, 2, 2, 2, 3]),
        ("1", [1, 1, 1, 2]),
        (" ", [0] + [1] * 99 + [2]),
        ("\n", [1] * 100 + [2]),
        (".", [1, 1, 2]),
        ("\u0436", [1] * 5 + [2]),
        ("\u6f22", [1, 2, 3, 3, 4]),
        ("\U0001f389", [2, 4, 6]),
    ],
)
def test_what_a_run_of_one_kind_costs_by_its_length(char: str, tokens: list[int]) -> None:
    assert [count(char * length) for length in range(1, len(tokens) + 1)] == tokens


@given(st.lists(TEXTS, max_size=6), st.integers(0, 40))
def test_how_the_text_is_cut_does_not_show(pieces: list[str], limit: int) -> None:
    whole, cut = TokenMeter(limit), TokenMeter(limit)
    assert whole.take("".join(pieces)) == "".join(map(cut.take, pieces))
    assert (whole.spent, whole.exhausted) == (cut.spent, cut.exhausted)


@given(TEXTS, st.integers(0, 40))
def test_what_passes_is_the_longest_beginning_within_the_limit(text: str, limit: int) -> None:
    meter = TokenMeter(limit)
    passed = meter.take(text)
    assert text.startswith(passed)
    assert meter.spent == count(passed) <= limit
    assert meter.exhausted == (passed != text)
    assert passed == text or count(text[: len(passed) + 1]) > limit


@given(st.text(max_size=60), st.integers(0, 40))
def test_any_character_is_counted(text: str, limit: int) -> None:
    assert len(TokenMeter(limit).take(text)) <= 100 * (limit + 1)


def test_a_word_in_pieces_costs_what_it_costs_whole() -> None:
    meter = TokenMeter(2)
    assert [meter.take(piece) for piece in ("a" * 5, "a" * 8, "a" * 20, "a")] == ["a" * 5, "a" * 8, "a" * 5, ""]
    assert (meter.spent, meter.exhausted) == (2, True)


def test_nothing_passes_after_the_limit() -> None:
    meter = TokenMeter(2)
    assert meter.take("one two three") == "one two "
    assert meter.take(" ") == ""


def test_a_long_text_in_small_pieces_is_counted_in_one_pass() -> None:
    pieces = ["word ", "x", " ", "Xy", "\n", "漢"] * 10_000
    meter = TokenMeter(10**9)
    assert "".join(map(meter.take, pieces)) == "".join(pieces)
