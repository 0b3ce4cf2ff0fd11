"""What texts stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.setting_values import byte_size, size_text


@pytest.mark.parametrize(
    ("text", "size"), [("7", 7), ("16MiB", 16 << 20), ("2k", 2000), ("1GiB", 1 << 30), ("3MB", 3_000_000)]
)
def test_sizes(text: str, size: int) -> None:
    assert byte_size(text) == size


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (7, "7"), (64 << 20, "64MiB"), (1536 << 20, "1536MiB"), (2000, "2k"), (1 << 10, "1KiB")],
)
def test_a_size_is_shown_as_it_is_written(size: int, text: str) -> None:
    assert size_text(size) == text


@given(st.integers(min_value=1), st.sampled_from([1, 1000, 1 << 10, 1 << 20]))
def test_a_size_that_is_shown_can_be_written(number: int, unit: int) -> None:
    assert byte_size(size_text(number * unit)) == number * unit
