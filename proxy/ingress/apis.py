"""The APIs, a row each: what stands on its paths, how a turn begins there, and how it writes.

Routes, errors, the page, the recorder and the sentences of a 404 read the row; nothing else knows which APIs there are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack

from aiohttp import web
from msgspec import Struct

from ..wire.anthropic.errors import ANTHROPIC
from ..wire.chat.chat_builder import CHAT
from ..wire.json_body import JsonObject
from ..wire.ollama.errors import OLLAMA
from ..wire.tokligence.tokligence_builder import TOKLIGENCE
from ..wire.wire_format import OPENAI, WireFormat
from . import chat, messages, ollama, tokligence
from .bodies import read_json_object
from .compact import compact
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
from .delivery import Exchange, answer
from .input_tokens import count_input_tokens
from .messages import count_tokens, get_anthropic_model, list_anthropic_models
from .models import get_model, list_models
from .responses import begin_response, create_response
from .stored import cancel_response, delete_response, get_response, list_input_items
from .tokligence import create_dialect_response, submit_tool_outputs
from .websocket.realtime import connect_realtime
from .websocket.responses import connect_responses

# A handler takes the request and what stands in the path for each `{...}` of its route.
Handler = Callable[..., Awaitable[web.StreamResponse]]

# What a body asks for. What it enters is to be closed when the answer is over. Raises `RequestError`.
Begin = Callable[[web.Request, JsonObject, ExitStack], Awaitable[Exchange]]

# Path without `/v1` -> method -> handler. `{...*}`, at the end only, takes all that is left, slashes included.
Routes = Mapping[str, Mapping[str, Handler]]


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
        "/responses": {"GET": connect_responses, "POST": create_response},
        "/realtime": {"GET": connect_realtime},
        "/responses/compact": {"POST": compact},
        "/responses/input_tokens": {"POST": count_input_tokens},
        "/responses/{id}": {"GET": get_response, "DELETE": delete_response},
        "/responses/{id}/cancel": {"POST": cancel_response},
        "/responses/{id}/input_items": {"GET": list_input_items},
        "/conversations": {"POST": create_conversation},
        "/conversations/{id}": {
            "GET": get_conversation,
            "POST": update_conversation,
            "DELETE": delete_conversation,
        },
        "/conversations/{id}/items": {"GET": list_items, "POST": add_items},
        "/conversations/{id}/items/{item}": {"GET": get_item, "DELETE": delete_item},
    },
    asked_again=True,
    recorded=True,
)

# In the order in which they are asked whose a request is. The last one has whatever nobody claims.
APIS: tuple[Api, ...] = (
    Api(
        name="the dialect of tokligence-gateway",
        claims=tokligence.claims,
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
        claims=chat.claims,
        format=CHAT,
        turns={"/chat/completions": chat.begin_completion},
        routes={},
        asked_again=True,
        recorded=True,
    ),
    Api(
        name="Ollama's API",
        claims=ollama.claims,
        format=OLLAMA,
        turns={"/api/chat": ollama.begin_chat, "/api/generate": ollama.begin_generate},
        routes={
            "/api/chat": {"POST": ollama.chat},
            "/api/generate": {"POST": ollama.generate},
            "/api/tags": {"GET": ollama.list_tags},
            "/api/ps": {"GET": ollama.list_running},
            "/api/show": {"POST": ollama.show},
            "/api/version": {"GET": ollama.version},
            "/api/pull": {"POST": ollama.pull},
            "/api/create": {"POST": ollama.refused(ollama.UNMANAGED)},
            "/api/copy": {"POST": ollama.refused(ollama.UNMANAGED)},
            "/api/delete": {"DELETE": ollama.refused(ollama.UNMANAGED)},
            "/api/push": {"POST": ollama.refused(ollama.UNMANAGED)},
            "/api/embed": {"POST": ollama.refused(ollama.NO_EMBEDDINGS)},
            "/api/embeddings": {"POST": ollama.refused(ollama.NO_EMBEDDINGS)},
        },
        asked_again=True,
        recorded=False,
    ),
    Api(
        name="Anthropic's Messages",
        claims=messages.claims,
        format=ANTHROPIC,
        turns={"/messages": messages.begin_message},
        routes={
            "/messages/count_tokens": {"POST": count_tokens},
            "/models": {"GET": list_anthropic_models},
            "/models/{id*}": {"GET": get_anthropic_model},
        },
        asked_again=True,
        recorded=False,
    ),
    RESPONSES,
)


def api_of(request: web.Request, path: str) -> Api:
    """Whose a request for this canonical path is."""
    return next((api for api in APIS if api.claims(request, path)), RESPONSES)


def turns_asked_again() -> Mapping[str, Begin]:
    """How the turns begin that the page may ask once more, by their path."""
    return {path: begin for api in APIS if api.asked_again for path, begin in api.turns.items()}


def turns_recorded() -> Mapping[str, Api]:
    """Of each path whose requests can become fixtures its API."""
    return {path: api for api in APIS if api.recorded for path in api.turns}
