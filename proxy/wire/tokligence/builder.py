"""Turn events in the dialect of tokligence-gateway, for clients that ask for it.

    response.created
      message  output_item.added, content_part.added, output_text.delta*, .done, content_part.done, item.done
      call     output_item.added, (function_call_arguments.delta, tool_call.delta)+, arguments.done, item.done
    (response.required_action,) response.completed

What it has that OpenAI has not: an answer with calls ends as `incomplete`, with the calls in
`required_action`; ids are digits; `response.created` is a mere head; a ping has a sequence number and no type;
an error has a type and no sequence number, and the last event is `response.completed` whatever came before.
Source: tokligence-gateway at 126e971, `internal/httpserver/responses_stream.go`.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from ...contracts import (
    AnswerMessageEnded,
    AnswerText,
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
from ...errors import ApiError
from ...ids import MintId
from ..builder import WireEvent
from ..json_body import JsonObject, JsonValue
from ..responses.builder import usage_object

CALL_ID = re.compile(r"call_[0-9]+")


def mint_digits(prefix: str) -> str:
    """`mint_digits("fc")` is `fc_` and 19 digits, as many as a time in nanoseconds has."""
    return f"{prefix}_{secrets.randbelow(9 * 10**18) + 10**18}"


def encode_dialect(events: Iterable[Mapping[str, object]]) -> list[bytes]:
    """Events with their types, and pings, which have none. What arrived together leaves together."""
    lines = [
        b"event: %b\ndata: %b\n\n" % (str(event.get("type", "ping")).encode(), orjson.dumps(event)) for event in events
    ]
    return [b"".join(lines)] if lines else []


def _part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


@dataclass(slots=True)
class _Item:
    """A call when it has a `call_id`, else a message."""

    id: str
    index: int
    call_id: str | None = None
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def shown(self, status: str, *, begun: bool = False) -> JsonObject:
        if self.call_id is not None:
            called: JsonObject = {"call_id": self.call_id, "name": self.name, "arguments": "" if begun else self.text}
            return {"id": self.id, "type": "function_call", "status": status, **called}
        content: list[JsonValue] = [] if begun else [_part(self.text)]
        return {"id": self.id, "type": "message", "status": status, "role": "assistant", "content": content}


class TokligenceBuilder:
    """Builds one answer. `response_id` is that of the response that goes on; without one it is a new response.

    `events` are all that were made, `calls` those that wait for their outputs in the end.
    """

    def __init__(
        self,
        model: str,
        *,
        response_id: str | None = None,
        created_at: int | None = None,
        mint: MintId = mint_digits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._model = model
        self._mint = mint
        self._items: list[_Item] = []
        self._open: _Item | None = None
        self._separate = False
        self._sequence = 0
        self._end: WireEvent = {"status": "in_progress"}
        self.id = response_id or mint("resp")
        self.created_at = int(clock()) if created_at is None else created_at
        self.events: list[WireEvent] = []
        self.failed = False

    @property
    def calls(self) -> list[JsonObject]:
        return [item.shown("in_progress") for item in self._items if item.call_id is not None]

    @property
    def items(self) -> list[JsonObject]:
        """What was said, as items of the conversation that goes on, in order."""
        return [item.shown("completed") for item in self._items if item.call_id is not None or item.text]

    @property
    def required_action(self) -> WireEvent | None:
        """What the client has to do for the answer to go on."""
        calls = [
            {"id": item.call_id, "type": "function", "function": {"name": item.name, "arguments": item.text}}
            for item in self._items
            if item.call_id is not None
        ]
        return {"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": calls}} if calls else None

    @property
    def body(self) -> WireEvent:
        """The answer without a stream: one message, its calls among the content."""
        content: list[object] = [
            {"type": "tool_call", "call_id": item.call_id, "name": item.name, "arguments": item.text}
            if item.call_id is not None
            else _part(item.text)
            for item in self._items
        ]
        message = {"id": self._mint("msg"), "type": "message", "role": "assistant", "content": content}
        return {**self._snapshot(), "output": [message]}

    def start(self) -> list[WireEvent]:
        head = {"id": self.id, "object": "response", "status": "in_progress", "created_at": self.created_at}
        return [self._event("response.created", response=head)]

    def pulse(self) -> list[WireEvent]:
        self._sequence += 1
        return [{"sequence_number": self._sequence - 1}]

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        match event:
            case AnswerText(text):
                return self._text(text)
            case AnswerMessageEnded():
                self._separate = self._open is not None
                return []
            case Reasoning() | ReasoningItemEnded():
                return []
            case ToolCallStarted(call_id, name):
                known = call_id if CALL_ID.fullmatch(call_id) else self._mint("call")
                return self._add(_Item(self._mint("fc"), len(self.calls), known, name))
            case ToolCallArguments(text):
                return self._arguments(text)
            case ToolCallEnded():
                return self._close()
            case TurnFinished(usage, incomplete):
                return self._finish(usage, incomplete)
            case TurnFailed(error):
                return self._fail(error)

    # Items

    def _add(self, opened: _Item) -> list[WireEvent]:
        events = self._close()
        self._open = opened
        self._items.append(opened)
        item = opened.shown("in_progress", begun=True)
        return [*events, self._event("response.output_item.added", output_index=opened.index, item=item)]

    def _text(self, text: str) -> list[WireEvent]:
        opened = self._open
        events: list[WireEvent] = []
        if opened is None or opened.call_id is not None:
            opened = _Item(self._mint("msg"), 0)
            events = self._add(opened)
            events.append(self._part("response.content_part.added", opened, part=_part("")))
        elif self._separate:
            text = "\n\n" + text
        self._separate = False
        opened.pieces.append(text)
        events.append(self._part("response.output_text.delta", opened, delta=text, logprobs=[]))
        return events

    def _arguments(self, text: str) -> list[WireEvent]:
        call = self._open
        if call is None or call.call_id is None:
            raise TypeError("ToolCallArguments without ToolCallStarted")
        call.pieces.append(text)
        names = ("response.function_call_arguments.delta", "response.tool_call.delta")
        return [self._of(name, call, delta=text) for name in names]

    def _close(self) -> list[WireEvent]:
        opened, self._open = self._open, None
        if opened is None:
            return []
        if opened.call_id is not None:
            events = [self._of("response.function_call_arguments.done", opened, arguments=opened.text)]
        else:
            events = [
                self._part("response.output_text.done", opened, text=opened.text, logprobs=[]),
                self._part("response.content_part.done", opened, part=_part(opened.text)),
            ]
        item = opened.shown("completed")
        return [*events, self._event("response.output_item.done", output_index=opened.index, item=item)]

    # Ends

    def _finish(self, usage: Usage, incomplete: str | None) -> list[WireEvent]:
        events = self._close()
        reason = "tool_calls" if self.calls else incomplete
        self._end = {
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "usage": usage_object(usage),
        }
        snapshot = self._snapshot()
        if (action := self.required_action) is not None:
            events.append(self._event("response.required_action", response=snapshot, required_action=action))
        return [*events, self._event("response.completed", response=snapshot)]

    def _fail(self, error: ApiError) -> list[WireEvent]:
        events = self._close()
        self.failed = True
        told: WireEvent = {"type": "error", "message": error.message}
        self.events.append(told)
        self._end = {"status": "failed", "error": {"message": error.message, "code": error.code}}
        return [*events, told, self._event("response.completed", response=self._snapshot())]

    # Events and snapshots

    def _event(self, type: str, **members: object) -> WireEvent:
        event: WireEvent = {"type": type, "sequence_number": self._sequence, **members}
        self._sequence += 1
        self.events.append(event)
        return event

    def _of(self, type: str, item: _Item, **members: object) -> WireEvent:
        return self._event(type, item_id=item.id, output_index=item.index, **members)

    def _part(self, type: str, message: _Item, **members: object) -> WireEvent:
        return self._of(type, message, content_index=0, **members)

    def _snapshot(self) -> WireEvent:
        """Calls stand first: what reads this dialect looks at `output[0]`."""
        said = [item.shown("completed") for item in self._items if item.call_id is None]
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created_at,
            "model": self._model,
            "output": [*self.calls, *said],
            "reasoning": {"effort": None, "summary": None},
            "required_action": None if self.failed else self.required_action,
            "incomplete_details": None,
            **self._end,
        }
