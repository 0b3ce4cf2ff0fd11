"""Routes: which handler serves a path and a method, and which of them POST /v1/responses in which dialect.

Paths are served with and without `/v1` or with two of them, with doubled and trailing slashes: people paste
base URLs in all of these forms.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from aiohttp import web

from ..errors import RequestError
from ..wire.reader import wrong_value
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
from .health import healthz, readyz
from .input_tokens import count_input_tokens
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
from .metrics import metrics
from .models import get_model, list_models
from .responses import create_response
from .state import BASE_PATH, DIALECT, REQUEST_LOG
from .stored import cancel_response, delete_response, get_response, list_input_items
from .tokligence import create_dialect_response, submit_tool_outputs
from .websocket.realtime import connect_realtime
from .websocket.responses import connect_responses

# A handler takes the request and what stands in the path for each `{...}` of its route.
Handler = Callable[..., Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class ResponsesDialect:
    """A dialect of the Responses API. `create` serves POST /v1/responses in it."""

    create: Handler
    answers: str
    """How, as the help of `--dialect` goes on."""


# The header by which a request chooses its dialect.
DIALECT_HEADER = "x-tagcall-dialect"

# As it is chosen -> the dialect; the first is the default.
DIALECTS: dict[str, ResponsesDialect] = {
    "openai": ResponsesDialect(create_response, "as OpenAI does"),
    "tokligence": ResponsesDialect(create_dialect_response, "as tokligence-gateway does"),
}


def dialect_of(request: web.Request) -> str:
    """The name that the request or else the server's owner has chosen; one of `DIALECTS` if it is good."""
    return request.headers.get(DIALECT_HEADER, request.app[DIALECT]).strip().lower()


async def create_in_dialect(request: web.Request) -> web.StreamResponse:
    """POST /v1/responses, in the dialect that was chosen."""
    name = dialect_of(request)
    if name not in DIALECTS:
        raise wrong_value(DIALECT_HEADER, name, tuple(DIALECTS))
    return await DIALECTS[name].create(request)


# Path without `/v1` -> method -> handler. `{...*}`, at the end only, takes all that is left, slashes included.
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
    "/metrics": {"GET": metrics},
}

# For clients.
API: dict[str, dict[str, Handler]] = {
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

ROUTES = {**PAGES, **API}

# The routes that are a path themselves: what is asked most is found at once.
_WHOLE = frozenset(route for route in ROUTES if "{" not in route)

# What those who watch over a process ask, without a key of their own.
KEYLESS = frozenset({"/", "/health", "/healthz", "/readyz"})

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
    "completions": "use POST /v1/chat/completions: the model is made for conversations.",
    "embeddings": "it has no embedding model: choose another provider for embeddings, for instance a local one.",
    "engines": "use GET /v1/models.",
    "evals": "there is nothing of the kind here.",
    "files": _NO_FILES,
    "fine_tuning": "its models are as they are.",
    "images": "it makes no images: choose another provider for them.",
    "moderations": "choose another provider for moderation.",
    "threads": "use POST /v1/responses with 'previous_response_id'.",
    "uploads": _NO_FILES,
    "vector_stores": "search on the client's side, and offer the search as a tool.",
    "videos": "it makes no videos: choose another provider for them.",
}


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


def call_handler(request: web.Request, path: str) -> Awaitable[web.StreamResponse]:
    """The handler of a request's canonical `path` and its method, called. Raises `RequestError`."""
    if (found := _find(path)) is None:
        raise _not_served(request, path)
    route, parts = found
    request[REQUEST_LOG].reached(route)
    handler = ROUTES[route].get("GET" if request.method == "HEAD" else request.method)
    if handler is None:
        raise _MethodError(request, ROUTES[route])
    return handler(request, *parts)


def _not_served(request: web.Request, path: str) -> RequestError:
    if (name := path.split("/")[1]) in UNSERVED:
        return RequestError(
            f"tagcall does not serve /v1/{name}: {UNSERVED[name]}", status=404, code="unsupported_endpoint"
        )
    served = ", ".join("/v1" + path for path in API)
    return RequestError(
        f"Invalid URL ({request.method} {request.path[:200]}). The base URL is the address of this server with "
        f"{request.app[BASE_PATH]}/v1 and nothing behind it. tagcall serves {served}.",
        status=404,
    )
