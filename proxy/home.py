"""What tagcall keeps in its own folder: the secret of its call keys, and which models write them.

    call-key                the secret, random bytes as hexadecimal digits, for its owner alone
    call-key.models.json    what is known of each owner's models, see `proxy/turn/key_habits.py`

A server runs without either. If nothing can be written, secret and habits last as long as its process.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from .errors import UsageError, reason_of
from .turn import Habits, KeyHabit, Known, Speaker
from .turn.turn_key import SECRET_BYTES

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Turns that may be lost from the count when a server ends.
TURNS_NOTED = 25


def read_secret(path: Path, *, named: bool = False) -> bytes:
    """The secret in the file `path`, which is made when it is not there.

    Raises `UsageError` when what stands there is no secret, or cannot be read although its owner `named` it: servers
    that are to share one would each have their own.
    """
    try:
        written = _written(path)
    except OSError as error:
        if named:
            raise UsageError(
                f"The secret of the call keys in {path} can be neither read nor made ({reason_of(error)}): name "
                "another file with --call-key-secret, or leave the flag out."
            ) from None
        log.warning("call_key_secret_not_kept", path=str(path), reason=error.strerror)
        return secrets.token_bytes(SECRET_BYTES)
    if len(written) < SECRET_BYTES:
        raise UsageError(
            f"{path} holds no secret for call keys",
            f"delete it, and tagcall makes a new one; or write one of at least {SECRET_BYTES} characters into it",
        )
    return written


def _written(path: Path) -> bytes:
    try:
        return path.read_bytes().strip()
    except FileNotFoundError:
        pass
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)  # whatever the umask
    secret = secrets.token_hex(SECRET_BYTES).encode()
    # Whole or not at all, and only by the first of several servers that start at once: the others read what it wrote.
    mine = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(secret)
        os.link(mine, path)
    except FileExistsError:
        return path.read_bytes().strip()
    finally:
        mine.unlink(missing_ok=True)
    return secret


def habits_file(secret: Path) -> Path:
    return secret.with_name(f"{secret.name}.models.json")


def read_habits(path: Path) -> list[tuple[str, str, Known]]:
    """What is noted in `path`: owner, model, what is known. Nothing where nothing can be read there."""
    try:
        return [_known(row) for row in orjson.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError, LookupError):
        return []


def _known(row: dict[str, Any]) -> tuple[str, str, Known]:
    known = Known(KeyHabit(row["habit"]), tuple(map(str, row["lacking"])), int(row["turns"]))
    return str(row["owner"]), str(row["model"]), known


def write_habits(path: Path, habits: Iterable[tuple[str, str, Known]]) -> None:
    """Raises `OSError`."""
    rows = [
        {"owner": owner, "model": model, "habit": known.habit.value, "lacking": known.lacking, "turns": known.turns}
        for owner, model, known in habits
    ]
    mine = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(rows, option=orjson.OPT_APPEND_NEWLINE))
        mine.replace(path)
    finally:
        mine.unlink(missing_ok=True)


def forget_habits(path: Path, model: str) -> int:
    """Forgets what is known of `model` for anybody. Returns for how many owners. Raises `OSError`."""
    known = read_habits(path)
    kept = [row for row in known if row[1] != model]
    if len(kept) < len(known):
        write_habits(path, kept)
    return len(known) - len(kept)


class KeptHabits(Habits):
    """Habits that outlive the process, in the file `path`, which others may write as well."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _stamp(path)
        super().__init__(read_habits(path))

    def begin(self, speaker: Speaker) -> KeyHabit:
        # `tagcall doctor --forget` writes it, and so does another server.
        if (stamp := _stamp(self._path)) != self._seen:
            self._seen = stamp
            self.replace(read_habits(self._path))
        return super().begin(speaker)

    def _put(self, speaker: Speaker, known: Known) -> None:
        before = self.of(speaker)
        super()._put(speaker, known)
        if before.habit is not known.habit:
            log.info("call_key_habit", model=speaker.model, habit=known.habit.value)
        # Counted turns are noted now and then: this small file is written in place of a queue for it.
        counted = before.turns // TURNS_NOTED != known.turns // TURNS_NOTED
        if not counted and (before.habit, before.lacking) == (known.habit, known.lacking):
            return
        try:
            write_habits(self._path, self.known())
        except OSError as error:
            log.debug("call_key_habits_not_kept", path=str(self._path), reason=error.strerror)
        self._seen = _stamp(self._path)


def _stamp(path: Path) -> tuple[int, int] | None:
    """By which a file that was written anew is known."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
