from __future__ import annotations

from pathlib import Path

import pytest

from proxy.backends.codex import codex_backend
from proxy.contracts import TextBackend
from tests.support.codex_homes import informed_home
from tests.support.codex_programs import TestProgram, child_environment, installed_programs
from tests.support.scripted_model import ScriptedModel


@pytest.fixture(scope="module", params=[pytest.param(it, id=f"codex-{it.version}") for it in installed_programs()])
def program(request: pytest.FixtureRequest) -> TestProgram:
    program: TestProgram = request.param
    assert program.path is not None, "install openai-codex-cli-bin: these tests are about the real program"
    return program


@pytest.fixture
def home(tmp_path: Path, program: TestProgram) -> Path:
    """A CODEX_HOME."""
    assert program.path is not None
    return informed_home(tmp_path / "home", program.path)


@pytest.fixture
def backend(home: Path, program: TestProgram, model: ScriptedModel) -> TextBackend:
    """In front of the scripted model; to be entered by the test."""
    return codex_backend(home=home, program=str(program.path), upstream=model.url, env=child_environment(home))
