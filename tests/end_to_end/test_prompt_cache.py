"""What of a tool loop the provider reads from its cache, on the real codex programs and by the published rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.codex_programs import TestProgram, installed_programs
from tests.support.long_loop import ROUNDS, long_loop
from tests.support.prompt_cache import RULES, Bill, bill
from tests.support.scripted_model import ScriptedModel
from tests.support.tagcall_server import tagcall_server

LANED = [program for program in installed_programs() if program.supported]
OLD, NEW = RULES.values()


def asked(key: str, *texts: str) -> dict[str, Any]:
    return {
        "prompt_cache_key": key,
        "input": [{"role": "user", "content": [{"type": "input_text", "text": text}]} for text in texts],
    }


@pytest.mark.parametrize("codex", LANED, ids=lambda codex: codex.version)
async def test_three_quarters_of_a_tool_loop_are_read_from_the_cache_however_results_are_told(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    read: dict[str, list[float]] = {}
    for results in ("user", "tool"):
        home = tmp_path / results
        async with tagcall_server(model, home, codex=str(codex.path), results_as=results) as url:
            bodies = await long_loop(model, url)
        assert len(bodies) == ROUNDS
        bills = [bill(bodies, rules) for rules in RULES.values()]
        assert min(each.share for each in bills) >= 75
        read[results] = [each.read for each in bills]
    assert all(tool >= user for tool, user in zip(read["tool"], read["user"], strict=True)), "not a token is lost"


async def test_without_lanes_nothing_is(model: ScriptedModel, tmp_path: Path) -> None:
    async with tagcall_server(model, tmp_path / "home", lanes="off") as url:
        bodies = await long_loop(model, url)
    assert [bill(bodies, rules).read for rules in RULES.values()] == [0, 0]


# The rules


@pytest.mark.parametrize(
    ("first", "second", "old", "new"),
    [
        (asked("k", "a" * 4995), asked("k", "a" * 4995, "b" * 5), 1152, 1250),
        (asked("k", "a" * 4995), asked("other", "a" * 4995, "b" * 5), 0, 0),
        (asked("k", "a" * 4995), asked("k", "a" * 5000), 1152, 0),
        (asked("k", "a" * 4995, "c"), asked("k", "a" * 4995, "b" * 5), 1152, 0),
        (asked("k", "a" * 4000), asked("k", "a" * 4000, "b" * 5), 0, 0),
    ],
    ids=["one more message", "another key", "one growing message", "another end", "too short"],
)
def test_a_request_reads_what_an_earlier_one_held(
    first: dict[str, Any], second: dict[str, Any], old: int, new: int
) -> None:
    assert [bill([first, second], rules).read for rules in RULES.values()] == [old, new]


def test_what_is_read_costs_a_tenth_and_what_is_written_a_quarter_more() -> None:
    bodies = [asked("k", "a" * 7995), asked("k", "a" * 7995, "b" * 395)]
    assert bill(bodies, OLD) == Bill(2000 + 2100, 1920, 2000 + 192 + 180)
    assert bill(bodies, NEW) == Bill(2000 + 2100, 2000, 2500 + 200 + 125)
