"""The folder in which fixtures stand: their names, and how one gets there whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_WORDS_IN_NAME = 5


def slug(text: str) -> str:
    """A few words of `text` as a part of a folder's name."""
    words = re.findall(r"[a-z0-9]+", text.lower())[:_WORDS_IN_NAME]
    return "-".join(words)[:40].strip("-") or "turn"


def write_fixture(folder: Path, name: str, files: Mapping[str, bytes]) -> Path:
    """Writes a fixture as a whole or not at all: it gets its name once all is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{name}.unfinished"
    unfinished.mkdir()
    for file, data in files.items():
        (unfinished / file).write_bytes(data)
    return unfinished.rename(folder / name)


def sweep(folder: Path) -> None:
    """Takes away what a recorder that was killed did not finish."""
    for unfinished in folder.glob(".*.unfinished"):
        for file in unfinished.iterdir():
            file.unlink()
        unfinished.rmdir()


def next_number(folder: Path) -> int:
    """One more than the highest number with which a name in `folder` begins."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(found[0]) for name in names if (found := re.match(r"\d+", name))), default=0) + 1
