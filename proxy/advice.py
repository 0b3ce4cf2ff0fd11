"""How a person starts our commands, as far as can be seen. Advice helps only if it can be typed as it stands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from .one_run import one_run

# Set by the Makefile, whose targets have the names of these commands.
BY_MAKE = "TAGCALL_BY_MAKE"
TARGETS = frozenset({"demo", "doctor", "login", "serve", "setup"})

# A login without it goes into another home.
CODEX_HOME = "--codex-home"


def command(words: str) -> str:
    """`words` are a command and its arguments, as `login`; the result is in backquotes."""
    first, blank, more = words.partition(" ")
    if first == "login" and CODEX_HOME not in more and (home := _codex_home(sys.argv)):
        words = f"login {subprocess.list2cmdline(home)}{blank}{more}"
    if os.environ.get(BY_MAKE) and words in TARGETS:
        return f"`make {words}`"
    if (line := one_run(words)) is not None:
        return f"`{line}`"
    own = Path(sys.argv[0])
    if own.stem == "tagcall" and own.is_file() and (_only_now_on_path(own) or _on_path("tagcall") != own.resolve()):
        return f"`{own.absolute()} {words}`"
    if own.parts[-2:] == ("cli", "__main__.py"):
        return f"`{sys.executable} -m proxy.cli {words}`"
    if own.parts[-2:] == ("tagcall", "__main__.py"):
        return f"`{sys.executable} -m tagcall {words}`"
    return f"`tagcall {words}`"


def _codex_home(typed: Sequence[str]) -> list[str]:
    """That flag of this command, if it has it."""
    for word, following in pairwise([*typed, ""]):
        if word == CODEX_HOME and following:
            return [word, following]
        if word.startswith(f"{CODEX_HOME}="):
            return [word]
    return []


def addition(package: str) -> str:
    """How one more package gets to where this runs; in backquotes. None of the name `tagcall` is published yet."""
    began = next((word for word in sys.argv[1:2] if word.isalpha()), "serve")
    if (line := one_run(began, package)) is not None:
        return f"`{line}`"
    if find_spec("pip"):
        return f"`{sys.executable} -m pip install {package}`"
    return f"`uv pip install --python {sys.executable} {package}`"


def _only_now_on_path(own: Path) -> bool:
    """Whether nobody has entered its environment, which then is on PATH for this run alone."""
    in_own_environment = sys.prefix != sys.base_prefix and own.parent.parent == Path(sys.prefix)
    return in_own_environment and os.environ.get("VIRTUAL_ENV") != sys.prefix


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found).resolve() if found else None
