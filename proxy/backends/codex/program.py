"""Where the codex program is, and which version.

npm's `codex` is a script that starts the real program as its child. If the script is killed, that child lives on with
our pipes. So the real program is looked up and started instead.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from ...advice import addition
from ...errors import UsageError
from ...rpc.group import group_of, own_group
from .versions import release_of

# Seconds for the program to print its version or its models; 0.3 is slow.
ANSWER_TIMEOUT = 5.0

# The name of the vendor folder by `sys.platform` and machine.
TARGETS: Mapping[tuple[str, str], str] = {
    ("linux", "x86_64"): "x86_64-unknown-linux-musl",
    ("linux", "aarch64"): "aarch64-unknown-linux-musl",
    ("linux", "arm64"): "aarch64-unknown-linux-musl",
    ("darwin", "x86_64"): "x86_64-apple-darwin",
    ("darwin", "arm64"): "aarch64-apple-darwin",
    ("win32", "amd64"): "x86_64-pc-windows-msvc",
    ("win32", "arm64"): "aarch64-pc-windows-msvc",
}


class CodexProgram(Struct, frozen=True):
    """A program that was found. `version` is None when it did not say one, as a stand-in need not."""

    path: Path
    version: str | None

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers, for comparing; () when it is unknown."""
        return release_of(self.version)


def locate_program(explicit: str | None = None) -> Path:
    """The native program: `explicit`, else `codex` on PATH, else the bundled one. Raises `UsageError`."""
    if explicit is not None:
        found = shutil.which(explicit)
        if found is None:
            raise UsageError(f"{explicit} is not a program that can be started", "name another with --codex PATH")
        return native_program(Path(found))
    if found := shutil.which("codex"):
        return native_program(Path(found))
    if bundled := bundled_program():
        return bundled
    raise UsageError(
        "codex was not found",
        f"install it (`npm install -g @openai/codex`, or {addition('openai-codex-cli-bin')}), "
        "or name the program with --codex PATH",
    )


def programs_here() -> list[Path]:
    """All that `codex` may mean on this machine: those on PATH in order, then the bundled one."""
    on_path = [found for folder in os.get_exec_path() if (found := shutil.which("codex", path=folder))]
    natives = [*map(native_program, map(Path, on_path)), *filter(None, [bundled_program()])]
    return list(dict.fromkeys(natives))


def bundled_program() -> Path | None:
    """The one that the PyPI package `openai-codex-cli-bin` ships, if that is installed."""
    spec = find_spec("codex_cli_bin")
    if spec is None or spec.origin is None:
        return None
    name = "codex.exe" if sys.platform == "win32" else "codex"
    path = Path(spec.origin).parent / "bin" / name
    return path if path.is_file() else None


def native_program(program: Path, system: str = sys.platform, machine: str = platform.machine()) -> Path:
    """The program behind npm's launcher; `program` itself when it is none or its package is not understood."""
    launcher = _behind_shim(program.resolve()) if system == "win32" else program.resolve()
    target = TARGETS.get((system, machine.lower()))
    if launcher.suffix != ".js" or target is None:
        return launcher
    package = launcher.parent.parent
    # Older packages hold every platform, newer ones have one package a platform, which npm and pnpm put
    # beside or below the package, or further up.
    roots = [package, *sorted(package.parent.glob("codex-*"))]
    for folder in (package, *package.parents):
        roots += sorted(folder.glob("node_modules/@openai/codex-*"))
    for root in roots:
        for name in ("bin/codex", "codex/codex"):
            native = root / "vendor" / target / (name + ".exe" if system == "win32" else name)
            if native.is_file():
                return native
    return launcher


def _behind_shim(program: Path) -> Path:
    """npm's launcher, to which it has a link elsewhere and on Windows a script, beside `node_modules` or below it."""
    if program.suffix.lower() in {".cmd", ".ps1"}:
        for modules in (program.parent / "node_modules", program.parent.parent):
            launcher = modules / "@openai/codex/bin/codex.js"
            if launcher.is_file():
                return launcher
    return program


def read_version(program: Path) -> str | None:
    """What it prints for `--version`, after the name. Blocks while it runs."""
    try:
        printed = printed_by([program, "--version"])
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d{1,9}\.\d{1,9}\.\d{1,9}\S*", printed.decode(errors="replace"))
    return found[0] if found else None


def printed_by(command: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> bytes:
    """What a program prints until it has ended, with whatever it started. Blocks while it runs.

    Raises `OSError`, and `TimeoutExpired` after `ANSWER_TIMEOUT` seconds; it has been killed then, npm's launcher
    with the program behind it.
    """
    with subprocess.Popen(  # noqa: S603 -- the program the owner chose
        command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        **own_group(),
    ) as child:  # fmt: skip
        group = group_of(child.pid)
        try:
            printed: bytes = child.communicate(timeout=ANSWER_TIMEOUT)[0]
        except BaseException:
            group.kill()
            raise
    return printed
