"""Turn events to the chunks of Chat Completions, and to the completion: one builder for both.

    role              the first chunk
      content         {"content": text}*
      call            {index, id, type, name}, then {index, arguments}*; one call a chunk
      function call   {name}, then {arguments}*          (for clients that send `functions`)
    finish_reason     the last choice
    usage             when it was asked for, without a choice

Ids and names stand in one chunk only: clients add up what they get. Of a failure only its error leaves,
in a chunk of its own. docs/reference/events.md.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from ...contracts import (
    AnswerMessageEnded,
    AnswerText,
    Compacted,
    Reasoning,
    ReasoningItemEnded,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    Usage,
)
from ...errors import TOO_LONG, ApiError
from ...ids import MintId, mint_id
from ..builder import WireEvent
from ..custom_tools import unwrap_input
from ..passage import Passage
from ..sse import encode_chunks
from ..wire_format import WireFormat
from .request import ChatRequest

CHAT = WireFormat(encode_chunks, joins=False)

# Why an answer is incomplete, where Chat Completions say it otherwise.
CUT = {"max_output_tokens": "length"}

# What errors say otherwise than in the Responses API, by their code.
_OWN_WORDS: Mapping[str, Mapping[str, int | str]] = {
    "context_length_exceeded": {"param": "messages"},
    "model_not_found": {"status": 404},
    "invalid_json_schema": {"param": "response_format"},
}

# OpenAI begins so here, and the code is not enough: LiteLLM, and with it aider, DSPy and Google's ADK, looks for these
# words, others for "context window".
_TOO_LONG = (
    "Input tokens exceed the configured limit: your input exceeds the context window of this model. "
    "Please reduce the length of the messages."
)


def chat_error(error: ApiError) -> ApiError:
    """`error` as Chat Completions tell it."""
    own_words = _OWN_WORDS.get(error.code or "")
    if own_words is None:
        return error
    told = copy.copy(error)
    for name, value in own_words.items():
        setattr(told, name, value)
    told.message = error.message.replace(TOO_LONG, _TOO_LONG)
    return told


def completion_usage(usage: Usage) -> WireEvent:
    """`usage` of a completion, in tokens."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


class _Call(Struct):
    id: str
    name: str
    custom: bool
    pieces: list[str] = field(default_factory=list)

    def body(self) -> WireEvent:
        """What has come so far, as it stands under `function` or `custom`."""
        text = "".join(self.pieces)
        if self.custom:
            return {"name": self.name, "input": unwrap_input(text) if text else ""}
        return {"name": self.name, "arguments": text}

    def tool_call(self) -> WireEvent:
        kind = "custom" if self.custom else "function"
        return {"id": self.id, "type": kind, kind: self.body()}


class ChatBuilder:
    """Builds one completion. With `reasoning` the model's summary leaves as `reasoning_content`."""

    def __init__(
        self,
        request: ChatRequest,
        *,
        reasoning: bool = False,
        mint: MintId = mint_id,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._request = request
        self._show_reasoning = reasoning
        self._content = Passage()
        self._reasoning = Passage()
        self._calls: list[_Call] = []
        self._finish_reason: str | None = None
        self._usage: Usage | None = None
        self.id = mint("chatcmpl").replace("_", "-", 1)
        self.created = int(clock())

    def start(self) -> list[WireEvent]:
        # Not null, also where calls are to be had: there are clients that add text to it.
        return [self._chunk({"role": "assistant", "content": "", "refusal": None})]

    def pulse(self) -> list[WireEvent]:
        """A chunk that says nothing: there are clients that take every line for JSON, so that a comment breaks them."""
        return [self._chunk({"content": ""})]

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        """The chunks of one turn event. After `TurnFinished`, `body` is final."""
        match event:
            case AnswerText(text):
                return [self._chunk({"content": self._content.add(text)})]
            case AnswerMessageEnded():
                self._content.broken = True
                return []
            case Reasoning(part, text):
                return self._reason(part, text)
            case ReasoningItemEnded():
                self._reasoning.broken = True
                return []
            case ToolCallStarted(call_id, name):
                # What comes behind it would else run into what stood in front of it.
                self._content.broken = True
                self._calls.append(_Call(call_id, name, self._request.tools.client_name(name).kind == "custom"))
                return [self._call_chunk(self._calls[-1].tool_call())]
            case ToolCallArguments(text):
                self._calls[-1].pieces.append(text)
                # A custom tool's input can be read only once its wrapping is whole.
                return [] if self._calls[-1].custom else [self._call_chunk({"function": {"arguments": text}})]
            case ToolCallEnded(complete):
                return self._end_custom(self._calls[-1]) if complete and self._calls[-1].custom else []
            case Compacted():
                return []  # asked for by the Responses API alone
            case TurnFinished(usage, incomplete):
                return self._finish(usage, incomplete)
            case TurnFailed(error):
                return [{"error": error.error_object()}]

    @property
    def body(self) -> WireEvent:
        content = str(self._content)
        message: WireEvent = {
            "role": "assistant",
            "content": None if self._calls and not content else content,
            "refusal": None,
            "annotations": [],
        }
        if self._reasoning.pieces:
            message["reasoning_content"] = str(self._reasoning)
        if self._calls and self._request.legacy:
            message["function_call"] = self._calls[0].body()
        elif self._calls:
            message["tool_calls"] = [call.tool_call() for call in self._calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish_reason}
        usage = {} if self._usage is None else {"usage": completion_usage(self._usage)}
        return {**self._head("chat.completion"), "choices": [choice], **usage}

    def _reason(self, part: int, text: str) -> list[WireEvent]:
        if not self._show_reasoning:
            return []
        return [self._chunk({"reasoning_content": self._reasoning.add(text, part)})]

    def _end_custom(self, call: _Call) -> list[WireEvent]:
        return [self._call_chunk({"custom": {"input": call.body()["input"]}})]

    def _call_chunk(self, call: WireEvent) -> WireEvent:
        if self._request.legacy:
            return self._chunk({"function_call": call["function"]})
        return self._chunk({"tool_calls": [{"index": len(self._calls) - 1, **call}]})

    def _finish(self, usage: Usage, incomplete: str | None) -> list[WireEvent]:
        self._usage = usage
        if incomplete:
            self._finish_reason = CUT.get(incomplete, incomplete)
        elif self._calls:
            self._finish_reason = "function_call" if self._request.legacy else "tool_calls"
        else:
            self._finish_reason = "stop"
        # Of an answer that says nothing the first chunk has told the empty text.
        chunks = [self._chunk({}, self._finish_reason)]
        if self._request.include_usage:
            chunks.append({**self._head("chat.completion.chunk"), "choices": [], "usage": completion_usage(usage)})
        return chunks

    def _head(self, kind: str) -> WireEvent:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self._request.model,
            "service_tier": "default",
            "system_fingerprint": None,
        }

    def _chunk(self, delta: WireEvent, finish_reason: str | None = None) -> WireEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self._request.include_usage else {}
        return {**self._head("chat.completion.chunk"), "choices": [choice], **usage}
