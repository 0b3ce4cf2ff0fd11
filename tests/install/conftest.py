from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.installation import build


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))
