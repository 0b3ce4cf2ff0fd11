"""A pytest plugin: recorded answers for the tests of a project that speaks to an OpenAI endpoint.

    def test_my_agent(tagcall_server):
        client = OpenAI(base_url=tagcall_server("tests/fixtures"), api_key="any")

Installed, this module is called `tagcall_pytest`, and no other of tagcall is on the path: a project may have a
`proxy` of its own. So it imports nothing of tagcall; the server is a process of its own, which ends with the tests,
however they end. docs/howto/replay-in-ci.md
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

# `-P` keeps the project's own folders out of the way. The read ends with whoever holds the other end.
_CHILD = """\
import os, signal, sys, threading
def leave():
    os.read(0, 1)
    signal.raise_signal(signal.SIGTERM)
threading.Thread(target=leave, daemon=True).start()
from tagcall import run
sys.exit(run())
"""
# What the first line of `tagcall serve` says before its base URL.
_READY = "tagcall is ready on "

# Seconds for a server to leave; requests that still run keep it.
_FAREWELL = 5.0


class TagcallServer(Protocol):
    """The type of the fixture `tagcall_server`."""

    def __call__(self, fixtures_dir: str | os.PathLike[str], *, speed: str = "fast", fresh: bool = False) -> str:
        """The base URL of a server that answers from the fixtures in a folder, relative to pytest's rootdir.

        All tests that name the same folder and speed share one server, unless they want a `fresh` one: of
        fixtures that answer the same request each server plays one after the other. `speed` is `fast`,
        `recorded`, or the time between two pieces of text, as `20ms`.
        """


@pytest.fixture(scope="session")
def tagcall_server(pytestconfig: pytest.Config) -> Iterator[TagcallServer]:
    """`tagcall_server(fixtures_dir)` is the base URL of an OpenAI endpoint that answers from fixtures."""
    shared: dict[tuple[Path, str], str] = {}
    with ExitStack() as servers:

        def base_url(fixtures_dir: str | os.PathLike[str], *, speed: str = "fast", fresh: bool = False) -> str:
            folder = pytestconfig.rootpath / fixtures_dir
            if fresh:
                return servers.enter_context(_running(folder, speed))
            if (folder, speed) not in shared:
                shared[folder, speed] = servers.enter_context(_running(folder, speed))
            return shared[folder, speed]

        yield base_url


@contextmanager
def _running(folder: Path, speed: str) -> Iterator[str]:
    arguments = ["--port", "0", "--backend", f"replay:{folder}", "--store", "memory", "--speed", speed]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TAGCALL_")}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(  # noqa: S603 -- this interpreter
            [sys.executable, "-P", "-c", _CHILD, "serve", "--config", "none", "--log-level", "error", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            env=environment,
        ) as child,
    ):
        assert child.stdout is not None  # noqa: S101 -- a pipe
        line = child.stdout.readline()
        if not line.startswith(_READY):
            child.wait()
            errors.seek(0)
            pytest.fail(errors.read().strip() or "tagcall did not start", pytrace=False)
        try:
            yield line.removeprefix(_READY).strip()
        finally:
            _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None  # noqa: S101 -- a pipe
    child.stdin.close()
    try:
        child.wait(_FAREWELL)
    except subprocess.TimeoutExpired:
        child.kill()
