"""The folder of fixtures: their names, and how one is written whole or not at all."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from ...replay.answers import BODY_FILE, STREAM_FILE, load_answer
from ...replay.fixture import (
    BACKEND_FILE,
    REQUEST_FILE,
    TRANSCRIPT_FILE,
    Fixture,
    FixtureError,
    load_fixtures,
    load_messages,
    parse_fixture,
    read_file,
)
from ...replay.normal import without_usage
from ...replay.transcript import transcript

_WORDS_IN_NAME = 5
_FILES = frozenset({REQUEST_FILE, BACKEND_FILE, TRANSCRIPT_FILE, STREAM_FILE, BODY_FILE})


def slug(text: str) -> str:
    """A few words of `text` as a part of a folder's name."""
    words = re.findall(r"[a-z0-9]+", text.lower())[:_WORDS_IN_NAME]
    return "-".join(words)[:40].strip("-") or "turn"


def name_of(files: Mapping[str, bytes]) -> str:
    """The name of what these files hold: how the question begins, and behind which tool's result it is asked on."""
    ask = parse_fixture("new", files[BACKEND_FILE]).turns[0].ask
    after = f"-after-{slug(ask.after_tools[-1].replace('_', ' '))}" if ask.after_tools else ""
    return f"{slug(ask.last_user)}{after}"


def write_fixture(folder: Path, name: str, files: Mapping[str, bytes]) -> Path:
    """Writes a fixture as a whole or not at all: it gets its name once all is in it."""
    unfinished = _write_unfinished(folder, name, files)
    try:
        return unfinished.rename(folder / name)
    except OSError:
        shutil.rmtree(unfinished)
        raise


def replace_fixture(folder: Path, name: str, files: Mapping[str, bytes]) -> bool:
    """Writes a fixture in the place of another; False: that one says the same, and stays. Files of others stay too."""
    unfinished, old = _write_unfinished(folder, name, files), folder / name
    if _says_the_same(unfinished, old):
        shutil.rmtree(unfinished)
        return False
    old = old.rename(folder / f".{name}.replaced")
    unfinished.rename(folder / name)
    for file in old.iterdir():
        if file.name not in _FILES:
            file.rename(folder / name / file.name)
    shutil.rmtree(old)
    return True


def _write_unfinished(folder: Path, name: str, files: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{name}.unfinished"
    unfinished.mkdir()
    for file, data in files.items():
        (unfinished / file).write_bytes(data)
    return unfinished


def _says_the_same(new: Path, old: Path) -> bool:
    """Times, cuts and counts of tokens are others in each run. What is damaged says nothing."""
    if not (old / REQUEST_FILE).is_file() or read_file(old / REQUEST_FILE) != (new / REQUEST_FILE).read_bytes():
        return False
    try:
        answers = load_answer(old), load_answer(new)
    except FixtureError:
        return False
    one, other = (answer and without_usage(answer) for answer in answers)
    return one == other and transcript(load_messages(old)) == transcript(load_messages(new))


def sweep(folder: Path) -> None:
    """Takes away what a recorder that was killed did not finish, and puts back what it had taken away for it."""
    for unfinished in folder.glob(".*.unfinished"):
        shutil.rmtree(unfinished)
    for replaced in folder.glob(".*.replaced"):
        name = replaced.name[1:].removesuffix(".replaced")
        if (folder / name).exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(folder / name)


# What a fixture is asked. Two that are asked the same answer one after the other.
_Asked: TypeAlias = tuple[str, str | None, tuple[str, ...], tuple[str, ...], bool | None]


class Replaceable:
    """The fixtures of a folder, each of which a new one may take the place of, once. Raises `FixtureError`."""

    def __init__(self, folder: Path) -> None:
        self._names: defaultdict[_Asked, list[str]] = defaultdict(list)
        if any(folder.glob(f"[!.]*/{BACKEND_FILE}")):
            for name, fixture in load_fixtures(folder).items():
                self._names[_asked(fixture)].append(name)

    def take(self, files: Mapping[str, bytes]) -> str | None:
        """The name of the first one left that is asked the same as the fixture in these files."""
        names = self._names.get(_asked(parse_fixture("new", files[BACKEND_FILE])))
        return names.pop(0) if names else None


def _asked(fixture: Fixture) -> _Asked:
    ask = fixture.turns[0].ask
    return fixture.path, fixture.model, tuple(ask.lines), ask.after_tools, ask.with_tools


def next_number(folder: Path) -> int:
    """One more than the highest number with which a name in `folder` begins."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(found[0]) for name in names if (found := re.match(r"\d+", name))), default=0) + 1
