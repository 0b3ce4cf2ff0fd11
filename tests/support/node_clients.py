"""The JavaScript clients in tests/end_to_end/clients, each run in a node process of its own.

`make clients` installs them. Where they, node or the browser are missing, tests that want them are
skipped, or fail when TAGCALL_TEST_CLIENTS is `required`, as in CI.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from .codex_programs import ROOT, child_environment
from .patience import PATIENCE
from .tool_call import ToolCall
from .vault import MODEL, NOTES, QUESTION, TAGS

CLIENTS = ROOT / "tests" / "end_to_end" / "clients"
PACKAGES = CLIENTS / "node_modules"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True, slots=True)
class Report:
    """What a client saw in one way through the conversation; `error` is the trace of what it threw."""

    way: str
    calls: list[ToolCall]
    texts: list[str]
    error: str | None

    @classmethod
    def read(cls, row: dict[str, Any]) -> Report:
        return cls(row["way"], [ToolCall(**call) for call in row["calls"]], row["texts"], row.get("error"))


def task(url: str, client: str, api: str, ways: tuple[str, ...]) -> dict[str, object]:
    """What a client is given: who is to do what, and the vault."""
    vault = {"model": MODEL, "question": QUESTION, "notes": NOTES, "tags": TAGS}
    return {"url": url, "client": client, "api": api, "ways": ways, **vault}


def installed_node() -> str:
    """The node program, once it can run the clients."""
    node = shutil.which("node")
    if node is None:
        missing("There is no node on PATH: install Node.js 20 or newer.")
    if not (PACKAGES / ".installed").is_file():
        missing("The JavaScript clients are not installed: run `make clients`.")
    return node


def installed_browser() -> str:
    """Chromium; TAGCALL_TEST_BROWSER names another one."""
    named = os.environ.get("TAGCALL_TEST_BROWSER")
    found = filter(None, map(shutil.which, [named] if named else BROWSERS))
    return next(found, None) or missing("There is no browser on PATH: install for instance Debian's chromium.")


def missing(reason: str) -> NoReturn:
    """Skips the test, or fails it where nothing may be missing."""
    if os.environ.get("TAGCALL_TEST_CLIENTS") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


async def run_node(node: str, script: str, given: dict[str, object], home: Path) -> list[dict[str, Any]]:
    """The JSON lines that `script` prints when it is given this on its standard input."""
    process = await asyncio.create_subprocess_exec(
        node,
        str(CLIENTS / script),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=child_environment(home),
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate(json.dumps(given).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return [json.loads(line) for line in out.splitlines()]
