from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from proxy.cli.main import loading

# Libraries for what few servers are asked for.
LATER = ("importlib.metadata", "jsonschema", "openai", "redis", "websockets")

START = """
import sys
from proxy.cli.main import loading
with loading():
    import proxy.cli.serve
print(*sys.modules)
"""


def test_a_server_starts_without_what_few_need() -> None:
    loaded = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True).stdout.split()
    assert "proxy.server" in loaded
    assert not set(LATER) & set(loaded)


def test_garbage_is_collected_again_after_loading() -> None:
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_is_collected_again_when_loading_fails() -> None:
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()
