from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from proxy.cli.main import loading

# Libraries for what few servers are asked for.
LATER = ("importlib.metadata", "jsonschema", "openai", "redis", "regex", "websockets")

# What only a running server needs.
RUNNING = (*LATER, "aiohttp", "proxy.backends.codex.backend", "proxy.rpc", "proxy.server")

START = """
import sys
from proxy.cli.main import loading
with loading():
    import proxy.cli.serve
from proxy.backends import make_backend
from proxy.settings import Settings
make_backend(Settings(codex=sys.executable))
print(*sys.modules)
"""

HELP = """
import sys
import proxy.cli.main
print(*sys.modules)
"""


def loaded_by(program: str) -> set[str]:
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_a_server_starts_without_what_few_need() -> None:
    loaded = loaded_by(START)
    assert {"proxy.server", "proxy.backends.codex.backend"} <= loaded
    assert not set(LATER) & loaded


def test_flags_are_read_without_what_a_server_needs() -> None:
    loaded = loaded_by(HELP)
    assert "proxy.settings" in loaded
    assert not set(RUNNING) & loaded


def test_garbage_is_collected_again_after_loading() -> None:
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_is_collected_again_when_loading_fails() -> None:
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()
