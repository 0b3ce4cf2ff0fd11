"""`tagcall login`: codex's own login, into the private CODEX_HOME."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence

from ..advice import command
from ..backends.codex import locate_program
from ..errors import UsageError
from ..settings import Settings

CODEX_LOGIN = re.compile(r"`?\bcodex login\b((?: --[\w-]+)*)`?")


def advised(found: re.Match[str]) -> str:
    """How a person does here what codex advises."""
    return command(f"login --{found[1]}" if found[1] else "login")


def run_login(settings: Settings, arguments: Sequence[str]) -> int:
    """Hands the terminal to `codex login`; returns its exit status. Raises `UsageError`."""
    program = locate_program(settings.codex)
    home = settings.codex_home.absolute()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"The login cannot be kept in {home} ({error.strerror}): name a folder of yours with --codex-home DIR."
        ) from None
    print(f"This is codex's own login ({program}); it is kept in {home}.", flush=True)
    words = [str(program), "login", *arguments]
    environment = {**os.environ, "CODEX_HOME": str(home)}  # all of it: a login may open a browser
    try:
        started = subprocess.Popen(  # noqa: S603 -- the owner's program
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        raise UsageError(f"{program} cannot be started ({error.strerror}): name another with --codex PATH.") from None
    with started as child:
        assert child.stdout is not None  # noqa: S101 -- a pipe
        for line in child.stdout:
            # What it advises would log another home in than ours.
            print(CODEX_LOGIN.sub(advised, line.decode(errors="replace")), end="", flush=True)
    return child.returncode
