"""Routes: which handler serves a path and a method.

Paths are served with and without `/v1`, with doubled and trailing slashes: people paste base URLs in
all of these forms.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from ..errors import RequestError
from ..wire.models import model_list
from .history import delete_response, get_response
from .replies import json_reply
from .responses import create_response
from .state import BACKEND

# A handler takes the request and what stands in the path for each `{...}` of its route.
Handler = Callable[..., Awaitable[web.StreamResponse]]


async def list_models(request: web.Request) -> web.StreamResponse:
    return json_reply(model_list(await request.app[BACKEND].models()))


async def healthz(_: web.Request) -> web.StreamResponse:
    """The process answers."""
    return json_reply({"status": "ok"})


async def readyz(request: web.Request) -> web.StreamResponse:
    """A turn would be taken: 200, else 503 with the reason."""
    health = await request.app[BACKEND].health()
    if health.problem is None:
        return json_reply({"status": "ready", "backend": health.version})
    return json_reply({"status": "not ready", "backend": health.version, "problem": health.problem}, status=503)


async def greet(_: web.Request) -> web.StreamResponse:
    return web.Response(text="tagcall is running. Point an OpenAI client at /v1 of this address.\n")


# Path without `/v1` -> method -> handler.
ROUTES: dict[str, dict[str, Handler]] = {
    "/": {"GET": greet},
    "/healthz": {"GET": healthz},
    "/readyz": {"GET": readyz},
    "/models": {"GET": list_models},
    "/responses": {"POST": create_response},
    "/responses/{id}": {"GET": get_response, "DELETE": delete_response},
}


# What those who watch over a process ask, without a key of their own.
KEYLESS = frozenset({"/", "/healthz", "/readyz"})


def canonical_path(path: str) -> str:
    """`//v1//responses/` and `/responses` are one path: `/responses`."""
    names = [name for name in path.split("/") if name]
    if names and names[0] == "v1":
        del names[0]
    return "/" + "/".join(names)


def _match(route: str, path: str) -> list[str] | None:
    """What stands in `path` for each `{...}` of `route`, or None when it is another path."""
    wanted, given = route.split("/"), path.split("/")
    pairs = list(zip(wanted, given, strict=False))
    if len(wanted) != len(given) or any(name != part for name, part in pairs if not name.startswith("{")):
        return None
    return [part for name, part in pairs if name.startswith("{")]


def find_handler(request: web.Request, path: str) -> Awaitable[web.StreamResponse]:
    """The handler of a request's canonical `path` and its method, called. Raises `RequestError`."""
    for route, methods in ROUTES.items():
        if (parts := _match(route, path)) is None:
            continue
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            raise RequestError(
                f"Not allowed to {request.method} on {request.path[:200]}.", status=405, code="method_not_supported"
            )
        return handler(request, *parts)
    raise RequestError(
        f"Unknown request URL: {request.method} {request.path[:200]}. tagcall serves "
        f"{', '.join('/v1' + path for path in ROUTES if path != '/')}.",
        status=404,
        code="unknown_url",
    )
