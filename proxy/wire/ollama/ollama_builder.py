"""Turn events to the lines of Ollama's answers, and to the answer as one object: one builder for both.

text, thoughts   a line each, as they come
    calls            all of an answer in one line: there are hosts that read one such line, or glue names together
done             why it ended, tokens and nanoseconds; the last line, without which the JavaScript client raises
error            in place of it
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

import orjson

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
from ...ids import MintId, mint_id
from ..builder import WireEvent
from ..passage import Passage
from .errors import error_body
from .request import OllamaRequest

# Why an answer is incomplete -> what it is called here.
CUT = {"max_output_tokens": "length"}


def timestamp(seconds: float) -> str:
    """RFC 3339, of seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class OllamaBuilder:
    """Builds one answer. `clock` tells nanoseconds."""

    def __init__(
        self, request: OllamaRequest, *, mint: MintId = mint_id, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.id = mint("chat")
        self._request = request
        self._clock = clock
        self._begun, self._answered = clock(), 0
        self._text = Passage()
        self._thoughts = Passage()
        self._calls: list[tuple[str, str, list[str]]] = []
        self._last: WireEvent = {}

    def start(self) -> list[WireEvent]:
        return []

    def pulse(self) -> list[WireEvent]:
        """There are no comments in lines of JSON: every host reads an empty text as nothing."""
        return [self._line("")]

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        """The lines of one turn event. After `TurnFinished`, `body` is final."""
        if not self._answered and not isinstance(event, (TurnFinished, TurnFailed)):
            self._answered = self._clock()
        match event:
            case AnswerText(text):
                return [self._line(self._text.add(text))]
            case AnswerMessageEnded():
                self._text.broken = True
                return []
            case Reasoning(part, text):
                return [self._line("", thinking=self._thoughts.add(text, part))] if self._request.thoughts else []
            case ReasoningItemEnded():
                self._thoughts.broken = True
                return []
            case ToolCallStarted(call_id, name):
                self._text.broken = True
                self._calls.append((call_id, name, []))
                return []
            case ToolCallArguments(text):
                self._calls[-1][2].append(text)
                return []
            case ToolCallEnded(complete):
                if not complete:
                    self._calls.pop()  # a host would run it
                return []
            case Compacted():
                return []  # asked for by the Responses API alone
            case TurnFinished(usage, incomplete):
                calls = [self._line("", calls=True)] if self._calls else []
                self._last = self._end(usage, incomplete)
                return [*calls, {**self._line(""), **self._last}]
            case TurnFailed(error):
                return [dict(error_body(error))]

    @property
    def body(self) -> WireEvent:
        whole = self._line(str(self._text), thinking=str(self._thoughts), calls=bool(self._calls))
        return {**whole, **self._last}

    def _line(self, text: str, *, thinking: str = "", calls: bool = False) -> WireEvent:
        head: WireEvent = {"model": self._request.model, "created_at": timestamp(time.time())}
        thought = {"thinking": thinking} if thinking else {}
        if not self._request.chat:
            return {**head, "response": text, **thought, "done": False}
        message: WireEvent = {"role": "assistant", "content": text, **thought}
        if calls:
            message |= {"tool_calls": [self._call(number) for number in range(len(self._calls))]}
        return {**head, "message": message, "done": False}

    def _call(self, number: int) -> WireEvent:
        """The arguments are an object, in the model's own characters: no number in it is rounded."""
        call_id, name, pieces = self._calls[number]
        # A line end between two tokens would end the line of the stream.
        written = orjson.Fragment("".join(pieces).replace("\r", " ").replace("\n", " ") or "{}")
        known = self._request.tools.client_name(name).name
        return {"id": call_id, "function": {"index": number, "name": known, "arguments": written}}

    def _end(self, usage: Usage, incomplete: str | None) -> WireEvent:
        """Hosts divide by the durations, so none is 0."""
        now = self._clock()
        answered = self._answered or now
        context: WireEvent = {} if self._request.chat else {"context": []}
        return {
            "done": True,
            "done_reason": CUT.get(incomplete, incomplete) if incomplete else "stop",
            **context,
            "total_duration": max(1, now - self._begun),
            "load_duration": 1,
            "prompt_eval_count": usage.input_tokens,
            "prompt_eval_duration": max(1, answered - self._begun),
            "eval_count": usage.output_tokens,
            "eval_duration": max(1, now - answered),
        }


def loaded(request: OllamaRequest, *, unloads: bool) -> WireEvent:
    """The answer to a request that asks nothing: the model is ready, as it always is."""
    head: WireEvent = {"model": request.model, "created_at": timestamp(time.time())}
    said: WireEvent = {"message": {"role": "assistant", "content": ""}} if request.chat else {"response": ""}
    return {**head, **said, "done": True, "done_reason": "unload" if unloads else "load"}
