"""Codex homes that know their program.

At its first start in a new home the program is asked about each of its models, which takes ten times what a start
takes, and makes its databases, a third of a start. Both are the same in every home, so they are laid into each.
"""

from __future__ import annotations

import functools
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

from .codex_programs import child_environment

# What a home keeps of its program; old programs have no catalog.
_FILES = ("probed.json", "catalog.json")

_found: dict[Path, dict[str, bytes]] = {}
_asked: dict[Path, list[Path]] = {}


def informed_home(home: Path, program: Path) -> Path:
    """`home`, in which stands what an earlier one of this process found out about `program`, and new databases."""
    if program not in _found:
        asked = _asked.setdefault(program, [])
        if known := next((place for place in asked if (place / "probed.json").is_file()), None):
            _found[program] = {name: (known / name).read_bytes() for name in _FILES if (known / name).is_file()}
        asked += _places(home)
    for name, content in {**_databases(program), **_found.get(program, {})}.items():
        for place in _places(home):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (place / name).exists():
                (place / name).write_bytes(content)
    return home


def _places(home: Path) -> tuple[Path, Path]:
    """Where the program may run: with another upstream than its own it does not run on the login."""
    return home, home / "upstream"


@functools.cache
def _databases(program: Path) -> dict[str, bytes]:
    """As the program makes them in a new home before anybody asks it for anything."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**child_environment(folder), "CODEX_HOME": folder}
        subprocess.run([program, "app-server"], env=environment, input=b"", capture_output=True, check=False)
        files = sorted(Path(folder).glob("*.sqlite"))
        for file in files:
            with closing(sqlite3.connect(file)) as database:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return {file.name: file.read_bytes() for file in files}
