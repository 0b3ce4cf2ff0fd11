"""The instructions that codex puts in front of everything, as it sends them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from aiohttp import web

from proxy.backends import make_backend
from proxy.settings import Settings
from tests.support.backend_events import prompt, read_turn
from tests.support.scripted_model import Message, Reply, ScriptedModel


async def base_instructions() -> str:
    """Those for a model that codex does not know, by the program from PyPI in front of a scripted model."""
    model = ScriptedModel()
    model.push(Reply([Message("Hello")]))
    runner = web.AppRunner(model.app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        with TemporaryDirectory() as folder:
            async with make_backend(Settings(codex_home=Path(folder), upstream=url)) as backend:
                await read_turn(backend, prompt(model="local"))
    finally:
        await runner.cleanup()
    first = model.requests[-1].body["input"][0]
    return "".join(part["text"] for part in first["content"])
