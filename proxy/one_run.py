"""Environments that `uvx` and `pipx run` make for one run. They lie in a cache, so no advice should name their paths.

The command line that made one says where the program comes from, so typing it again gets the same program.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Where uv keeps such environments: `archive-v0/...` and `environments-v2/...` below its cache, wherever that is.
_OF_UV = re.compile(r"(archive|environments)-v\d+")
_OF_EXTRA = re.compile(r"([\w.-]++).*\bextra\s*==\s*['\"](\w+)['\"]")


def one_run(words: str, adding: str | None = None) -> str | None:
    """The line that runs `words` in such an environment, with `adding` in it, a package of an extra; None in an
    environment that stays.
    """
    tool = _tool(Path(sys.prefix))
    if tool is None:
        return None
    program, flag = (["uvx"], "--from") if tool == "uvx" else (["pipx", "run"], "--spec")
    source = _source(adding)
    return f"{_joined([*program, *([flag, source] if source else []), 'tagcall'])} {words}"


def to_keep() -> str | None:
    """The line that installs it for good from where it was taken for this run; None in an environment that stays."""
    tool = _tool(Path(sys.prefix))
    if tool is None:
        return None
    return _joined([*(("uv", "tool") if tool == "uvx" else ("pipx",)), "install", _source() or "tagcall"])


def _tool(environment: Path) -> str | None:
    if any(_OF_UV.fullmatch(part) for part in environment.parts):
        return "uvx"
    # `~/.cache/pipx/...`, and `$PIPX_HOME/.cache/...` with an `expired` time of its own.
    if {"pipx", ".cache"} <= set(environment.parts) or (environment / "pipx_expired_venv_file").exists():
        return "pipx"
    return None


def _source(adding: str | None = None) -> str | None:
    """What was asked for, as a requirement; None where a registry has it under its name alone."""
    from importlib import metadata  # noqa: PLC0415 -- 10 ms that a start is ready without

    def is_there(package: str) -> bool:
        try:
            return bool(metadata.distribution(package))
        except metadata.PackageNotFoundError:
            return False

    try:
        own = metadata.distribution("tagcall")
    except metadata.PackageNotFoundError:
        return None
    # Extra -> its packages. Which extras somebody asked for is known by what is here.
    packages: dict[str, list[str]] = {}
    for line in own.requires or ():
        if found := _OF_EXTRA.match(line):
            packages.setdefault(found[2], []).append(found[1])
    wanted = [extra for extra, added in packages.items() if adding in added or all(map(is_there, added))]
    name = f"tagcall[{','.join(wanted)}]" if wanted else "tagcall"
    origin = json.loads(own.read_text("direct_url.json") or "{}")
    if not (url := origin.get("url")):
        return name if wanted else None
    if control := origin.get("vcs_info"):
        at = f"@{revision}" if (revision := control.get("requested_revision")) else ""
        url = f"{control['vcs']}+{url}{at}"
    return f"{name} @ {url}"


def _joined(words: Sequence[str]) -> str:
    """As a shell takes them."""
    return subprocess.list2cmdline(words)
