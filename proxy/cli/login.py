"""`tagcall login`: codex's own login, into the private CODEX_HOME."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from ..backends.codex.program import locate_program
from ..settings import Settings


def run_login(settings: Settings, arguments: Sequence[str]) -> int:
    """Hands the terminal to `codex login`; returns its exit status."""
    program = locate_program(settings.codex)
    home = settings.codex_home.absolute()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    print(f"This is codex's own login ({program}); it is kept in {home}.", flush=True)
    command = [str(program), "login", *arguments]
    environment = {**os.environ, "CODEX_HOME": str(home)}  # all of it: a login may open a browser
    return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 -- the owner's program
