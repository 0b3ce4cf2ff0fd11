"""A scripted model behind a Chat Completions server: the same replies, in the words of such servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from aiohttp import web

from .scripted_model import Call, Completed, Cut, Failed, Incomplete, Message, Reasoning, Reply, ScriptedModel, Silent
from .scripted_model import pieces_of as pieces

_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
USAGE = {
    "prompt_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens": 20,
    "completion_tokens_details": {"reasoning_tokens": 5},
}


class ScriptedChat(ScriptedModel):
    """A `ScriptedModel` for `--backend`. What it was shown stands under `input` as well, as the other one has it."""

    path = "/v1/chat/completions"

    def __init__(self, *models: str) -> None:
        super().__init__()
        self.models = models or ("gpt-5.5",)
        self.app.router.add_get("/v1/models", self._models)

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": name} for name in self.models]})

    def _read(self, body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "input": [_item(message) for message in body["messages"]]}

    def _lines(self, reply: Reply) -> Iterator[tuple[bytes, bool]]:
        yield _chunk({"role": "assistant", "content": None}), False
        for item in reply.items:
            for delta in _deltas(item, reply.chunk):
                yield _chunk(delta), True
        match reply.end:
            case Completed():
                yield from _end("stop")
            case Incomplete(reason):
                yield from _end(_REASONS[reason])
            case Failed(code, message):
                yield _line({"error": {"code": code, "message": message}}), False
            case Cut() | Silent():
                pass


def _item(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    role = "developer" if message["role"] == "system" else message["role"]
    kinds = {"text": "input_text", "image_url": "input_image"}
    return {"type": "message", "role": role, "content": [{**part, "type": kinds[part["type"]]} for part in parts]}


def _deltas(item: Message | Reasoning | Call, chunk: int) -> Iterator[dict[str, Any]]:
    match item:
        case Message(text, deltas):
            for piece in pieces(text, chunk) if deltas else (text,):
                yield {"content": piece}
        case Reasoning(summary):
            for piece in pieces("".join(summary), chunk):
                yield {"reasoning_content": piece}
        case Call(name, arguments):
            yield {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": name, "arguments": arguments}}]}


def _end(reason: str) -> Iterator[tuple[bytes, bool]]:
    yield _chunk({}, reason), False
    yield _line({"choices": [], "usage": USAGE}), False
    yield b"data: [DONE]\n\n", False


def _chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    return _line({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def _line(event: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(event)
