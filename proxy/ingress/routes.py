"""Routes: which handler serves a path and a method, and what is not served.

Paths are served with and without `/v1` or with two of them, with doubled and trailing slashes: people paste
base URLs in all of these forms.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping
from functools import lru_cache

from aiohttp import web

from ..errors import RequestError
from .apis import APIS, Api, Handler, Late
from .codex_usage import codex_usage
from .health import healthz, readyz
from .inspect.asking import ask_again, try_tool
from .inspect.page import (
    follow_turns,
    get_lines,
    get_turn,
    index,
    list_turns,
    open_session,
    page_file,
    save_turn,
    state,
)
from .state import BASE_PATH, REQUEST_LOG

# For people, and for those who watch over a process.
PAGES: dict[str, dict[str, Handler]] = {
    "/": {"GET": index},
    "/inspect/state": {"GET": state},
    "/inspect/session": {"POST": open_session},
    "/inspect/turns": {"GET": list_turns},
    "/inspect/events": {"GET": follow_turns},
    "/inspect/turns/{id}": {"GET": get_turn},
    "/inspect/turns/{id}/again": {"POST": ask_again},
    "/inspect/turns/{id}/fixture": {"GET": save_turn},
    "/inspect/turns/{id}/lines": {"GET": get_lines},
    "/inspect/trial": {"POST": try_tool},
    "/inspect/{name}": {"GET": page_file},
    "/health": {"GET": healthz},
    "/healthz": {"GET": healthz},
    "/readyz": {"GET": readyz},
    "/metrics": {"GET": Late("exposition", "metrics")},
    "/api/codex/usage": {"GET": codex_usage},
}


def _of_all(apis: Collection[Api]) -> dict[str, dict[str, Handler]]:
    """The paths of all APIs. Where two serve one, each of them serves its own requests."""
    routes: dict[str, dict[str, Handler]] = {}
    for api in apis:
        for path in (*api.turns, *api.routes):
            routes[path] = {**routes.get(path, {}), **api.methods(path)}
    return routes


# For clients.
API = _of_all(APIS)

ROUTES = {**PAGES, **API}

# The routes that are a path themselves: what is asked most is found at once.
_WHOLE = frozenset(route for route in ROUTES if "{" not in route)

# What those who watch over a process ask, without a key of their own.
KEYLESS = frozenset({"/", "/health", "/healthz", "/readyz"})

# Where a WebSocket may be opened.
SOCKETS = ("/responses", "/realtime")

# What several of the unserved have in common.
_NO_FILES = "send text and images in the conversation itself."
_NO_AUDIO = "it hears and speaks no audio: choose another provider for speech."

# What of OpenAI's API a text model cannot serve: the first name of a path without `/v1` -> what to do instead.
# It is told apart from a wrong base URL, and with a 404: what will not heal must not be tried again, as clients
# do with 5xx.
UNSERVED: Mapping[str, str] = {
    "assistants": "use POST /v1/responses.",
    "audio": _NO_AUDIO,
    "batches": "send the requests one by one.",
    "chatkit": "use POST /v1/responses.",
    "completions": "use POST /v1/chat/completions: the model is made for conversations.",
    "containers": "run code on the client's side, and offer that as a tool.",
    "decisions": "ask POST /v1/responses for JSON that fits a schema ('text.format').",
    "embeddings": "it has no embedding model: choose another provider for embeddings, for instance a local one.",
    "engines": "use GET /v1/models.",
    "evals": "there is nothing of the kind here.",
    "files": _NO_FILES,
    "fine_tuning": "its models are as they are.",
    "images": "it makes no images: choose another provider for them.",
    "live": _NO_AUDIO,
    "moderations": "choose another provider for moderation.",
    "skills": "put their text into 'instructions', and offer what they run as tools.",
    "threads": "use POST /v1/responses with 'previous_response_id'.",
    "uploads": _NO_FILES,
    "vector_stores": "search on the client's side, and offer the search as a tool.",
    "videos": "it makes no videos: choose another provider for them.",
}


# What other APIs begin with: the first name of a path without `/v1` -> whose API it is.
FOREIGN: Mapping[str, str] = {
    "complete": "Anthropic's older",
    "completion": "llama.cpp's own",
    "generate": "text-generation-inference's",
    "infill": "llama.cpp's own",
    "v1beta": "Gemini's",
    "v2": "Cohere's",
}


@lru_cache(maxsize=64)
def canonical_path(path: str, base: str = "") -> str:
    """`//v1//responses/`, `/v1/v1/responses` and `/responses` are one path: `/responses`.

    So is `base` with any of these behind it. It may be missing: there are proxies that take it off.
    """
    names = [name for name in path.split("/") if name]
    before = base.split("/")[1:]
    if names[: len(before)] == before:
        del names[: len(before)]
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


def _find(path: str) -> tuple[str, list[str]] | None:
    """The route of a canonical `path`, with what stands there for each of its `{...}`."""
    if path in _WHOLE:
        return path, []
    return next(((route, parts) for route in ROUTES if (parts := _match(route, path)) is not None), None)


class _MethodError(RequestError):
    """The answer names the methods there are, as it must (RFC 9110 section 15.5.6)."""

    def __init__(self, request: web.Request, served: Collection[str]) -> None:
        super().__init__(
            f"Not allowed to {request.method} on {request.path[:200]}.", status=405, code="method_not_supported"
        )
        self.allowed = (*served, *(["HEAD"] if "GET" in served else []), "OPTIONS")

    def headers(self) -> Mapping[str, str]:
        return {**super().headers(), "Allow": ", ".join(self.allowed)}


def call_handler(request: web.Request, api: Api, path: str) -> Awaitable[web.StreamResponse]:
    """The handler of a request's canonical `path` and its method, called; that of its `api`, if it has one.

    Raises `RequestError`.
    """
    if (found := _find(path)) is None:
        raise _not_served(request, path)
    route, parts = found
    request[REQUEST_LOG].reached(route)
    # Only who opens a WebSocket sends a key. A page with 200 would tell it nothing.
    if "Sec-WebSocket-Key" in request.headers and route not in SOCKETS:
        raise RequestError(
            f"No WebSocket is served at {request.path[:200]}: open it at /v1/responses or /v1/realtime.",
            status=404,
            code="unsupported_endpoint",
        )
    handler = {**ROUTES[route], **api.methods(route)}.get("GET" if request.method == "HEAD" else request.method)
    if handler is None:
        raise _MethodError(request, ROUTES[route])
    return handler(request, *parts)


def _not_served(request: web.Request, path: str) -> RequestError:
    # Anthropic has its batches beside its messages.
    if (name := path.replace("/messages/", "/", 1).split("/")[1]) in UNSERVED:
        return RequestError(
            f"tagcall does not serve /v1/{name}: {UNSERVED[name]}", status=404, code="unsupported_endpoint"
        )
    if (whose := FOREIGN.get(name)) is not None:
        return RequestError(
            f"This is {whose} API, which tagcall does not serve: choose OpenAI in your program, with this address: "
            f"{request.scheme}://{request.host}{request.app[BASE_PATH]}/v1",
            status=404,
            code="unsupported_endpoint",
        )
    served = ", ".join(path if path.startswith("/api/") else f"/v1{path}" for path in API)
    end = request.app[BASE_PATH] + ("" if name == "api" else "/v1")  # Ollama's clients are given no `/v1`
    return RequestError(
        f"Invalid URL ({request.method} {request.path[:200]}). The base URL is the address of this server with "
        f"{end and f'{end} and '}nothing behind it. tagcall serves {served}.",
        status=404,
    )
