"""The server's answers about itself: that it runs, and whether it would take a turn."""

from __future__ import annotations

from aiohttp import web

from ..version import own_version
from .bodies import json_reply
from .readiness import READINESS
from .state import STOPPING, STORE

# Why a server that was told to end takes no more turns.
STOPS = "The server is about to end."


async def healthz(_: web.Request) -> web.StreamResponse:
    """The process answers."""
    return json_reply({"status": "ok", "version": own_version()})


async def readyz(request: web.Request) -> web.StreamResponse:
    """A turn would be taken: 200, else 503 with the reason. What is not this server's own trouble is told in both."""
    readiness = request.app[READINESS]
    health = await readiness.now()
    problem = STOPS if request.app[STOPPING].is_set() else health.problem
    body: dict[str, object] = {"status": "ready" if problem is None else "not ready", "backend": health.version}
    if problem is not None:
        body["problem"] = problem
    if (trouble := readiness.trouble) is not None:
        body["upstream"] = trouble
    if not request.app[STORE].up:
        body["store"] = "Stored responses cannot be reached now."
    return json_reply(body, status=200 if problem is None else 503)


async def greet(_: web.Request) -> web.StreamResponse:
    return web.Response(text="tagcall is running. Point an OpenAI client at /v1 of this address.\n")
