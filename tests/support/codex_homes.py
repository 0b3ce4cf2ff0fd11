"""Codex homes that know their program.

At its first start in a new home the program is asked about each of its models, which takes ten times what a start
takes. The answers are the same in every home: what the first has found out is laid into those that follow.
"""

from __future__ import annotations

from pathlib import Path

# What a home keeps of its program; old programs have no catalog.
_FILES = ("probed.json", "catalog.json")

_found: dict[Path, dict[str, bytes]] = {}
_asked: dict[Path, list[Path]] = {}


def informed_home(home: Path, program: Path) -> Path:
    """`home`, in which stands what an earlier one of this process found out about `program`."""
    if program not in _found:
        asked = _asked.setdefault(program, [])
        if known := next((place for place in asked if (place / "probed.json").is_file()), None):
            _found[program] = {name: (known / name).read_bytes() for name in _FILES if (known / name).is_file()}
        asked += _places(home)
    for name, content in _found.get(program, {}).items():
        for place in _places(home):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            (place / name).write_bytes(content)
    return home


def _places(home: Path) -> tuple[Path, Path]:
    """Where the program may run: with another upstream than its own it does not run on the login."""
    return home, home / "upstream"
