from __future__ import annotations

import pytest

from tests.support.command import Command, command


@pytest.fixture
def tagcall(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, in this process."""
    return command(capsys, monkeypatch)
