"""The pytest plugin as a project has it: installed beside it, found by pytest, without a checkout."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.installation import ROOT, TOOLS, Installation, closed, run
from tests.support.sample_project import ASK, SampleProject, answers
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.install

# The versions of pytest that its page names and that run on each Python of ours, besides the newest.
OLDER = ("7.4.4", "8.4.2")
TEST = (
    ASK
    + """
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}

def test_recorded_answers_are_played(tagcall_server):
    output = ask(tagcall_server, input="Weather in Paris and Rome?", tools=[TOOL])
    assert [item["name"] for item in output if item["type"] == "function_call"] == ["get_weather"] * 2
"""
)


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """One with tagcall, in which each test puts a pytest in the place of that of another."""
    environment = Installation.make(tmp_path_factory.mktemp("environment") / "venv")
    environment.install(f"tagcall[demo] @ {wheel.as_uri()}")
    return environment


async def test_a_project_records_and_replays(environment: Installation, tmp_path: Path, model: ScriptedModel) -> None:
    environment.install("pytest")
    project = SampleProject.make(tmp_path, [environment.program("pytest")])
    answers(model)
    status, said = await project.test("--tagcall-record=once", model=model)
    assert status == 0, said
    assert "recorded: 3 recorded, 0 changed, 0 as before" in said
    answers(model, "onion")
    status, said = await project.test("--tagcall-record=all", model=model)
    assert "recorded: 0 recorded, 1 changed, 2 as before" in said
    (project.folder / "test_agent.py").write_text(
        (project.folder / "test_agent.py").read_text("utf-8").replace("garlic", "onion"), "utf-8"
    )
    status, said = await project.test("--tagcall-block-network")
    assert (status, "tagcall" in said) == (0, False), said
    replayed = run([environment.program("tagcall"), "replay", "recorded"], project.folder, closed(project.home))
    assert "3 fixtures in" in replayed
    assert "all as promised" in replayed


@pytest.mark.parametrize("version", OLDER)
def test_older_versions_of_pytest_play_and_know_it_by_its_name(
    version: str, environment: Installation, tmp_path: Path
) -> None:
    run([TOOLS / "uv", "pip", "install", "--quiet", "--python", environment.folder, f"pytest=={version}"], tmp_path)
    project = tmp_path / "project"
    shutil.copytree(ROOT / "fixtures" / "codex-0.169.0-two-calls", project / "recorded" / "two-calls")
    (project / "test_agent.py").write_text(TEST, "utf-8")
    variables = closed(tmp_path, PYTHONWARNINGS="default")  # an older pytest on a newer Python has its own
    assert "1 passed" in run([environment.program("pytest"), "-q"], project, variables)
    without: list[str | Path] = [environment.program("pytest"), "-q", "-p", "no:tagcall"]
    assert "fixture 'tagcall_server' not found" in run(without, project, variables, status=1)
