"""Routes: which handler serves a path and a method.

Paths are served with and without `/v1` or with two of them, with doubled and trailing slashes: people paste
base URLs in all of these forms.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from ..errors import RequestError
from .bodies import json_reply
from .chat import create_completion
from .compaction import compact
from .conversations import (
    add_items,
    create_conversation,
    delete_conversation,
    delete_item,
    get_conversation,
    get_item,
    list_items,
    update_conversation,
)
from .dialects import create_in_dialect
from .input_tokens import count_input_tokens
from .metrics import metrics
from .models import get_model, list_models
from .state import BACKEND, REQUEST_LOG
from .stored import cancel_response, delete_response, get_response, list_input_items
from .tokligence import submit_tool_outputs
from .unserved import unserved
from .websocket.realtime import connect_realtime
from .websocket.responses import connect_responses

# A handler takes the request and what stands in the path for each `{...}` of its route.
Handler = Callable[..., Awaitable[web.StreamResponse]]


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


# Path without `/v1` -> method -> handler. `{...*}`, at the end only, takes all that is left, slashes included.
ROUTES: dict[str, dict[str, Handler]] = {
    "/": {"GET": greet},
    "/health": {"GET": healthz},
    "/healthz": {"GET": healthz},
    "/readyz": {"GET": readyz},
    "/metrics": {"GET": metrics},
    "/models": {"GET": list_models},
    "/models/{id*}": {"GET": get_model},
    "/chat/completions": {"POST": create_completion},
    "/responses": {"GET": connect_responses, "POST": create_in_dialect},
    "/realtime": {"GET": connect_realtime},
    "/responses/compact": {"POST": compact},
    "/responses/input_tokens": {"POST": count_input_tokens},
    "/responses/{id}": {"GET": get_response, "DELETE": delete_response},
    "/responses/{id}/cancel": {"POST": cancel_response},
    "/responses/{id}/input_items": {"GET": list_input_items},
    "/responses/{id}/submit_tool_outputs": {"POST": submit_tool_outputs},
    "/conversations": {"POST": create_conversation},
    "/conversations/{id}": {
        "GET": get_conversation,
        "POST": update_conversation,
        "DELETE": delete_conversation,
    },
    "/conversations/{id}/items": {"GET": list_items, "POST": add_items},
    "/conversations/{id}/items/{item}": {"GET": get_item, "DELETE": delete_item},
}


# What those who watch over a process ask, without a key of their own.
KEYLESS = frozenset({"/", "/health", "/healthz", "/readyz"})


def canonical_path(path: str) -> str:
    """`//v1//responses/`, `/v1/v1/responses` and `/responses` are one path: `/responses`."""
    names = [name for name in path.split("/") if name]
    while names and names[0] == "v1":  # also twice: there are clients that put it before what ends with it
        del names[0]
    return "/" + "/".join(names)


def _match(route: str, path: str) -> list[str] | None:
    """What stands in `path` for each `{...}` of `route`, or None when it is another path."""
    wanted, given = route.split("/"), path.split("/")
    if route.endswith("*}"):
        given = path.split("/", len(wanted) - 1)
    pairs = list(zip(wanted, given, strict=False))
    if len(wanted) != len(given) or any(name != part for name, part in pairs if not name.startswith("{")):
        return None
    return [part for name, part in pairs if name.startswith("{")]


def find_handler(request: web.Request, path: str) -> Awaitable[web.StreamResponse]:
    """The handler of a request's canonical `path` and its method, called. Raises `RequestError`."""
    for route, methods in ROUTES.items():
        if (parts := _match(route, path)) is None:
            continue
        request[REQUEST_LOG].reached(route)
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            raise RequestError(
                f"Not allowed to {request.method} on {request.path[:200]}.", status=405, code="method_not_supported"
            )
        return handler(request, *parts)
    raise unserved(path) or RequestError(
        f"Unknown request URL: {request.method} {request.path[:200]}. The base URL is the address of this server with "
        f"/v1 and nothing behind it. tagcall serves {', '.join('/v1' + path for path in ROUTES if path != '/')}.",
        status=404,
        code="unknown_url",
    )
