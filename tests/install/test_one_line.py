"""In one line, or in one file: what people do who will not install anything."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.support.installation import ROOT, TOOLS, Installation, closed, opened, run

pytestmark = pytest.mark.install

# What the demo says at its end, with whichever tool it was started.
LAST_WORDS = "The tool loop is done."


@pytest.mark.parametrize("tool", ["uvx --from", "pipx run --spec"])
def test_one_line_runs_the_demo(tool: str, wheel: Path, tmp_path: Path) -> None:
    program, *words = tool.split()
    here = ["--python", sys.executable]
    command: list[str | Path] = [
        TOOLS / program,
        *words[:-1],
        *here,
        words[-1],
        f"tagcall[demo] @ {wheel.as_uri()}",
        "tagcall",
        "demo",
    ]
    said = run(command, tmp_path, opened(PIPX_HOME=str(tmp_path / "pipx")))
    assert LAST_WORDS in said
    # pipx may leave it to uv, and then so does the advice.
    advised = re.findall(r"^ +(uvx|pipx) (.+) (?:setup|serve)$", said, re.MULTILINE)
    assert len(advised) == 2
    (by, line), _ = advised
    assert by in {program, "uvx"}
    assert "/tagcall " not in line, "nobody types a path in a cache"
    again: list[str | Path] = [TOOLS / by, *shlex.split(line), "--version"]
    told = run(again, tmp_path, opened(PIPX_HOME=str(tmp_path / "pipx")))
    assert "tagcall 0." in told, "it can be typed as it stands"


def test_it_is_a_module_too(wheel: Path, tmp_path: Path) -> None:
    environment = Installation.make(tmp_path / "environment")
    environment.install(wheel)
    env = closed(tmp_path, PATH="")
    python = environment.program("python")
    assert "tagcall 0." in run([python, "-m", "tagcall", "--version"], tmp_path, env)
    said = run([python, "-m", "tagcall", "serve"], tmp_path, env, status=2)
    assert f"`uv pip install --python {python} openai-codex-cli-bin`" in said, "there is no pip, nor a codex"
    assert f"`{python} -m tagcall --help`" in run([python, "-m", "tagcall"], tmp_path, env, status=2)


def test_a_single_file_needs_a_python_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "tagcall.pyz"
    run(["make", "pyz", f"PYZ={file}", "EXTRAS=demo"], ROOT)
    (tmp_path / "home").mkdir()
    # A Python without a folder of packages, and the environment of a machine that was just set up.
    python = [sys._base_executable, "-I", "-S", "-W", "error", file]  # type: ignore[attr-defined]
    nothing = {"HOME": str(tmp_path / "home")}
    assert "tagcall 0." in run([*python, "--version"], tmp_path, nothing)
    assert LAST_WORDS in run([*python, "demo"], tmp_path, nothing)
