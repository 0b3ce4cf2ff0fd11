from __future__ import annotations

import asyncio
import gc
from pathlib import Path

from proxy.backends.codex.baseline import measure_base_instructions, refusing_endpoint
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


async def test_an_endpoint_that_is_given_up_at_any_moment_leaves_no_socket_behind() -> None:
    async def hold() -> None:
        async with refusing_endpoint(lambda body: None):
            await asyncio.Event().wait()

    for steps in range(12):
        async with asyncio.TaskGroup() as group:
            held = group.create_task(hold())
            for _ in range(steps):
                await asyncio.sleep(0)
            held.cancel()
    gc.collect()  # an unclosed socket would warn here, which is an error
