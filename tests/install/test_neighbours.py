"""tagcall beside a project that has packages `proxy`, `parser` and `prompts` of its own: neither notices the other."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.installation import ROOT, TOOLS, Installation, closed, run
from tests.support.sample_project import ASK

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

TEST = (
    ASK
    + """
import parser, prompts, proxy
import proxy.cli

TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}

def test_its_packages_are_its_own():
    assert [parser.WHOSE, prompts.WHOSE, proxy.WHOSE, proxy.cli.WHOSE] == ["the project's"] * 4

def test_its_agent_gets_recorded_answers(tagcall_server):
    output = ask(tagcall_server, input="Weather in Paris and Rome?", tools=[TOOL])
    assert [item["name"] for item in output if item["type"] == "function_call"] == ["get_weather"] * 2
"""
)


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


@dataclass(frozen=True, slots=True)
class Project:
    folder: Path
    wheel: Path


@pytest.fixture(scope="module", params=LAYOUTS, ids=lambda layout: f"{layout} layout")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = make_project(tmp_path_factory.mktemp("project"), request.param)
    dist = tmp_path_factory.mktemp("dist")
    run([TOOLS / "uv", "build", "--quiet", "--wheel", "--out-dir", dist, folder], dist)
    (wheel,) = dist.glob("*.whl")
    return Project(folder, wheel)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The packages that both depend on stay in it, compiled."""
    return Installation.make(tmp_path_factory.mktemp("environment") / "venv")


@pytest.fixture(scope="module", params=LAST, ids=lambda last: f"{last} last")
def both(request: pytest.FixtureRequest, project: Project, environment: Installation, wheel: Path) -> Installation:
    """An environment in which both are installed anew, in one order or the other."""
    environment.uninstall("tagcall", "notes-agent")
    tagcall = [f"tagcall[demo] @ {wheel.as_uri()}", "pytest"]
    for what in ([project.wheel], tagcall) if request.param == "tagcall" else (tagcall, [project.wheel]):
        environment.install(*what)
    return environment


# What a project's owner may have set; the last of it makes Python leave the current folder out.
PATHS = ({"PYTHONPATH": "."}, {"PYTHONPATH": "src", "PYTHONSAFEPATH": "1"})


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_the_project_and_tagcall_both_work(
    project: Project, both: Installation, path: dict[str, str], tmp_path: Path
) -> None:
    env = closed(tmp_path, **path)
    assert "2 passed" in run([both.program("pytest"), "-q"], project.folder, env)
    assert "all as promised" in run([both.program("tagcall"), "replay", "recorded"], project.folder, env)
    demo = run([both.program("tagcall"), "demo"], project.folder, env)
    assert "Traceback" not in demo


def test_removing_the_project_leaves_tagcall(project: Project, both: Installation, tmp_path: Path) -> None:
    both.install("--reinstall", project.wheel)
    env = closed(tmp_path)
    assert "all as promised" in run([both.program("tagcall"), "replay", "recorded"], project.folder, env)
    both.uninstall("notes-agent")
    assert "all as promised" in run([both.program("tagcall"), "replay", "recorded"], project.folder, env)


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
