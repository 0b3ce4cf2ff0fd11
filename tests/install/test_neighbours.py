"""tagcall beside a project that has packages `proxy`, `parser` and `prompts` of its own: neither notices the other."""

from __future__ import annotations

import itertools
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.support.installation import ROOT, Installation, closed, run

pytestmark = pytest.mark.install

NAMES = ("parser", "prompts", "proxy")
# Where a project keeps its packages, and which of the two is installed last.
LAYOUTS = {"flat": ".", "src": "src"}
LAST = ("tagcall", "the project")

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "notes-agent"
version = "1"
[tool.hatch.build.targets.wheel]
packages = {packages}
"""

TEST = """
import parser, prompts, proxy
import proxy.cli
from openai import OpenAI

TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}

def test_its_packages_are_its_own():
    assert [parser.WHOSE, prompts.WHOSE, proxy.WHOSE, proxy.cli.WHOSE] == ["the project's"] * 4

def test_its_agent_gets_recorded_answers(tagcall_server):
    client = OpenAI(base_url=tagcall_server("recorded"), api_key="any")
    answer = client.responses.create(model="gpt-5.5", input="Weather in Paris and Rome?", tools=[TOOL])
    assert [item.name for item in answer.output if item.type == "function_call"] == ["get_weather"] * 2
"""


def make_project(folder: Path, layout: str) -> Path:
    packages = [str(Path(LAYOUTS[layout]) / name) for name in NAMES]
    for package in packages:
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").write_text('WHOSE = "the project\'s"\n', "utf-8")
        # Modules that tagcall would ask for first.
        (folder / package / "cli.py").write_text('WHOSE = "the project\'s"\n', "utf-8")
    (folder / "pyproject.toml").write_text(PYPROJECT.format(packages=packages), "utf-8")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_agent.py").write_text(TEST, "utf-8")
    shutil.copytree(ROOT / "fixtures" / "codex-0.169.0-two-calls", folder / "recorded" / "two-calls")
    return folder


@pytest.fixture(scope="module", params=itertools.product(LAYOUTS, LAST), ids=lambda it: f"{it[0]} layout, {it[1]} last")
def beside(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Installation, Path]:
    """Both in one environment, and where the project is."""
    layout, last = request.param
    project = make_project(tmp_path_factory.mktemp("project"), layout)
    environment = Installation.make(tmp_path_factory.mktemp("environment") / "venv")
    tagcall = [f"tagcall[demo] @ {wheel.as_uri()}", "pytest"]
    for what in ([str(project)], tagcall) if last == "tagcall" else (tagcall, [str(project)]):
        environment.install(*what)
    return environment, project


# What a project's owner may have set; the last of it makes Python leave the current folder out.
PATHS = ({"PYTHONPATH": "."}, {"PYTHONPATH": "src", "PYTHONSAFEPATH": "1"})


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_the_project_and_tagcall_both_work(
    beside: tuple[Installation, Path], path: dict[str, str], tmp_path: Path
) -> None:
    environment, project = beside
    env = closed(tmp_path, **path)
    assert "2 passed" in run([environment.program("pytest"), "-q"], project, env)
    assert "all as promised" in run([environment.program("tagcall"), "replay", "recorded"], project, env)
    demo = run([environment.program("tagcall"), "demo"], project, env)
    assert "Traceback" not in demo


def test_removing_the_project_leaves_tagcall(beside: tuple[Installation, Path], tmp_path: Path) -> None:
    environment, project = beside
    environment.install("--reinstall", str(project))
    env = closed(tmp_path)
    assert "all as promised" in run([environment.program("tagcall"), "replay", "recorded"], project, env)
    environment.uninstall("notes-agent")
    assert "all as promised" in run([environment.program("tagcall"), "replay", "recorded"], project, env)


def test_a_wheel_takes_no_name_but_its_own(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition("/")[0] for name in archive.namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"tagcall", "tagcall_pytest.py"}


def test_a_wheel_has_every_file_of_the_application(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        carried = {name.removeprefix("tagcall/") for name in archive.namelist() if name.startswith("tagcall/")}
    # These it has under the names by which they are imported.
    elsewhere = {"proxy/as_module.py", "proxy/launcher.py", "proxy/py.typed", "proxy/pytest_plugin.py"}
    files = [file for name in NAMES for file in (ROOT / name).rglob("*") if file.is_file()]
    wanted = {file.relative_to(ROOT).as_posix() for file in files if file.parent.name != "__pycache__"}
    assert wanted - elsewhere <= carried
    assert not elsewhere & carried
