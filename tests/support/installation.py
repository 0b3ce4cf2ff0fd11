"""Environments of their own with the built wheel in them. The tools for that come with `make test-install`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent

# As it was before the tests closed the network: whoever installs needs a registry.
_OPEN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" and not name.startswith("TAGCALL_")}


def run(
    command: Sequence[str | os.PathLike[str]], cwd: Path, env: Mapping[str, str] | None = None, status: int = 0
) -> str:
    """What it printed; the network is open to it unless `env` is another. Fails the test on another exit status."""
    done = subprocess.run(
        list(command),
        cwd=cwd,
        env=opened() if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def opened(**more: str) -> dict[str, str]:
    """The environment of who installs."""
    return {**_OPEN, **more}


def closed(home: Path, **more: str) -> dict[str, str]:
    """The environment of what must not need a network: the tests' own, with its data below `home`."""
    kept = {name: value for name, value in os.environ.items() if name in _OPEN or name.endswith("_PROXY")}
    kept.pop("VIRTUAL_ENV", None)
    return {**kept, "HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "PYTHONWARNINGS": "error", **more}


def build(folder: Path, **variables: str) -> Path:
    """The wheel, made of the source archive as a registry would have both; the archive lies beside it.

    `variables` are what a job of GitHub says, and all that is said of GitHub.
    """
    known = {name: value for name, value in opened(**variables).items() if name in variables or "GITHUB" not in name}
    run([TOOLS / "uv", "build", "--quiet", "--out-dir", folder, ROOT], folder, known)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True, slots=True)
class Installation:
    """A virtual environment in `folder`."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Installation:
        run([TOOLS / "uv", "venv", "--quiet", "--python", sys.executable, folder], folder.parent)
        return cls(folder)

    def install(self, *what: str | os.PathLike[str]) -> None:
        """In the versions that were tested. What is there already is put there anew if it lies in a folder."""
        words: list[str | os.PathLike[str]] = [
            "pip",
            "install",
            "--quiet",
            "--constraints",
            ROOT / "constraints.txt",
            "--python",
            self.folder,
        ]
        run([TOOLS / "uv", *words, *what], self.folder)

    def uninstall(self, *names: str) -> None:
        run([TOOLS / "uv", "pip", "uninstall", "--quiet", "--python", self.folder, *names], self.folder)

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name
