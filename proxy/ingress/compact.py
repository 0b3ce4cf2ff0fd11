"""POST /v1/responses/compact: makes of a long conversation the user's messages and one summary."""

from __future__ import annotations

import time
from collections.abc import Sequence

from aiohttp import web
from msgspec.structs import replace

from ..contracts import Compacted, Compaction, TurnEvent, TurnFinished, TurnRequest, Usage, WireObject
from ..ids import mint_id
from ..wire.builder import WireEvent
from ..wire.responses.compaction_items import Summary, compaction_body, compaction_item, kept_messages
from ..wire.responses.request import lookups, parse_responses_request
from ..wire.responses.responses_builder import response_usage
from ..wire.responses.stored_items import stored_input
from .admission import owner_of
from .bodies import in_its_time, read_json_object
from .delivery import Exchange, answer
from .history import find_history


async def compact(request: web.Request) -> web.StreamResponse:
    body = await read_json_object(request)
    history = await find_history(request, lookups(body))
    # Only what says something about the conversation, and what stands in front of it: with the tools as they were the
    # backend goes on from what it holds. The summary itself has no calls and no format.
    names = (
        "model", "input", "instructions", "parallel_tool_calls", "previous_response_id", "prompt_cache_key",
        "reasoning", "service_tier", "tools",
    )  # fmt: skip
    asked = {name: body[name] for name in names if name in body}

    def read() -> tuple[TurnRequest, list[WireObject]]:
        parsed = parse_responses_request(asked, history)
        kept = kept_messages([*history.items, *stored_input(parsed.input, history.referred)])
        return replace(parsed.turn, compaction=Compaction(), streamed=False), kept

    turn, messages = await in_its_time(request, read, asked, history.items)
    exchange = Exchange(turn, owner_of(request), SummaryBuilder(messages))
    return await answer(request, exchange)


class SummaryBuilder:
    """Builds the compacted conversation: `messages`, and behind them the summary. Nothing of it is streamed."""

    def __init__(self, messages: Sequence[WireObject]) -> None:
        self.id = mint_id("resp")
        self._messages = messages
        self._summary = ""
        self._usage = Usage()

    @property
    def body(self) -> dict[str, object]:
        output = [*self._messages, compaction_item(Summary(self._summary))]
        return compaction_body(self.id, output, response_usage(self._usage), int(time.time()))

    def start(self) -> list[WireEvent]:
        return []

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        match event:
            case Compacted(summary):
                self._summary = summary
            case TurnFinished(usage):
                self._usage = usage
            case _:
                pass
        return []

    def pulse(self) -> list[WireEvent]:
        return []
