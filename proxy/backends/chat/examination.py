"""What `doctor` finds out about a Chat Completions server: by asking its first model, which it may have to load."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from ...errors import BackendError
from ..kind import Finding
from .backend import ChatBackend
from .servers import LocalServer
from .thinking import ThinkingReader

# Seconds for an answer to a question of ours.
PATIENCE = 90.0
# Tokens of context below which instructions, tools and a note leave little room.
ENOUGH = 8192
# No model says this of its own accord.
_WORD = "tagcall-7f3a"
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [_WORD]}},
    "required": ["word"],
    "additionalProperties": False,
}
_TOOL = {
    "type": "function",
    "function": {
        "name": "read_note",
        "description": "Read a note.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


async def examine_server(backend: ChatBackend, local: LocalServer | None) -> AsyncIterator[Finding]:
    """`local` is what is known of the server, if its kind is."""
    try:
        models = await backend.models()
    except BackendError:
        return  # which was said
    if not models:
        return
    model = models[0].id
    yield await _schema(backend, model)
    yield await _tools(backend, model)
    # Last: by now it is loaded.
    yield await _context(backend, model, local)


async def _ask(backend: ChatBackend, model: str, question: str, **members: object) -> Mapping[str, Any]:
    """The message that answers `question`. Raises `BackendError`."""
    messages = [{"role": "user", "content": question}]
    body = {"model": model, "messages": messages, "max_tokens": 200, "temperature": 0, **members}
    answer = await backend.look(f"{backend.url}/chat/completions", body, patience=PATIENCE)
    try:
        message = answer["choices"][0]["message"]
    except (LookupError, TypeError):
        return {}
    return message if isinstance(message, dict) else {}


async def _schema(backend: ChatBackend, model: str) -> Finding:
    held = {"type": "json_schema", "json_schema": {"name": "answer", "schema": _SCHEMA, "strict": True}}
    try:
        message = await _ask(backend, model, "Say hello.", response_format=held)
    except BackendError as error:
        return Finding("schema", None, f"{model} is not held to a JSON schema: {error.message}")
    said = _answer_of(message)
    if not said:
        # A model may think for longer than is waited.
        return Finding(
            "schema", None, f"{model} said nothing yet, so nobody knows if the server holds it to a JSON schema"
        )
    try:
        kept = orjson.loads(said) == {"word": _WORD}
    except orjson.JSONDecodeError:
        kept = False
    if kept:
        return Finding("schema", True, f"{model} is held to a JSON schema")
    return Finding("schema", None, f"{model} is not held to a JSON schema. tagcall checks its answers and asks again")


def _answer_of(message: Mapping[str, Any]) -> str:
    """What it says, without what the model thought."""
    content = message.get("content")
    reader = ThinkingReader()
    pieces = [*reader.receive_text(content if isinstance(content, str) else ""), *reader.receive_eof()]
    return "".join(piece for piece in pieces if isinstance(piece, str)).strip()


async def _tools(backend: ChatBackend, model: str) -> Finding:
    question = "What stands in a.md? Read it."
    try:
        message = await _ask(backend, model, question, tools=[_TOOL], tool_choice="required")
    except BackendError as error:
        return Finding("tools", True, f"{model} takes no tools here, and tagcall is for just that ({error.message})")
    if message.get("tool_calls"):
        return Finding("tools", None, f"this server calls tools itself: you may not need tagcall for {model}")
    return Finding("tools", True, f"the server takes tools, but made no call out of the words of {model}")


async def _context(backend: ChatBackend, model: str, local: LocalServer | None) -> Finding:
    # Some servers know it once they have loaded the model.
    tokens = next((each.context for each in await backend.models() if each.id == model), None)
    remedy = f"To give it more, {local.more_context if local else 'see how its server sets the context size'}."
    if tokens is None:
        return Finding("context", None, "the server does not tell the size of its context", remedy)
    if tokens < ENOUGH:
        return Finding("context", None, f"{tokens:,} tokens; tools and notes fill that soon", remedy)
    return Finding("context", True, f"{tokens:,} tokens")
