"""The pytest plugin as a project has it: installed beside it, found by pytest, without a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.installation import Installation, closed, run
from tests.support.sample_project import SampleProject, answers
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.install


async def test_a_project_records_and_replays(wheel: Path, tmp_path: Path, model: ScriptedModel) -> None:
    environment = Installation.make(tmp_path / "venv")
    environment.install(f"tagcall[demo] @ {wheel.as_uri()}", "pytest")
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
