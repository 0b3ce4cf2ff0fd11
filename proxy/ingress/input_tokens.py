"""POST /v1/responses/input_tokens: estimates the tokens of a request."""

from __future__ import annotations

import sys
from functools import partial

from aiohttp import web

from prompts import Image, PromptProfile

from ..contracts import TurnRequest
from ..tokens import IMAGE_TOKENS, TokenMeter
from ..turn import TurnReport
from ..turn.plan import Plan
from ..turn.prompting import Prompts
from ..wire.json_body import JsonObject
from ..wire.responses.input_items import History
from ..wire.responses.request import lookups, parse_responses_request
from .admission import owner_of
from .bodies import beside_if, json_reply, read_json_object
from .history import find_history
from .state import TURN_OPTIONS


async def count_input_tokens(request: web.Request) -> web.StreamResponse:
    """An estimate from what the model would be shown: there is no tokenizer here."""
    body = await read_json_object(request)
    history = await find_history(request, lookups(body))
    profile = request.app[TURN_OPTIONS].profile
    # Here the model may be left out, and it changes nothing.
    asked = {**body, "model": body.get("model") or "any"}
    tokens = await beside_if(True, request.app, owner_of(request), partial(_estimated, asked, history, profile))
    return json_reply({"object": "response.input_tokens", "input_tokens": tokens})


def _estimated(body: JsonObject, history: History, profile: PromptProfile) -> int:
    return estimated_tokens(parse_responses_request(body, history).turn, profile)


def estimated_tokens(turn: TurnRequest, profile: PromptProfile) -> int:
    """About how many tokens the model would be shown for `turn`."""
    prompt = Prompts(Plan.to_measure(turn, profile), TurnReport()).prompt()
    meter = TokenMeter(sys.maxsize)
    images = 0
    meter.take(prompt.developer or "")
    for part in prompt.parts:
        if isinstance(part, Image):
            images += 1
        else:
            meter.take(part.text)
    return meter.spent + images * IMAGE_TOKENS
