"""Which store a setting means: one row a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ..contracts import ResponseStore
from ..errors import UsageError
from .memory import MemoryStore, NoStore
from .sqlite import SqliteStore

STORES: Mapping[str, Callable[[str], ResponseStore]] = {
    "memory": lambda _: MemoryStore(),
    "none": lambda _: NoStore(),
    "sqlite": lambda path: SqliteStore(Path(path).expanduser()),
}


def make_store(setting: str) -> ResponseStore:
    """The store that `--store` names, not opened yet. Raises `UsageError`."""
    kind, colon, address = setting.partition(":")
    make = STORES.get(kind)
    # Only a file has a place.
    if make is None or (kind == "sqlite") is not bool(colon and address):
        raise UsageError(f"--store {setting} is unknown: use memory, none or sqlite:PATH.")
    return make(address)
