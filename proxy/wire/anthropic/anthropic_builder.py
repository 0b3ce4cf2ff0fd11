"""Turn events to Anthropic's events, and to the message: one builder for both.

    message_start             what is asked of the model, estimated; no content yet
      content_block_start     text, thinking or a call, with nothing in it
        content_block_delta*
      content_block_stop      one block at a time, the index rising
    message_delta             why it ended, and the tokens, all of them
    message_stop
    error                     in place of the last two

Different clients read different ones of these: the usage in either place, the text of a block's start, its stop. A call
that broke off has no stop. docs/reference/messages.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from ...contracts import TurnEvent, TurnFailed, TurnFinished, Usage
from ...errors import ApiError
from ...ids import MintId, mint_id
from ..builder import WireEvent
from ..output import OutputBuilder, OutputItem
from ..passage import GAP
from .errors import error_body
from .request import MessagesRequest

# Why an answer is incomplete, as it is told here.
CUT: Mapping[str, str] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


def mint_call(prefix: str, tag: str = "") -> str:
    """An id for a call, as `mint_id` makes it."""
    return mint_id("toolu", tag)


def message_usage(usage: Usage) -> WireEvent:
    """`usage` of a message, in tokens. What was read from a cache, or written to one, is not counted twice."""
    fresh = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
    return {
        "input_tokens": max(0, fresh),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "server_tool_use": None,
    }


class MessagesBuilder(OutputBuilder):
    """Builds one message. `estimate` are the tokens of its request, as far as is known before it is asked.

    `request_id` is told with an error that ends the stream.
    """

    def __init__(
        self, request: MessagesRequest, *, estimate: int = 0, request_id: str = "", mint: MintId = mint_id
    ) -> None:
        thoughts = {"reasoning": "thinking"} if request.thoughts else {}
        prefixes = {"message": "text", "function_call": "toolu", **thoughts}
        super().__init__(mint, prefixes, client_name=request.tools.client_name, gap=GAP)
        self.id = mint("msg")
        self._model = request.model
        self._warms = request.warms
        self._request_id = request_id
        self._blocks: list[OutputItem] = []
        self._broken: list[WireEvent] = []
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None
        self._usage = Usage(estimate)

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        match event:
            case TurnFinished(usage, stop=stop):
                self._stop_sequence = stop
                return self._finished(usage, "max_output_tokens") if self._warms else super().handle(event)
            case TurnFailed():
                return super().handle(event)
            case _:
                return [] if self._warms else super().handle(event)

    def start(self) -> list[WireEvent]:
        return [{"type": "message_start", "message": self.body}]

    def pulse(self) -> list[WireEvent]:
        return [{"type": "ping"}]

    @property
    def body(self) -> WireEvent:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [_block(item) for item in self._blocks if not (item.is_call and item.status == "incomplete")],
            "stop_reason": self._stop_reason,
            "stop_sequence": self._stop_sequence,
            "stop_details": None,
            "container": None,
            # For how long something is kept in a cache is not known here.
            "usage": {**message_usage(self._usage), "cache_creation": None, "service_tier": "standard"},
        }

    def _begin(self, item: OutputItem, block: WireEvent) -> list[WireEvent]:
        self._blocks.append(item)
        return [{"type": "content_block_start", "index": len(self._blocks) - 1, "content_block": block}]

    def _delta(self, kind: str, **member: str) -> WireEvent:
        delta = {"type": kind, **member}
        return {"type": "content_block_delta", "index": len(self._blocks) - 1, "delta": delta}

    def _item_opened(self, item: OutputItem) -> list[WireEvent]:
        # Text and thoughts begin with their first part: of thoughts that say nothing there is no block.
        if not item.is_call:
            return []
        return self._begin(item, {"type": "tool_use", "id": item.call_id, "name": item.name, "input": {}})

    def _part_opened(self, item: OutputItem, part: int) -> list[WireEvent]:
        if part:
            return [self._delta("thinking_delta", thinking=GAP)]
        if item.type == "message":
            return self._begin(item, {"type": "text", "text": "", "citations": None})
        return self._begin(item, {"type": "thinking", "thinking": "", "signature": ""})

    def _text_grew(self, item: OutputItem, part: int, text: str) -> list[WireEvent]:
        if item.type == "message":
            return [self._delta("text_delta", text=text)]
        return [self._delta("thinking_delta", thinking=text)]

    def _part_closed(self, item: OutputItem, part: int, text: str) -> list[WireEvent]:
        return []

    def _arguments_grew(self, call: OutputItem, text: str) -> list[WireEvent]:
        return [self._delta("input_json_delta", partial_json=text)]

    def _item_closed(self, item: OutputItem) -> list[WireEvent]:
        if not item.parts:
            return []
        stop: WireEvent = {"type": "content_block_stop", "index": len(self._blocks) - 1}
        if item.is_call and item.status == "incomplete":
            # Its client would run it. Only an answer that ends all the same needs it closed.
            self._broken = [stop]
            return []
        signed = [self._delta("signature_delta", signature="")] if item.type == "reasoning" else []
        return [*signed, stop]

    def _finished(self, usage: Usage, incomplete: str | None) -> list[WireEvent]:
        self._usage = usage
        if incomplete:
            self._stop_reason = CUT.get(incomplete, incomplete)
        elif any(item.is_call for item in self._blocks):
            self._stop_reason = "tool_use"
        else:
            self._stop_reason = "end_turn" if self._stop_sequence is None else "stop_sequence"
        delta = {"stop_reason": self._stop_reason, "stop_sequence": self._stop_sequence, "stop_details": None}
        return [
            *self._broken,
            {"type": "message_delta", "delta": {**delta, "container": None}, "usage": message_usage(usage)},
            {"type": "message_stop"},
        ]

    def _failed(self, error: ApiError) -> list[WireEvent]:
        return [dict(error_body(error, self._request_id))]


def _block(item: OutputItem) -> WireEvent:
    """A block of the message. A call's input stays in the model's own characters: no number in it is rounded."""
    if item.is_call:
        written = orjson.Fragment(item.text or "{}")
        return {"type": "tool_use", "id": item.call_id, "name": item.name, "input": written}
    if item.type == "message":
        return {"type": "text", "text": item.text, "citations": None}
    return {"type": "thinking", "thinking": GAP.join(item.texts), "signature": ""}
