"""What tagcall keeps in its own folder: the secret of its call keys, and which models write them.

    call-key                the secret, random bytes as hexadecimal digits, for its owner alone
    call-key.models.json    {"<model>": "writes" | "never"}

A server runs without either: where nothing can be written, the secret is that of its process, and so are the habits.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from .errors import UsageError
from .turn import Habits, KeyHabit
from .turn.call_key import SECRET_BYTES

log: FilteringBoundLogger = structlog.get_logger(__name__)


def read_secret(path: Path) -> bytes:
    """The secret in the file `path`, which is made when it is not there.

    Raises `UsageError` when what stands there is no secret.
    """
    try:
        written = _written(path)
    except OSError as error:
        log.warning("call_key_secret_not_kept", path=str(path), reason=error.strerror)
        return secrets.token_bytes(SECRET_BYTES)
    if len(written) < SECRET_BYTES:
        raise UsageError(
            f"{path} holds no secret for call keys: delete it, and a new one is made, or write one of at least "
            f"{SECRET_BYTES} characters into it."
        )
    return written


def _written(path: Path) -> bytes:
    try:
        return path.read_bytes().strip()
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
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


def read_habits(path: Path) -> Mapping[str, KeyHabit]:
    """What is noted in `path`; nothing where nothing can be read there."""
    try:
        noted = orjson.loads(path.read_bytes())
        return {str(model): KeyHabit(habit) for model, habit in noted.items()}
    except (OSError, ValueError, AttributeError):
        return {}


class KeptHabits(Habits):
    """Habits that outlive the process, in the file `path`."""

    def __init__(self, path: Path) -> None:
        super().__init__(read_habits(path))
        self._path = path

    def learn(self, model: str, habit: KeyHabit) -> None:
        super().learn(model, habit)
        log.info("call_key_habit", model=model, habit=habit.value)
        # A model changes its habit hardly ever, so this small file is written in place of a queue for it.
        mine = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}")
        try:
            mine.write_bytes(orjson.dumps({name: known.value for name, known in self.known.items()}))
            mine.replace(self._path)
        except OSError as error:
            log.debug("call_key_habits_not_kept", path=str(self._path), reason=error.strerror)
