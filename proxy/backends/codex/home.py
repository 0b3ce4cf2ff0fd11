"""The private CODEX_HOME that leaves codex nothing but text.

config.toml    everything that could act, ask or add to the prompt is off      (written at each start)
catalog.json   every model as one without tools, the unknown ones included      (once for each program)
probed.json    the program that the catalog was made for, and its version       (once for each program)
auth.json      codex's own login; never read or written here
empty/         where threads run
children/      records of the processes that run on it

Versions below 0.110 write every conversation into this folder, whatever the settings. Each start removes them.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from ...rpc import RpcObject
from .baseline import measure_base_instructions
from .catalog import UNKNOWN, text_only_catalog, verbosity_of
from .config import Provider, config_text
from .program import CodexProgram, printed_by, read_version

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Where codex keeps its login.
LOGIN_FILE = "auth.json"

# Seconds after which nobody writes on in a conversation that is not archived, as another tagcall might.
_ABANDONED_AFTER = 24 * 3600.0
# Raised when catalogs that were made by an older tagcall must be made anew.
CATALOG_FORMAT = 1


async def prepare_home(
    home: Path, program: Path, provider: Provider, idle_timeout: float, env: Mapping[str, str]
) -> CodexProgram:
    """Make `home` fit for `program` and say what that program is. Raises `OSError` when it cannot be written."""
    _make_folders(home)
    await asyncio.to_thread(_forget_conversations, home)
    key = _key(program)
    known = _kept(home, program, key) or await _probe(home, program, key, env)
    _write_config(home, known, provider, idle_timeout)
    return known


class KeptCatalog:
    """What the catalog in a home says of models; nothing before it was read, or where there is none."""

    def __init__(self, home: Path) -> None:
        self._file = home / "catalog.json"
        self._verbosity: Mapping[str, bool] = {}

    def read(self) -> None:
        try:
            self._verbosity = verbosity_of(orjson.loads(self._file.read_bytes()))
        except (OSError, orjson.JSONDecodeError, LookupError, TypeError):
            self._verbosity = {}

    def has_verbosity(self, model: str) -> bool:
        """Whether codex tells that model one; True where the catalog does not say."""
        slugs = [slug for slug in self._verbosity if model.startswith(slug)]
        return not self._verbosity or (bool(slugs) and self._verbosity[max(slugs, key=len)])


def empty_folder(home: Path) -> Path:
    """The working directory of every thread."""
    return home / "empty"


def _make_folders(home: Path) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    empty_folder(home).mkdir(mode=0o700, exist_ok=True)


def _forget_conversations(home: Path) -> None:
    for folder, age in (("archived_sessions", 0.0), ("sessions", _ABANDONED_AFTER)):
        for file in (home / folder).rglob("*.jsonl"):
            with suppress(OSError):
                if time.time() - file.stat().st_mtime >= age:
                    file.unlink()


def _write_config(home: Path, program: CodexProgram, provider: Provider, idle_timeout: float) -> None:
    catalog = home / "catalog.json"
    old = (0,) < program.release < (0, 100)
    text = config_text(
        provider, idle_timeout, catalog=catalog if catalog.exists() else None, skills_in=home if old else None
    )
    _write(home / "config.toml", text.encode())


def _key(program: Path) -> list[object]:
    """Changes when the program does."""
    file = program.stat()
    return [CATALOG_FORMAT, str(program), file.st_size, file.st_mtime_ns]


def _kept(home: Path, program: Path, key: list[object]) -> CodexProgram | None:
    """What an earlier start found out about the same file."""
    try:
        kept = orjson.loads((home / "probed.json").read_bytes())
        if kept["key"] == key and kept["catalog"] == (home / "catalog.json").exists():
            return CodexProgram(program, kept["version"])
    except (OSError, orjson.JSONDecodeError, LookupError, TypeError):
        pass
    return None


async def _probe(home: Path, program: Path, key: list[object], env: Mapping[str, str]) -> CodexProgram:
    """Run the program for its version, its models and what it sends them.

    What says no version is a stand-in for codex and is asked nothing more. What did not answer in time is asked
    again at the next start.
    """
    version = await asyncio.to_thread(read_version, program)
    models = await asyncio.to_thread(_bundled_models, program, env, home) if version else None
    names = [str(model["slug"]) for model in models or ()] + [UNKNOWN]
    measured = await measure_base_instructions(program, names, env) if models else {}
    _keep_catalog(home, text_only_catalog(models, measured) if models else None)
    if models is not None and (not models or len(measured) == len(names)):
        found = {"key": key, "version": version, "catalog": bool(models)}
        _write(home / "probed.json", orjson.dumps(found))
    log.info("codex_probed", program=str(program), version=version, models=len(models or ()))
    return CodexProgram(program, version)


def _keep_catalog(home: Path, catalog: RpcObject | None) -> None:
    if catalog is None:
        (home / "catalog.json").unlink(missing_ok=True)
    else:
        _write(home / "catalog.json", orjson.dumps(catalog))


def _bundled_models(program: Path, env: Mapping[str, str], home: Path) -> list[RpcObject] | None:
    """The program's own model table; empty when it has none to show, as old ones have not, None without an answer."""
    try:
        told = printed_by(
            [program, "debug", "models", "--bundled"], {**env, "CODEX_HOME": str(home)}, empty_folder(home)
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    try:
        models = orjson.loads(told)["models"]
        return [model for model in models if isinstance(model["slug"], str)]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return []


def _write(path: Path, content: bytes) -> None:
    """Replace the file as a whole, readable by its owner only."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)
