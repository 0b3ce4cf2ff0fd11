from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.backends import TestBackend
from tests.support.endpoint import Endpoint, serving
from tests.support.patience import wait_for_codex
from tests.support.scripted_model import ScriptedModel


@pytest.fixture(autouse=True)
def _wait_for_codex(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_codex(monkeypatch)


@pytest.fixture
async def endpoint(model: ScriptedModel, stack: TestBackend, tmp_path: Path) -> AsyncIterator[Endpoint]:
    async with serving(model, stack, tmp_path / "home") as running:
        yield running
