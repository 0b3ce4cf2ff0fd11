"""POST /v1/responses/input_tokens: about how many tokens a request would take."""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web

from prompts import Image, offered_tools

from ..contracts import Prompt
from ..turn import TurnReport
from ..turn.prompting import Prompts
from ..turn.tokens import IMAGE_TOKENS, TokenMeter
from ..wire.json_body import parse_json_object
from ..wire.responses.request import lookups, parse_responses_request
from .bodies import json_reply, read_json_body
from .history import find_history
from .state import TURN_OPTIONS


async def count_input_tokens(request: web.Request) -> web.StreamResponse:
    """An estimate from what the model would be shown: there is no tokenizer here."""
    body = parse_json_object(await read_json_body(request))
    history = await find_history(request, lookups(body))
    # Here the model may be left out, and it changes nothing.
    turn = parse_responses_request({**body, "model": body.get("model") or "any"}, history).turn
    tools = offered_tools(turn.registry, turn.choice)
    prompts = Prompts(turn, tools, request.app[TURN_OPTIONS].profile, None, TurnReport())
    tokens = await asyncio.to_thread(_estimated, prompts.prompt(None, plain=False, max_tokens=None))
    return json_reply({"object": "response.input_tokens", "input_tokens": tokens})


def _estimated(prompt: Prompt) -> int:
    meter = TokenMeter(sys.maxsize)
    images = 0
    meter.take(prompt.developer or "")
    for part in prompt.parts:
        if isinstance(part, Image):
            images += 1
        else:
            meter.take(part.text)
    return meter.spent + images * IMAGE_TOKENS
