from __future__ import annotations

import pytest

from proxy import server


@pytest.fixture
def no_lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for the rest of a refused body."""
    monkeypatch.setitem(server.HANDLING, "lingering_time", 0.02)
