"""What `doctor` finds out about a codex program."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.backends import Finding, find_kind
from proxy.settings import Settings
from tests.support.codex_programs import TestProgram


def program_that(folder: Path, script: str) -> Settings:
    program = folder / "codex"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Settings(codex=str(program))


@pytest.mark.parametrize(
    ("script", "good", "said"), [("echo codex-cli 0.169.0", True, "codex 0.169.0, "), ("exit 1", False, "its version")]
)
async def test_the_program_is_asked_for_its_version(tmp_path: Path, script: str, good: bool, said: str) -> None:
    (finding,) = await find_kind("auto").check_before(program_that(tmp_path, script))
    assert (finding.name, finding.good) == ("program", good)
    assert said in finding.said
    assert str(tmp_path) in finding.said


async def test_a_missing_program_is_told_with_its_way_out() -> None:
    (finding,) = await find_kind("codex").check_before(Settings(codex="no-such-program"))
    assert finding == Finding("program", False, "no-such-program is not a program that can be started.")


async def test_tools_that_reach_the_model_are_named(program: TestProgram) -> None:
    (finding,) = await find_kind("codex").check_after(Settings(codex=str(program.path)))
    assert (finding.name, finding.good) == ("text-only", program.text_only)
    assert finding.said.startswith("no built-in tool" if program.text_only else "this codex gives the model tools")
