"""Turn events to the events of a Realtime response, in text, and to what it adds to its conversation.

    response.created
      message  output_item.added, (item added,) content_part.added, text.delta*, text.done, content_part.done,
               (item done,) output_item.done
      call     output_item.added, (item added,) function_call_arguments.delta+, .done, (item done,) output_item.done
    response.done       completed | incomplete | failed | cancelled

What stands in brackets tells of the conversation, for a response that belongs to it; the names are those of
GA or beta. Reasoning is not told. Source: OpenAI's client 3.51, `types/realtime` and `types/beta/realtime`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
from ...ids import MintId, mint_id
from ..builder import WireEvent
from ..json_body import JsonObject
from .items import Items
from .words import Words


def usage_object(usage: Usage) -> WireEvent:
    """`usage` of a response, in tokens; none of them of audio."""
    cached = {"text_tokens": usage.cached_tokens, "audio_tokens": 0, "image_tokens": 0}
    return {
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "input_token_details": {
            "text_tokens": usage.input_tokens,
            "audio_tokens": 0,
            "image_tokens": 0,
            "cached_tokens": usage.cached_tokens,
            "cached_tokens_details": cached,
        },
        "output_token_details": {"text_tokens": usage.output_tokens, "audio_tokens": 0},
    }


@dataclass(slots=True)
class _Item:
    """The item that is growing: a call when it has a `call_id`. `over`: what comes next is another message."""

    id: str
    call_id: str | None = None
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    over: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def shown(self, status: str, words: Words) -> JsonObject:
        item: JsonObject = {"id": self.id, "object": "realtime.item", "status": status}
        begun = status != "in_progress"
        if self.call_id is not None:
            called: JsonObject = {"call_id": self.call_id, "name": self.name, "arguments": self.text if begun else ""}
            return {**item, "type": "function_call", **called}
        content: JsonObject = {"type": words.part, "text": self.text}
        return {**item, "type": "message", "role": "assistant", "content": [content] if begun else []}


class RealtimeBuilder:
    """Builds one response. `items` is the conversation that it joins, None when it joins none."""

    def __init__(self, words: Words, head: WireEvent, items: Items | None, *, mint: MintId = mint_id) -> None:
        self._words = words
        self._items = items
        self._mint = mint
        self._open: _Item | None = None
        self._output: list[WireEvent] = []
        self.id = mint("resp")
        self._head: WireEvent = {"object": "realtime.response", "id": self.id, words.modalities: ["text"], **head}
        self.response = self._snapshot("in_progress")

    @property
    def body(self) -> WireEvent:
        return self.response

    def start(self) -> list[WireEvent]:
        return [{"type": "response.created", "response": self.response}]

    def pulse(self) -> list[WireEvent]:
        """Pings keep a WebSocket alive."""
        return []

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        """The wire events of one turn event. After `TurnFinished` or `TurnFailed`, `response` is final."""
        match event:
            case AnswerText(text):
                return self._text(text)
            case AnswerMessageEnded():
                if self._open is not None:
                    self._open.over = True
                return []
            case Reasoning() | ReasoningItemEnded():
                return []
            case ToolCallStarted(call_id, name):
                return self._add(_Item(self._mint("item"), call_id, name))
            case ToolCallArguments(text):
                return self._arguments(text)
            case ToolCallEnded(complete):
                return self._close("completed" if complete else "incomplete")
            case TurnFinished(usage, incomplete):
                events = self._close("incomplete" if incomplete else "completed")
                if incomplete:
                    return [*events, self._end("incomplete", usage, reason=incomplete)]
                return [*events, self._end("completed", usage)]
            case TurnFailed(error):
                return self._fail(error)

    def cancel(self) -> list[WireEvent]:
        """Its client wants no more of it; what there is of it stays."""
        return [*self._close("incomplete"), self._end("cancelled", reason="client_cancelled")]

    # Items

    def _add(self, opened: _Item) -> list[WireEvent]:
        events = self._close("completed")
        self._open = opened
        item = opened.shown("in_progress", self._words)
        events.append(self._event("response.output_item.added", item=item))
        if self._items is not None:
            self._items.add(item)
            events.append(self._told(self._words.added, item))
        return events

    def _text(self, text: str) -> list[WireEvent]:
        opened = self._open
        events: list[WireEvent] = []
        if opened is None or opened.call_id is not None or opened.over:
            opened = _Item(self._mint("item"))
            events = self._add(opened)
            events.append(self._part("response.content_part.added", opened, part={"type": "text", "text": ""}))
        opened.pieces.append(text)
        events.append(self._part(f"{self._words.text}.delta", opened, delta=text))
        return events

    def _arguments(self, text: str) -> list[WireEvent]:
        call = self._open
        if call is None or call.call_id is None:
            raise TypeError("ToolCallArguments without ToolCallStarted")
        call.pieces.append(text)
        return [self._call("response.function_call_arguments.delta", call, delta=text)]

    def _close(self, status: str) -> list[WireEvent]:
        """Ends the open item, if there is one."""
        opened, events = self._open, list[WireEvent]()
        if opened is None:
            return events
        if opened.call_id is None:
            events.append(self._part(f"{self._words.text}.done", opened, text=opened.text))
            part = {"type": "text", "text": opened.text}
            events.append(self._part("response.content_part.done", opened, part=part))
        elif status == "completed":
            # A call that broke off must not look finished to those who wait for this.
            events.append(self._call("response.function_call_arguments.done", opened, arguments=opened.text))
        item = opened.shown(status, self._words)
        if self._items is not None:
            self._items.replace(item)
            if self._words.done is not None:
                events.append(self._told(self._words.done, item))
        events.append(self._event("response.output_item.done", item=item))
        self._output.append(dict(item))
        self._open = None
        return events

    # Ends

    def _fail(self, error: ApiError) -> list[WireEvent]:
        told = {"type": error.type, "code": error.code, "message": error.message}
        return [*self._close("incomplete"), self._end("failed", error=told)]

    def _end(self, status: str, usage: Usage | None = None, **details: object) -> WireEvent:
        self.response = self._snapshot(status, {"type": status, **details} if details else None, usage)
        return {"type": "response.done", "response": self.response}

    # Events and snapshots

    def _event(self, type: str, **members: object) -> WireEvent:
        return {"type": type, "response_id": self.id, "output_index": len(self._output), **members}

    def _call(self, type: str, call: _Item, **members: object) -> WireEvent:
        return self._event(type, item_id=call.id, call_id=call.call_id, name=call.name, **members)

    def _part(self, type: str, message: _Item, **members: object) -> WireEvent:
        return self._event(type, item_id=message.id, content_index=0, **members)

    def _told(self, type: str, item: JsonObject) -> WireEvent:
        before = None if self._items is None else self._items.before(item["id"])
        return {"type": type, "previous_item_id": before, "item": item}

    def _snapshot(self, status: str, details: WireEvent | None = None, usage: Usage | None = None) -> WireEvent:
        return {
            **self._head,
            "status": status,
            "status_details": details,
            "output": list(self._output),
            "usage": None if usage is None else usage_object(usage),
        }
