"""Which store a setting means: one row a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..advice import addition
from ..contracts import ResponseStore
from ..errors import UsageError
from ..setting_values import user_path
from .keyed import TTL, KeyedStore
from .memory import MemoryKeyValue, NoKeyValue
from .sqlite import SqliteKeyValue


def _sqlite(path: str, ttl: float) -> ResponseStore:
    if path == ":memory:":
        raise UsageError("--store sqlite::memory: is not a file", "use --store memory")
    return KeyedStore(SqliteKeyValue(user_path(path)), ttl=ttl)


def _redis(url: str, ttl: float) -> ResponseStore:
    try:
        from .redis import RedisKeyValue  # noqa: PLC0415 -- needs the `redis` extra
        from .redis_journal import RedisJournal  # noqa: PLC0415 -- likewise
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "redis":
            raise
        raise UsageError("--store redis://... needs the package redis", f"add it with {addition('redis')}") from None
    keys = RedisKeyValue(url)
    return KeyedStore(keys, RedisJournal(keys), ttl=ttl)


# What stands before the first colon -> what makes the store; it is given the whole setting, what follows the colon, and
# the seconds for which all is kept.
STORES: Mapping[str, Callable[[str, str, float], ResponseStore]] = {
    "sqlite": lambda _, path, ttl: _sqlite(path, ttl),
    "memory": lambda _, __, ttl: KeyedStore(MemoryKeyValue(), ttl=ttl),
    "none": lambda _, __, ___: KeyedStore(NoKeyValue(), keeps=False),
    "redis": lambda url, _, ttl: _redis(url, ttl),
    "rediss": lambda url, _, ttl: _redis(url, ttl),
}

# Kinds that have no address; all others need one.
PLACELESS = frozenset({"memory", "none"})


def make_store(setting: str, ttl: float = TTL) -> ResponseStore:
    """The store that `--store` names, not opened yet, which keeps all for `ttl` seconds. Raises `UsageError`."""
    kind, colon, address = setting.partition(":")
    make = STORES.get(kind)
    if make is None or (kind in PLACELESS) is bool(colon or address) or (kind not in PLACELESS and not address):
        # What stands behind the kind may hold a password.
        raise UsageError(
            f"--store {kind}{colon and ':...'} is unknown", "use sqlite:PATH, memory, none or redis://HOST:PORT"
        )
    return make(setting, address, ttl)
