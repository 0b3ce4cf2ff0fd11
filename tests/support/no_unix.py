"""A process in which nothing is left that Windows does not have: `python -m tests.support.no_unix COMMAND...`.

What it stands in for is the interface, as Python's documentation of `os`, `signal` and asyncio's "Platform
Support" tells it; Windows itself is not here.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any, NoReturn

import pytest

GONE = {
    os: ("fork", "getpgid", "getuid", "killpg", "setsid"),
    signal: ("SIGHUP", "SIGKILL", "SIGQUIT", "pthread_kill"),
}
# A loop has them and raises.
REFUSED = (
    "add_reader", "add_signal_handler", "add_writer", "create_unix_connection",
    "create_unix_server", "remove_reader", "remove_signal_handler", "remove_writer",
)  # fmt: skip


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError


def take_unix_away(patch: pytest.MonkeyPatch) -> None:
    """Until `patch` is undone. asyncio and subprocess have taken what they need for themselves."""
    for module, names in GONE.items():
        for name in names:
            patch.delattr(module, name)
    for name in REFUSED:
        patch.setattr(asyncio.SelectorEventLoop, name, _refuse)


if __name__ == "__main__":
    take_unix_away(pytest.MonkeyPatch())
    from proxy.cli import main

    sys.exit(main(sys.argv[1:]))
