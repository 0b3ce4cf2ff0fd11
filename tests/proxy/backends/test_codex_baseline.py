from __future__ import annotations

from pathlib import Path

from proxy.backends.codex_baseline import measure_base_instructions
from tests.support.codex_programs import TestProgram, child_environment


async def test_the_program_shows_its_instructions_for_each_name(program: TestProgram, tmp_path: Path) -> None:
    assert program.path is not None
    names = ["gpt-5.5", "nobody-knows-this-one"]
    measured = await measure_base_instructions(program.path, names, child_environment(tmp_path))
    assert set(measured) == set(names)
    assert all(text.startswith("You are ") and len(text) > 5000 for text in measured.values())


async def test_a_program_that_shows_nothing_is_no_failure(tmp_path: Path) -> None:
    assert await measure_base_instructions(Path("/bin/true"), ["a"], {}) == {}
    assert await measure_base_instructions(tmp_path / "none", ["a"], {}) == {}
