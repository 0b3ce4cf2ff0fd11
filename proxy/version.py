"""Which tagcall this is: `0.1.0` of a release, `0.1.dev852+g5bdc652` of a commit between releases."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

# Seconds for git to name the commit, of which it takes some thousandths.
_WAIT = 5.0


@cache
def own_version() -> str:
    """As the build wrote it. A checkout has moved on since it was installed, so there the commit is asked for anew.

    `(not installed)` where nothing was built.
    """
    built = _built()
    commit = None if built is None else _commit(Path(__file__).resolve().parent.parent)
    if built is None or commit is None:
        return built or "(not installed)"
    return re.sub(r"\+g[0-9a-f]+", f"+g{commit}", built)


def _built() -> str | None:
    """The version in the name of the folder that says what is installed: `tagcall-0.1.0.dist-info`.

    Every app-server is told it at its start. importlib.metadata takes 10 ms and 1 MB for it, since it loads readers of
    archives and tables and parses the README. The specification of installed projects has the name.
    """
    for place in sys.path:
        for folder in Path(place).glob("tagcall-*.dist-info"):
            return folder.stem.partition("-")[2]
    return None


def _commit(checkout: Path) -> str | None:
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(  # noqa: S603 -- git, on our own folder
            command, capture_output=True, encoding="ascii", check=True, timeout=_WAIT
        )
    except (OSError, subprocess.SubprocessError):  # no git, or not a checkout that it reads
        return None
    return done.stdout.strip()
