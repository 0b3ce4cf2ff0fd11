"""The parser as a library: the examples of its page run and are typed, in a project with packages of the same names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.installation import ROOT, Installation, closed, run

pytestmark = pytest.mark.install

EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "library.md").read_text("utf-8"), re.DOTALL)
SHOWN = (
    'text: I will look.\n\ncall: read_note {"path": "a.md"}\n',
    "",
    (
        '(Tool(name=\'read_note\', description=None, parameters=\'{"type": "object", "properties": {"path": '
        '{"type": "string"}}, "required": ["path"]}\', strict=False, grammar=None), {\'path\': \'a.md\'})\n'
    ),
)


@pytest.fixture(scope="module")
def foreign(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Installation, Path]:
    """An environment with the wheel, and a project that has packages of its own called as ours are."""
    environment = Installation.make(tmp_path_factory.mktemp("environment") / "venv")
    environment.install(f"tagcall @ {wheel.as_uri()}", "mypy")
    project = tmp_path_factory.mktemp("project")
    for name in ("parser", "prompts", "proxy"):
        (project / name).mkdir()
        (project / name / "__init__.py").write_text('WHOSE = "the project\'s"\n', "utf-8")
    for number, example in enumerate(EXAMPLES):
        (project / f"example_{number}.py").write_text(example, "utf-8")
    return environment, project


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(foreign: tuple[Installation, Path], number: int) -> None:
    environment, project = foreign
    shown = run([environment.program("python"), f"example_{number}.py"], project, closed(project))
    assert shown == SHOWN[number]


def test_the_examples_are_typed_and_the_projects_packages_are_its_own(foreign: tuple[Installation, Path]) -> None:
    environment, project = foreign
    said = run([environment.program("mypy"), "--strict", *sorted(project.glob("example_*.py"))], project)
    assert "Success" in said
    ours = "import parser, prompts, proxy, tagcall.parser; print({parser.WHOSE, prompts.WHOSE, proxy.WHOSE})"
    assert run([environment.program("python"), "-c", ours], project, closed(project)) == '{"the project\'s"}\n'
