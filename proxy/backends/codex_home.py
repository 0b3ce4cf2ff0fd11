"""The private CODEX_HOME that leaves codex nothing but text.

config.toml    everything that could act, ask or add to the prompt is off      (written at each start)
catalog.json   every model as one without tools, the unknown ones included      (once for each program)
probed.json    the program that the catalog was made for, and what it is        (once for each program)
auth.json      codex's own login; never read or written here
empty/         where threads run
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import orjson
import structlog

from ..rpc import JsonObject
from .codex_baseline import measure_base_instructions
from .codex_catalog import UNKNOWN, text_only_catalog
from .codex_config import Provider, config_text
from .codex_program import ANSWER_TIMEOUT, CodexProgram, read_version

log = structlog.get_logger(__name__)

CATALOG_FORMAT = 1
"""Raised when catalogs that were made by an older tagcall must be made anew."""


async def prepare_home(
    home: Path, program: Path, provider: Provider, idle_timeout: float, env: Mapping[str, str]
) -> CodexProgram:
    """Make `home` fit for `program` and say what that program is. Raises `OSError` when it cannot be written."""
    _make_folders(home)
    key = _key(program)
    known = _kept(home, program, key) or await _probe(home, program, key, env)
    _write_config(home, known, provider, idle_timeout)
    return known


def empty_folder(home: Path) -> Path:
    """The working directory of every thread."""
    return home / "empty"


def _make_folders(home: Path) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    empty_folder(home).mkdir(mode=0o700, exist_ok=True)


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
    """Run the program for its version, its models and what it sends them."""
    version, models = await asyncio.gather(
        asyncio.to_thread(read_version, program), asyncio.to_thread(_bundled_models, program, env, home)
    )
    names = [str(model["slug"]) for model in models] + [UNKNOWN]
    measured = await measure_base_instructions(program, names, env) if models else {}
    _keep(
        home, version, key, text_only_catalog(models, measured) if models else None, whole=len(measured) == len(names)
    )
    log.info("codex_probed", program=str(program), version=version, models=len(models))
    return CodexProgram(program, version)


def _keep(home: Path, version: str | None, key: list[object], catalog: JsonObject | None, *, whole: bool) -> None:
    if catalog is None:
        (home / "catalog.json").unlink(missing_ok=True)
    else:
        _write(home / "catalog.json", orjson.dumps(catalog))
    if whole or catalog is None:  # else the next start tries again
        _write(home / "probed.json", orjson.dumps({"key": key, "version": version, "catalog": catalog is not None}))


def _bundled_models(program: Path, env: Mapping[str, str], home: Path) -> list[JsonObject]:
    """The program's own model table; empty when it has no such command, as old ones have not."""
    try:
        printed = subprocess.run(  # noqa: S603 -- the program the owner chose
            [program, "debug", "models", "--bundled"],
            env={**env, "CODEX_HOME": str(home)},
            cwd=empty_folder(home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_TIMEOUT,
            check=True,
        ).stdout
        models = orjson.loads(printed)["models"]
        return [model for model in models if isinstance(model["slug"], str)]
    except (OSError, subprocess.SubprocessError, orjson.JSONDecodeError, LookupError, TypeError):
        return []


def _write(path: Path, content: bytes) -> None:
    """Replace the file as a whole, readable by its owner only."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)
