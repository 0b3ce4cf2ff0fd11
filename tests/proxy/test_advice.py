from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proxy.advice import command


def installed(folder: Path) -> Path:
    folder.mkdir()
    program = folder / "tagcall"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_who_came_by_make_is_told_its_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAGCALL_BY_MAKE", "1")
    assert command("login") == "`make login`"
    assert "make" not in command("login -- --device-auth"), "a target takes no arguments"


def test_a_command_on_the_path_is_named_and_another_is_told_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TAGCALL_BY_MAKE", raising=False)
    program = installed(tmp_path / "bin")
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", str(program.parent))
    assert command("doctor") == "`tagcall doctor`"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command("doctor") == f"`{program} doctor`"
    other = installed(tmp_path / "other")
    monkeypatch.setenv("PATH", str(other.parent))
    assert command("doctor") == f"`{program} doctor`", "the one on PATH is another"


@pytest.mark.parametrize("flag", [["--codex-home", "/my home"], ["--codex-home=/my home"]])
def test_a_login_goes_into_the_home_that_was_typed(flag: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAGCALL_BY_MAKE", raising=False)
    monkeypatch.setattr(sys, "argv", ["pytest", "serve", *flag])
    home = subprocess.list2cmdline(flag)
    assert command("login") == f"`tagcall login {home}`"
    assert command("login -- --device-auth") == f"`tagcall login {home} -- --device-auth`"
    assert command("serve") == "`tagcall serve`"


def test_what_is_on_the_path_for_one_run_is_told_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TAGCALL_BY_MAKE", raising=False)
    program = installed(tmp_path / "bin")
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert command("setup") == f"`{program} setup`"
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    assert command("setup") == "`tagcall setup`", "who has entered it can type it"
