"""The first hour: a clone in an empty folder, with an empty home and nothing in a cache, and what is read there."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from parser import write_call
from tests.support.codex_programs import child_environment
from tests.support.installation import ROOT, opened, run
from tests.support.scripted_model import Message, Reply, ScriptedModel

pytestmark = pytest.mark.install

# A codex on PATH that is all of the one that make installs but its login, which fails as where there is no browser.
HEADLESS = """#!/bin/sh
[ "$1" = login ] || exec {bundled} "$@"
echo 'On a remote or headless machine? Use `codex login --device-auth` instead.' >&2
exit 7
"""
BUNDLED = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/codex_cli_bin/bin/codex"
STEPS = re.compile(r"^([\w ./]+) \.\.\. (?:\d+ packages?, )?\d+ s$", re.MULTILINE)


class Machine:
    """`make` in a clone, as somebody types it who has Python, make and git."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clone = folder / "tagcall"
        self._programs = folder / "bin"
        self._programs.mkdir()
        (folder / "home").mkdir()
        run(["git", "clone", "--quiet", ROOT, self.clone], folder, self._environment())

    def _environment(self, **more: str) -> dict[str, str]:
        # The tests may be run by a `make` of their own, which would be told of there.
        not_theirs = ("XDG_", "VIRTUAL_ENV", "MAKE", "MFLAGS", "PIP_CACHE_DIR", "UV_CACHE_DIR")
        usual = {name: value for name, value in opened().items() if not name.startswith(not_theirs)}
        path = f"{self._programs}{os.pathsep}{os.environ['PATH']}"
        return {**usual, "HOME": str(self.folder / "home"), "PATH": path, **more}

    def make(self, target: str, status: int = 0, more: Mapping[str, str] | None = None) -> str:
        return run(["make", target, f"PYTHON={sys.executable}"], self.clone, self._environment(**(more or {})), status)

    def has_codex(self, text: str) -> None:
        program = self._programs / "codex"
        program.write_text(text)
        program.chmod(0o755)


def closed_network(home: Path) -> Mapping[str, str]:
    return {name: value for name, value in child_environment(home).items() if name.endswith("_PROXY")}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("fresh"))


def test_the_demo_says_each_step_and_the_second_time_none(machine: Machine) -> None:
    said = machine.make("demo")
    assert STEPS.findall(said) == ["A Python environment in .venv", "What the demo needs"]
    assert said.count("\n", 0, said.index("An OpenAI client gets tool calls")) == 2, "a line a step and nothing else"
    again = machine.make("demo")
    assert again.startswith("An OpenAI client gets tool calls")
    for output in (said, again):
        assert "The tool loop is done." in output
        assert re.findall(r"^ +(make \w+)$", output, re.MULTILINE) == ["make setup", "make serve"]


def test_setup_on_a_machine_without_a_browser_advises_what_can_be_typed(machine: Machine) -> None:
    machine.has_codex(HEADLESS.format(bundled=machine.clone / ".venv" / BUNDLED))
    said = machine.make("setup", status=2)  # make's own for a target that fails
    assert STEPS.findall(said)[-1] == "tagcall and the codex program"
    assert "This is codex's own login" in said
    assert f"Use `{machine.clone}/.venv/bin/tagcall login -- --device-auth` instead." in said
    assert "codex login" not in said
    assert "Error 7" in said, "codex's own exit status"


def test_setup_without_a_service_says_what_to_mend_and_how_to_go_on(machine: Machine) -> None:
    said = machine.make(
        "setup", status=2, more={"TAGCALL_UPSTREAM": "http://127.0.0.1:9/v1", **closed_network(machine.folder)}
    )
    assert "no  service" in said
    assert "Mend each line with `no`, then run `make setup` again." in said
    assert not STEPS.findall(said), "all is installed"


async def test_setup_with_a_model_ends_with_what_to_paste(machine: Machine, model: ScriptedModel) -> None:
    call = Reply([Message(write_call("read", '{"note": "welcome.md"}'))])
    answer = Reply([Message("It remembers for you.")])
    model.choose = lambda body: answer if "vault of notes" in str(body) else call
    more = {"TAGCALL_UPSTREAM": model.url, "TAGCALL_PORT": "0", **closed_network(machine.folder)}
    said = await asyncio.to_thread(machine.make, "setup", more=more)
    assert "called a tool in" in said
    assert "It remembers for you." in said
    assert "Start the server, and leave it running: `make serve`" in said
    assert "  no  " not in said


def test_nothing_of_it_lies_outside_of_the_clone_and_the_home(machine: Machine) -> None:
    assert {path.name for path in machine.folder.iterdir()} == {"bin", "home", "tagcall"}
    assert run(["git", "status", "--porcelain"], machine.clone) == "", "and the clone is as it was"
