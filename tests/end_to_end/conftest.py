from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.backends import TestBackend
from tests.support.endpoint import Endpoint, Endpoints
from tests.support.patience import wait_for_codex


@pytest.fixture(autouse=True)
def _wait_for_codex(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_codex(monkeypatch)


@pytest.fixture(scope="module")
async def endpoints(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Endpoints]:
    async with Endpoints(tmp_path_factory.mktemp("endpoints")) as running:
        yield running


@pytest.fixture
async def endpoint(endpoints: Endpoints, stack: TestBackend) -> Endpoint:
    """Its server and codex program are those of the whole module."""
    return await endpoints.of(stack)
