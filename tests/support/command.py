"""`tagcall` in this process, for tests that are about what a command says and not about its process."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from proxy.cli.main import main


@dataclass(frozen=True, slots=True)
class Done:
    """As of `subprocess.run`."""

    returncode: int
    stdout: str
    stderr: str


Command: TypeAlias = Callable[..., Done]


def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Called with the words that somebody types behind `tagcall`, whose environment sets nothing."""
    for name in os.environ:
        if name.startswith("TAGCALL_"):
            monkeypatch.delenv(name)

    def run(*words: str | os.PathLike[str]) -> Done:
        try:
            status = main([*map(str, words)])
        except SystemExit as over:  # argparse's
            status = int(over.code or 0)
        return Done(status, *capsys.readouterr())

    return run
