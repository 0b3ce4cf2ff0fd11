"""The page's own requests to the model: a turn once more, or a question that wants a tool, answered to the end.

They are answered like any client's request, and each shows as a turn of its own. Nothing is stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import ExitStack

import orjson
from aiohttp import web
from msgspec import Struct
from msgspec.structs import asdict

from ...backends import Finding
from ...errors import ApiError, RequestError
from ...ids import mint_id
from ...trial import NOTE, PATIENCE, QUESTION, TOO_LATE, TOOL, cut, failed, passed
from ...wire.json_body import JsonObject, JsonValue, parse_json_object
from ..admission import OWNER
from ..apis import turns_asked_again
from ..bodies import note_message
from ..delivery import BodySink, deliver
from ..metrics import METRICS
from ..models import MODELS
from ..request_log import RequestLog
from .inspection import INSPECTION
from .page import quiet_reply, record_of

# Who asks, as the list of turns has it.
CLIENT = "this page"


class Asked(Struct, frozen=True):
    """`turn` names its record, if it came to that. There is an `answer`, or else an `error`."""

    turn: str
    answer: Mapping[str, object] | None = None
    error: ApiError | None = None


async def _ask(request: web.Request, route: str, body: JsonObject) -> Asked:
    app = request.app
    entry = RequestLog(mint_id("req"), "POST", route, client=CLIENT, route=route)
    note_message(app, entry, body)
    status: int | None = None
    try:
        with ExitStack() as held:
            exchange = await turns_asked_again()[route](request, body, held)
            entry.answers(exchange.turn.model, exchange.builder.id, stream=False)
            await deliver(app, exchange, BodySink(), entry)
        status = 200
        return Asked(entry.id, exchange.builder.body)
    except ApiError as error:
        entry.failed_with(error)
        status = error.status
        return Asked(entry.id, error=error)
    finally:
        entry.write(status)
        app[METRICS].request(entry, status)


async def ask_again(request: web.Request, id: str) -> web.StreamResponse:
    """Asks what a turn asked, to the end of its answer; or what the page sends in its place, a body of the same API."""
    record = record_of(request, id)
    usable = turns_asked_again()
    if record.words is None or record.words.body is None or record.route not in usable:
        raise RequestError(
            f"Only a request to {' or '.join(usable)} can be asked again, and only while its words are kept.",
            status=409,
            code="turn_not_usable",
        )
    edited = await request.read()
    if not edited:
        # Other words are those of whoever looks on, who may see more than his own.
        request[OWNER] = record.words.owner
    asked = await _ask(request, record.route, parse_json_object(edited or record.words.body))
    if (again := request.app[INSPECTION].log.get(asked.turn)) is not None:
        again.repeat(record)
    return quiet_reply({"turns": [asked.turn], "problem": asked.error and asked.error.message})


async def try_tool(request: web.Request) -> web.StreamResponse:
    """One tool loop: whether the first model of the list calls a tool, and answers when it has the result."""
    model = (await request.app[MODELS].current())[0].id
    turns: list[str] = []
    try:
        async with asyncio.timeout(PATIENCE):
            finding = await _loop(request, model, turns)
    except TimeoutError:
        finding = failed(model, TOO_LATE)
    return quiet_reply({**asdict(finding), "turns": turns})


async def _loop(request: web.Request, model: str, turns: list[str]) -> Finding:
    tool: JsonObject = {"type": "function", "name": TOOL.name, "description": TOOL.description}
    tool |= {"parameters": orjson.loads(TOOL.parameters or "{}"), "strict": False}
    said: list[JsonValue] = [{"role": "user", "content": QUESTION}]
    began, read, written = time.monotonic(), 0, 0
    for choice in ("required", "auto"):
        body: JsonObject = {"model": model, "input": said, "tools": [tool], "tool_choice": choice, "stream": True}
        asked = await _ask(request, "/responses", body)
        turns.append(asked.turn)
        if (error := asked.error) is not None:
            lacks = "call a tool" if len(turns) == 1 else "go on with what the tool gave"
            return failed(model, error.fault, error.code, lacks, error.remedy)
        answer = orjson.loads(orjson.dumps(asked.answer))
        read, written = read + answer["usage"]["input_tokens"], written + answer["usage"]["output_tokens"]
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        if choice == "required" and not any(call["status"] == "completed" for call in calls):
            return cut(model, (answer["incomplete_details"] or {}).get("reason"))
        results = [{"type": "function_call_output", "call_id": call["call_id"], "output": NOTE} for call in calls]
        said = [*said, *answer["output"], *results]
    return passed(model, time.monotonic() - began, read, written)
