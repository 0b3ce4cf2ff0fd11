from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from proxy.cli.main import loading

# Libraries for what few servers are asked for.
LATER = ("importlib.metadata", "jsonschema", "openai", "redis", "websockets")

# What only other commands than `serve` need.
OTHERS = ("proxy.cli.replay", "proxy.cli.record", "proxy.cli.eval", "proxy.cli.doctor", "proxy.replay.fixture")

# What only a running server needs. The routes, whose dialects a flag offers, bring aiohttp.
RUNNING = (*LATER, "proxy.backends.codex.backend", "proxy.rpc", "proxy.server")

START = """
import sys
from proxy.cli.main import build_parser, loading
build_parser("serve")
with loading():
    import proxy.cli.serve
from proxy.backends import make_backend
from proxy.settings import Settings
make_backend(Settings(codex=sys.executable))
print(*sys.modules)
"""

FLAGS = """
import sys
from proxy.cli.main import build_parser
build_parser("serve")
print(*sys.modules)
"""

ASK = """
import sys
from proxy.cli import main
try:
    main([WORD])
finally:
    print(*sys.modules)
"""


def loaded_by(program: str) -> set[str]:
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_a_server_starts_without_what_few_need() -> None:
    loaded = loaded_by(START)
    assert {"proxy.server", "proxy.backends.codex.backend"} <= loaded
    assert not {*LATER, *OTHERS} & loaded


def test_flags_are_read_without_what_a_server_needs() -> None:
    loaded = loaded_by(FLAGS)
    assert "proxy.settings" in loaded
    assert not set(RUNNING) & loaded


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_what_is_no_command_loads_neither_settings_nor_server(word: str) -> None:
    loaded = loaded_by(f"WORD = {word!r}\n{ASK}")
    assert "proxy.cli.main" in loaded
    assert not {*RUNNING, "aiohttp", "proxy.ingress", "proxy.settings"} & (loaded - {"importlib.metadata"})


def test_garbage_is_collected_again_after_loading() -> None:
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_is_collected_again_when_loading_fails() -> None:
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()
