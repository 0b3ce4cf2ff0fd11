"""Which tagcall this is: `0.1.0` of a release, `0.1.dev852+g5bdc652` of a commit between releases."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

# Seconds for git to name the commit, of which it takes some thousandths.
_WAIT = 5.0


@cache
def own_version() -> str:
    """As the build wrote it. A checkout has moved on since it was installed, so there the commit is asked for anew.

    `(not installed)` where nothing was built.
    """
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 -- 10 ms that a start is ready without

    try:
        built = version("tagcall")
    except PackageNotFoundError:
        return "(not installed)"
    commit = _commit(Path(__file__).resolve().parent.parent)
    return built if commit is None else re.sub(r"\+g[0-9a-f]+", f"+g{commit}", built)


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
