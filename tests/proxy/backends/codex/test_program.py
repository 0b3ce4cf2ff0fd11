from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from proxy.backends.codex.program import (
    CodexProgram,
    bundled_program,
    locate_program,
    native_program,
    read_version,
)
from proxy.errors import UsageError
from tests.support.processes import all_gone

LINUX = "vendor/x86_64-unknown-linux-musl"
MAC = "vendor/aarch64-apple-darwin"
# Where npm and pnpm put things: the launcher, the native program, and on which machine.
LAYOUTS = {
    "all platforms in one package": ("codex", f"codex/{LINUX}/codex/codex", "linux", "x86_64"),
    "a package a platform, beside": ("codex", f"codex-linux-x64/{LINUX}/bin/codex", "linux", "x86_64"),
    "the same on a Mac": ("codex", f"codex-darwin-arm64/{MAC}/bin/codex", "darwin", "arm64"),
    "a package a platform, below": (
        "codex",
        f"codex/node_modules/@openai/codex-linux-x64/{LINUX}/bin/codex",
        "linux",
        "x86_64",
    ),
    "a package a platform, further up": (
        "codex/node_modules/@openai/codex",
        f"codex-linux-x64/{LINUX}/bin/codex",
        "linux",
        "x86_64",
    ),
}


def make(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_native_program_behind_npms_launcher_is_found(layout: str, tmp_path: Path) -> None:
    package, program, system, machine = LAYOUTS[layout]
    scope = tmp_path / "node_modules/@openai"
    launcher, native = make(scope / package / "bin/codex.js"), make(scope / program)
    link = tmp_path / "node_modules/.bin/codex"
    link.parent.mkdir()
    link.symlink_to(launcher)
    assert native_program(link, system, machine) == native


@pytest.mark.parametrize("shim", ["npm/codex.cmd", "npm/node_modules/.bin/codex.CMD"])
def test_the_native_program_behind_npms_script_for_windows_is_found(shim: str, tmp_path: Path) -> None:
    scope = tmp_path / "npm/node_modules/@openai"
    make(scope / "codex/bin/codex.js")
    native = make(scope / "codex-win32-x64/vendor/x86_64-pc-windows-msvc/bin/codex.exe")
    assert native_program(make(tmp_path / shim), "win32", "AMD64") == native
    lone = make(tmp_path / "elsewhere/codex.cmd")
    assert native_program(lone, "win32", "AMD64") == lone


def test_a_launcher_without_its_package_is_started_as_it_is(tmp_path: Path) -> None:
    launcher = make(tmp_path / "codex/bin/codex.js")
    make(tmp_path / f"codex/{MAC}/bin/codex")
    assert native_program(launcher, "linux", "x86_64") == launcher
    assert native_program(launcher, "plan9", "mips") == launcher


def test_the_named_program_comes_before_the_one_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path, named = make(tmp_path / "bin/codex"), make(tmp_path / "mine")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert locate_program() == on_path
    assert locate_program(str(named)) == named


def test_the_bundled_program_is_the_last_resort(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert locate_program() == bundled_program()


def test_on_windows_the_bundled_program_has_a_suffix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = make(tmp_path / "Ann Smith" / "codex_cli_bin" / "__init__.py")
    native = make(package.parent / "bin" / "codex.exe")  # as openai_codex_cli_bin-0.163.0-py3-none-win_amd64.whl has it
    monkeypatch.syspath_prepend(package.parent.parent)
    monkeypatch.setattr(sys, "platform", "win32")
    assert bundled_program() == native


def test_no_program_at_all_is_said_with_the_ways_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("proxy.backends.codex.program.bundled_program", lambda: None)
    with pytest.raises(UsageError, match=r"npm install -g @openai/codex.* install .*codex-cli-bin`\), .*--codex PATH"):
        locate_program()
    with pytest.raises(UsageError, match="no-such-thing"):
        locate_program("no-such-thing")


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("echo codex-cli 0.169.0", "0.169.0"),
        ("echo codex-cli 0.170.0-alpha.2", "0.170.0-alpha.2"),
        ("echo hello", None),
        ("cat > /dev/null; exit 1", None),
    ],
)
def test_the_version_is_what_the_program_says(script: str, version: str | None, tmp_path: Path) -> None:
    assert read_version(make(tmp_path / "codex", f"#!/bin/sh\n{script}\n")) == version


@pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts")
async def test_what_did_not_answer_in_time_is_ended_with_whatever_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As npm's launcher is, with the program behind it."""
    program = make(tmp_path / "codex", "#!/bin/sh\nsleep 1000 &\necho $! > $0.new\nmv $0.new $0.pid\nwait\n")
    timeout = 0.1
    while not (tmp_path / "codex.pid").exists():  # a busy machine takes longer to start it
        timeout *= 2
        monkeypatch.setattr("proxy.backends.codex.program.ANSWER_TIMEOUT", timeout)
        assert read_version(program) is None
    await all_gone([int((tmp_path / "codex.pid").read_text())])


def test_a_program_that_cannot_run_has_no_version(tmp_path: Path) -> None:
    path = tmp_path / "codex"
    path.write_text("")
    assert not os.access(path, os.X_OK)
    assert read_version(path) is None


def test_releases_compare_as_numbers() -> None:
    releases = [CodexProgram(Path(), version).release for version in (None, "0.89.0", "0.133.1", "0.170.0-alpha.2")]
    assert releases == [(), (0, 89, 0), (0, 133, 1), (0, 170, 0)]
