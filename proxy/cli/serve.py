"""`tagcall serve`: say where, say how to use it, run until told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from ..server import running_server
from ..settings import Settings
from .obsidian import copilot_settings


async def run_serve(settings: Settings) -> int:
    """Serves until SIGINT or SIGTERM; running turns may finish. A second signal ends it at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(130)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    async with running_server(settings) as url:
        print(f"tagcall is ready on {url}")
        print(copilot_settings(url, keyed=bool(settings.api_key or settings.api_key_file)), flush=True)
        await stop.wait()
        print("tagcall is stopping: running answers may finish.", file=sys.stderr)
    return 0
