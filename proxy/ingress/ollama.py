"""Ollama's own API at `/api`: a chat, a prompt alone, and what hosts ask about models. Models are not managed here."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from itertools import count

from aiohttp import web

from ..contracts import Model
from ..errors import ApiError, RequestError
from ..ids import MintId
from ..wire.json_body import JsonObject
from ..wire.models import find_model
from ..wire.ollama.messages import call_id
from ..wire.ollama.models import VERSION, details, running, tags
from ..wire.ollama.ollama_builder import OllamaBuilder, loaded
from ..wire.ollama.request import OllamaRequest, model_name, parse_chat, parse_generate
from ..wire.reader import Reader
from .admission import owner_of
from .bodies import in_its_time, json_reply, read_json_object
from .delivery import Exchange, answer
from .event_stream import EventStream
from .models import MODELS

# In the words of Ollama, by which hosts know it.
_NOT_THERE = "pull model manifest: file does not exist"

UNMANAGED = (
    "tagcall does not make, copy, delete or upload models: it has those of its backend. Do that where the model runs."
)
NO_EMBEDDINGS = "There is no embedding model here: choose another provider for embeddings, for instance Ollama itself."


async def chat(request: web.Request) -> web.StreamResponse:
    return await _answered(request, parse_chat)


async def generate(request: web.Request) -> web.StreamResponse:
    return await _answered(request, parse_generate)


async def begin_chat(request: web.Request, body: JsonObject, _: ExitStack) -> Exchange:
    return _exchange(request, parse_chat(body))


async def begin_generate(request: web.Request, body: JsonObject, _: ExitStack) -> Exchange:
    return _exchange(request, parse_generate(body))


async def _answered(request: web.Request, parse: Callable[[JsonObject], OllamaRequest]) -> web.StreamResponse:
    body = await read_json_object(request, typed=False)  # curl -d, as Ollama's own pages have it
    parsed = await in_its_time(request, partial(parse, body), body)
    if parsed.loads:
        return json_reply(loaded(parsed, unloads=body.get("keep_alive") == 0))
    return await answer(request, _exchange(request, parsed))


def _exchange(request: web.Request, parsed: OllamaRequest) -> Exchange:
    return Exchange(
        parsed.turn, owner_of(request), OllamaBuilder(parsed), mint=_by_place(parsed.answers), map_error=_own_words
    )


def _by_place(answers: int) -> MintId:
    """Ids of calls as they will be made of their places when the conversation comes back without them."""
    calls = count()

    def mint(_prefix: str) -> str:
        return call_id(answers, next(calls))

    return mint


def _own_words(error: ApiError) -> ApiError:
    told = copy.copy(error)
    if error.code == "model_not_found":
        told.status = 404
    return told


async def _model(request: web.Request) -> tuple[Model, JsonObject]:
    """The model that the body names. Raises `RequestError`."""
    body = await read_json_object(request, typed=False)  # curl -d, as Ollama's own pages have it
    return find_model(await request.app[MODELS].current(), model_name(Reader(body))), body


async def list_tags(request: web.Request) -> web.StreamResponse:
    return json_reply(tags(await request.app[MODELS].current()))


async def list_running(request: web.Request) -> web.StreamResponse:
    return json_reply(running(await request.app[MODELS].current()))


async def show(request: web.Request) -> web.StreamResponse:
    model, _ = await _model(request)
    return json_reply(details(model))


async def version(_: web.Request) -> web.StreamResponse:
    return json_reply({"version": VERSION})


async def pull(request: web.Request) -> web.StreamResponse:
    """A model that is there is there; hosts pull what they are about to use."""
    try:
        _, body = await _model(request)
    except RequestError as error:
        raise RequestError(_NOT_THERE, status=404) if error.code == "model_not_found" else error from None
    if body.get("stream") is False:
        return json_reply({"status": "success"})
    stream = EventStream(request)
    async with stream.open():
        await stream.write(stream.format.encode([{"status": "success"}]))
        await stream.end()
    return stream.reply


def refused(sentence: str) -> Callable[..., Awaitable[web.StreamResponse]]:
    """A handler that refuses, and says what to do instead."""

    async def refuse(_: web.Request, *_parts: str) -> web.StreamResponse:
        raise RequestError(sentence, status=403, code="unsupported_endpoint")

    return refuse


refuse_to_manage = refused(UNMANAGED)
refuse_to_embed = refused(NO_EMBEDDINGS)
