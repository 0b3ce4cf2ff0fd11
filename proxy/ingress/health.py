"""What the server says of itself: that it runs, and whether a turn would be taken."""

from __future__ import annotations

from aiohttp import web

from .bodies import json_reply
from .readiness import READINESS


async def healthz(_: web.Request) -> web.StreamResponse:
    """The process answers."""
    return json_reply({"status": "ok"})


async def readyz(request: web.Request) -> web.StreamResponse:
    """A turn would be taken: 200, else 503 with the reason."""
    health = await request.app[READINESS].now()
    if health.problem is None:
        return json_reply({"status": "ready", "backend": health.version})
    return json_reply({"status": "not ready", "backend": health.version, "problem": health.problem}, status=503)


async def greet(_: web.Request) -> web.StreamResponse:
    return web.Response(text="tagcall is running. Point an OpenAI client at /v1 of this address.\n")
