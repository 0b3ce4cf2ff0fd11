from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.backends.codex.backend import CodexBackend, codex_backend
from tests.support.codex_programs import TestProgram, child_environment, installed_programs
from tests.support.scripted_model import ScriptedModel


@pytest.fixture(params=[pytest.param(it, id=f"codex-{it.version}") for it in installed_programs()])
def program(request: pytest.FixtureRequest) -> TestProgram:
    program: TestProgram = request.param
    assert program.path is not None, "install openai-codex-cli-bin: these tests are about the real program"
    return program


@pytest.fixture(scope="session")
def probed_homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("probed")


@pytest.fixture
def home(tmp_path: Path, program: TestProgram, probed_homes: Path) -> Iterator[Path]:
    """A CODEX_HOME that knows what an earlier test's home found out about the program."""
    home, kept = tmp_path / "home", probed_homes / program.version
    if kept.is_dir():
        shutil.copytree(kept, home)
        shutil.copytree(kept, home / "upstream")
    yield home
    for found in home.rglob("probed.json"):
        if not kept.is_dir():
            kept.mkdir()
            for file in (found, found.with_name("catalog.json")):
                if file.exists():
                    shutil.copy(file, kept)


@pytest.fixture
def backend(home: Path, program: TestProgram, model: ScriptedModel) -> CodexBackend:
    """In front of the scripted model; to be entered by the test."""
    return codex_backend(home=home, program=str(program.path), upstream=model.url, env=child_environment(home))
