"""POST /v1/responses/compact: a long conversation as the user's messages and one summary."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import replace

from aiohttp import web

from prompts import Text, Transcript, UserTurn, compaction_request

from ..contracts import AnswerText, TurnFailed, TurnFinished, TurnRequest, Usage
from ..errors import BackendError
from ..turn import run_turn
from ..wire.json_body import parse_json_object
from ..wire.responses.builder import response_usage
from ..wire.responses.compaction import compaction_body, compaction_item, kept_messages
from ..wire.responses.request import lookups, parse_responses_request
from ..wire.responses.stored_items import stored_input
from .history import find_history
from .metrics import METRICS
from .replies import json_reply
from .requests import read_json_body
from .state import BACKEND, MODELS, REQUEST_LOG, TURN_OPTIONS


async def compact(request: web.Request) -> web.StreamResponse:
    body = parse_json_object(await read_json_body(request))
    history = await find_history(request, lookups(body))
    # Only what says something about the conversation; the summary itself has no tools and no format.
    names = ("model", "input", "instructions", "previous_response_id", "reasoning")
    parsed = parse_responses_request({name: body[name] for name in names if name in body}, history)
    request[REQUEST_LOG].model = parsed.turn.model
    entries = (*parsed.turn.transcript.entries, UserTurn((Text(compaction_request()),)))
    turn = replace(
        parsed.turn,
        model=request.app[MODELS].behind(parsed.turn.model),
        transcript=Transcript(entries, parsed.turn.transcript.instructions),
    )
    summary, usage = await _summary(request, turn)
    messages = kept_messages([*history.items, *stored_input(parsed.input, history.referred)])
    output = [*messages, compaction_item(summary)]
    return json_reply(compaction_body(output, response_usage(usage), int(time.time())))


async def _summary(request: web.Request, turn: TurnRequest) -> tuple[str, Usage]:
    """The model's summary. Raises `BackendError`, also when it wrote nothing."""
    pieces: list[str] = []
    usage = Usage()
    report = request[REQUEST_LOG].turn
    events = run_turn(turn, request.app[BACKEND], request.app[TURN_OPTIONS], report)
    with request.app[METRICS].turn(report) as clock:
        async with aclosing(events):
            async for batch in events:
                clock.saw(batch)
                for event in batch:
                    match event:
                        case AnswerText(text):
                            pieces.append(text)
                        case TurnFinished(counted):
                            usage = counted
                        case TurnFailed(error):
                            raise error
                        case _:
                            pass
    summary = "".join(pieces).strip()
    if not summary:
        raise BackendError("The model wrote no summary.", code="summary_missing")
    return summary, usage
