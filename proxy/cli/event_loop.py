"""The event loop that a server runs on: uvloop's, if the extra `speed` has installed it, else Python's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from importlib import import_module
from importlib.util import find_spec

import structlog
from structlog.typing import FilteringBoundLogger

log: FilteringBoundLogger = structlog.get_logger(__name__)


def run_server(serving: Coroutine[None, None, int]) -> int:
    """The exit status of `serving`."""
    with asyncio.Runner(loop_factory=_fastest()) as runner:
        return runner.run(serving)


def _fastest() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """None is Python's own."""
    if find_spec("uvloop") is None:
        return None
    log.debug("event_loop", name="uvloop")
    make: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return make
