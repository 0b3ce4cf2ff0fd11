"""The APIs, one row each: its paths and handlers, how a turn begins there, and how it writes.

Routes, errors, the page, the recorder and the text of a 404 read the row. Nothing else knows which APIs there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from typing import Any

from aiohttp import web
from msgspec import Struct

from ..wire.anthropic.errors import ANTHROPIC
from ..wire.chat.chat_builder import CHAT
from ..wire.json_body import JsonObject
from ..wire.ollama.errors import OLLAMA
from ..wire.tokligence.tokligence_builder import TOKLIGENCE
from ..wire.wire_format import OPENAI, WireFormat
from .bodies import read_json_object
from .chat import begin_completion
from .claims import of_anthropic, of_chat, of_ollama, of_tokligence
from .delivery import Exchange, answer
from .input_tokens import count_input_tokens
from .models import get_model, list_models
from .responses import begin_response, create_response
from .stored import cancel_response, delete_response, get_response, list_input_items
from .tokligence import create_dialect_response, submit_tool_outputs

# A handler takes the request and what stands in the path for each `{...}` of its route.
Handler = Callable[..., Awaitable[web.StreamResponse]]

# What a body asks for. What it enters is to be closed when the answer is over. Raises `RequestError`.
Begin = Callable[[web.Request, JsonObject, ExitStack], Awaitable[Exchange]]

# Path without `/v1` -> method -> handler. `{...*}`, at the end only, takes all that is left, slashes included.
Routes = Mapping[str, Mapping[str, Handler]]


class Late:
    """Something of a module in this room, a handler or how a turn begins, that is loaded when it is first called.

    Few servers are asked in every API, and to have all of them ready takes each start a twentieth longer.
    """

    def __init__(self, module: str, name: str) -> None:
        self._place = f".{module}", name
        self._found: Callable[..., Awaitable[Any]] | None = None

    def load(self) -> Callable[..., Awaitable[Any]]:
        module, name = self._place
        found: Callable[..., Awaitable[Any]] = getattr(import_module(module, __package__), name)
        return found

    async def __call__(self, request: web.Request, *more: object) -> Any:  # noqa: ANN401 -- a response, or an exchange
        if self._found is None:
            self._found = await asyncio.to_thread(self.load)  # 5 to 20 ms, in which others are served
        return await self._found(request, *more)


_conversations = partial(Late, "conversations")
_messages = partial(Late, "messages")
_ollama = partial(Late, "ollama")


class Api(Struct, frozen=True, kw_only=True):
    """One API. A path that a POST to answers with a turn is in `turns`, with how that begins; the rest is in `routes`.

    A path in both is served by its route, which does more than to begin a turn.
    """

    name: str
    claims: Callable[[web.Request, str], bool]
    """Whether a request for this canonical path is one of its own, served or not."""
    format: WireFormat
    turns: Mapping[str, Begin]
    routes: Routes
    asked_again: bool
    """The page may begin its turns once more."""
    recorded: bool
    """Its turns can become fixtures."""

    def methods(self, route: str) -> Mapping[str, Handler]:
        """The handler of each method on one of its paths; none on another one's."""
        begin = self.turns.get(route)
        return {**({} if begin is None else {"POST": _answering(begin)}), **self.routes.get(route, {})}


def _answering(begin: Begin) -> Handler:
    async def create(request: web.Request) -> web.StreamResponse:
        body = await read_json_object(request)
        with ExitStack() as held:
            return await answer(request, await begin(request, body, held))

    return create


RESPONSES = Api(
    name="OpenAI's Responses API",
    claims=lambda _request, _path: True,
    format=OPENAI,
    turns={"/responses": begin_response},
    routes={
        "/models": {"GET": list_models},
        "/models/{id*}": {"GET": get_model},
        "/responses": {"GET": Late("websocket.responses", "connect_responses"), "POST": create_response},
        "/realtime": {"GET": Late("websocket.realtime", "connect_realtime")},
        "/responses/compact": {"POST": Late("compact", "compact")},
        "/responses/input_tokens": {"POST": count_input_tokens},
        "/responses/{id}": {"GET": get_response, "DELETE": delete_response},
        "/responses/{id}/cancel": {"POST": cancel_response},
        "/responses/{id}/input_items": {"GET": list_input_items},
        "/conversations": {"POST": _conversations("create_conversation")},
        "/conversations/{id}": {
            "GET": _conversations("get_conversation"),
            "POST": _conversations("update_conversation"),
            "DELETE": _conversations("delete_conversation"),
        },
        "/conversations/{id}/items": {"GET": _conversations("list_items"), "POST": _conversations("add_items")},
        "/conversations/{id}/items/{item*}": {
            "GET": _conversations("get_item"),
            "DELETE": _conversations("delete_item"),
        },
    },
    asked_again=True,
    recorded=True,
)

# In the order in which they are asked whose a request is. The last one has whatever nobody claims.
APIS: tuple[Api, ...] = (
    Api(
        name="the dialect of tokligence-gateway",
        claims=of_tokligence,
        format=TOKLIGENCE,
        turns={},
        routes={
            "/responses": {"POST": create_dialect_response},
            "/responses/{id}/submit_tool_outputs": {"POST": submit_tool_outputs},
        },
        asked_again=False,
        recorded=False,
    ),
    Api(
        name="OpenAI's Chat Completions",
        claims=of_chat,
        format=CHAT,
        turns={"/chat/completions": begin_completion},
        routes={},
        asked_again=True,
        recorded=True,
    ),
    Api(
        name="Ollama's API",
        claims=of_ollama,
        format=OLLAMA,
        turns={"/api/chat": _ollama("begin_chat"), "/api/generate": _ollama("begin_generate")},
        routes={
            "/api/chat": {"POST": _ollama("chat")},
            "/api/generate": {"POST": _ollama("generate")},
            "/api/tags": {"GET": _ollama("list_tags")},
            "/api/ps": {"GET": _ollama("list_running")},
            "/api/show": {"POST": _ollama("show")},
            "/api/version": {"GET": _ollama("version")},
            "/api/pull": {"POST": _ollama("pull")},
            "/api/create": {"POST": _ollama("refuse_to_manage")},
            "/api/copy": {"POST": _ollama("refuse_to_manage")},
            "/api/delete": {"DELETE": _ollama("refuse_to_manage")},
            "/api/push": {"POST": _ollama("refuse_to_manage")},
            "/api/embed": {"POST": _ollama("refuse_to_embed")},
            "/api/embeddings": {"POST": _ollama("refuse_to_embed")},
        },
        asked_again=True,
        recorded=False,
    ),
    Api(
        name="Anthropic's Messages",
        claims=of_anthropic,
        format=ANTHROPIC,
        turns={"/messages": _messages("begin_message")},
        routes={
            "/messages/count_tokens": {"POST": _messages("count_tokens")},
            "/models": {"GET": _messages("list_anthropic_models")},
            "/models/{id*}": {"GET": _messages("get_anthropic_model")},
        },
        asked_again=True,
        recorded=False,
    ),
    RESPONSES,
)


def api_of(request: web.Request, path: str) -> Api:
    """Whose a request for this canonical path is."""
    for api in APIS:
        if api.claims(request, path):
            return api
    return RESPONSES


def turns_asked_again() -> Mapping[str, Begin]:
    """How the turns begin that the page may ask once more, by their path."""
    return {path: begin for api in APIS if api.asked_again for path, begin in api.turns.items()}


def turns_recorded() -> Mapping[str, Api]:
    """Of each path whose requests can become fixtures its API."""
    return {path: api for api in APIS if api.recorded for path in api.turns}
