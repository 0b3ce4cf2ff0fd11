"""What texts stand for."""

from __future__ import annotations

import pytest

from proxy.setting_values import byte_size


@pytest.mark.parametrize(
    ("text", "size"), [("7", 7), ("16MiB", 16 << 20), ("2k", 2000), ("1GiB", 1 << 30), ("3MB", 3_000_000)]
)
def test_sizes(text: str, size: int) -> None:
    assert byte_size(text) == size
