from __future__ import annotations

import pytest

from tests.support.patience import wait_for_codex


@pytest.fixture(autouse=True)
def _wait_for_codex(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_codex(monkeypatch)
