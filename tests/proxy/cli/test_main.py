from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.cli.commands import loading
from proxy.cli.main import SEEN_ENOUGH
from tests.support.codex_programs import ROOT
from tests.support.patience import PATIENCE

# Libraries for what few servers are asked for.
LATER = ("importlib.metadata", "jsonschema", "openai", "redis", "websockets")

# What only other commands than `serve` need.
OTHERS = ("proxy.cli.replay", "proxy.cli.record", "proxy.cli.eval", "proxy.cli.doctor", "proxy.replay.fixture")

# What only a running server needs. The routes, whose dialects a flag offers, bring aiohttp.
RUNNING = (*LATER, "proxy.backends.codex.backend", "proxy.rpc", "proxy.server")

START = """
import sys
from proxy.cli.commands import build_parser, loading
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
from proxy.cli.commands import build_parser
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


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["settings", "--version", "replay fixtures/codex-0.169.0-plain-answer"])
def test_a_reader_who_has_seen_enough_is_told_nothing(words: str, unbuffered: str) -> None:
    """As `head` has, before or while it is printed."""
    with subprocess.Popen(
        [sys.executable, "-m", "proxy.cli", *words.split()],
        cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": unbuffered}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE) == SEEN_ENOUGH


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_told_in_one_sentence(unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "proxy.cli", "settings"],
            cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full, stderr=subprocess.PIPE, check=False, timeout=PATIENCE,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, b"tagcall: No space left on device.\n")
