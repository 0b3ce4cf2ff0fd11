"""Turn events in the dialect of tokligence-gateway, for clients that ask for it.

    response.created
      message  output_item.added, content_part.added, output_text.delta*, .done, content_part.done, item.done
      call     output_item.added, (function_call_arguments.delta, tool_call.delta)+, arguments.done, item.done
    (response.required_action,) response.completed

It differs from OpenAI: an answer with calls ends as `incomplete`, with the calls in `required_action`; ids are digits;
`response.created` is a mere head; a ping has a sequence number and no type; an error has a type and no sequence number,
and the last event is `response.completed` whatever came before. Source: tokligence-gateway at 126e971,
`internal/httpserver/responses_stream.go`.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping

from ...contracts import Usage
from ...errors import ApiError
from ...ids import MintId
from ..builder import WireEvent
from ..json_body import JsonObject, JsonValue
from ..output import ItemStatus, OutputBuilder, OutputItem
from ..responses.responses_builder import response_usage
from ..sse import named
from ..wire_format import WireFormat

# What the dialect takes for the id of a call; what the model wrote otherwise is given one.
DIALECT_CALL_ID = re.compile(r"call_[0-9]+")


def mint_digits(prefix: str) -> str:
    """`mint_digits("fc")` is `fc_` and 19 digits, as many as a time in nanoseconds has."""
    return f"{prefix}_{secrets.randbelow(9 * 10**18) + 10**18}"


def encode_dialect(events: Iterable[Mapping[str, object]]) -> list[bytes]:
    """Events with their types, and pings, which have none. What arrived together leaves together."""
    return named((str(event.get("type", "ping")), event) for event in events)


def error_text(error: ApiError, request_id: str) -> Mapping[str, object]:
    """An error in the dialect's form: its text."""
    return {"error": error.message}


TOKLIGENCE = WireFormat(encode_dialect, error_text, impatient=True)


def _text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _item_object(item: OutputItem, status: ItemStatus, *, begun: bool = False) -> JsonObject:
    """`begun`: it holds nothing yet. Its status does not say so: a whole call is in progress too, until its output."""
    if item.is_call:
        called: JsonObject = {"call_id": item.call_id, "name": item.name, "arguments": "" if begun else item.text}
        return {"id": item.id, "type": "function_call", "status": status, **called}
    content: list[JsonValue] = [] if begun else [_text_part(item.text)]
    return {"id": item.id, "type": "message", "status": status, "role": "assistant", "content": content}


class TokligenceBuilder(OutputBuilder):
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
        super().__init__(mint, {"message": "msg", "function_call": "fc"}, gap="\n\n")
        self._model = model
        self._sequence = 0
        self._end: WireEvent = {"status": "in_progress"}
        self.id = response_id or mint("resp")
        self.created_at = int(clock()) if created_at is None else created_at
        self.events: list[WireEvent] = []

    @property
    def calls(self) -> list[JsonObject]:
        return [_item_object(item, "in_progress") for item in self._items if item.is_call]

    @property
    def items(self) -> list[JsonObject]:
        """What was said, as items of the conversation that goes on, in order."""
        return [_item_object(item, "completed") for item in self._items if item.is_call or item.text]

    @property
    def required_action(self) -> WireEvent | None:
        """What the client has to do for the answer to go on."""
        calls = [
            {"id": item.call_id, "type": "function", "function": {"name": item.name, "arguments": item.text}}
            for item in self._items
            if item.is_call
        ]
        return {"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": calls}} if calls else None

    @property
    def body(self) -> WireEvent:
        """The answer without a stream: one message, its calls among the content."""
        content: list[object] = [
            {"type": "tool_call", "call_id": item.call_id, "name": item.name, "arguments": item.text}
            if item.is_call
            else _text_part(item.text)
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

    # Items

    def _start_call(self, call_id: str, name: str) -> list[WireEvent]:
        return super()._start_call(call_id if DIALECT_CALL_ID.fullmatch(call_id) else self._mint("call"), name)

    def _item_opened(self, item: OutputItem) -> list[WireEvent]:
        opened = _item_object(item, "in_progress", begun=True)
        return [self._event("response.output_item.added", output_index=item.number or 0, item=opened)]

    def _part_opened(self, item: OutputItem, part: int) -> list[WireEvent]:
        return [self._part_event("response.content_part.added", item, part=_text_part(""))]

    def _text_grew(self, item: OutputItem, part: int, text: str) -> list[WireEvent]:
        return [self._part_event("response.output_text.delta", item, delta=text, logprobs=[])]

    def _part_closed(self, item: OutputItem, part: int, text: str) -> list[WireEvent]:
        return [
            self._part_event("response.output_text.done", item, text=text, logprobs=[]),
            self._part_event("response.content_part.done", item, part=_text_part(text)),
        ]

    def _arguments_grew(self, call: OutputItem, text: str) -> list[WireEvent]:
        names = ("response.function_call_arguments.delta", "response.tool_call.delta")
        return [self._call_event(name, call, delta=text) for name in names]

    def _item_closed(self, item: OutputItem) -> list[WireEvent]:
        """The dialect knows no item that is incomplete."""
        events: list[WireEvent] = []
        if item.is_call:
            events.append(self._call_event("response.function_call_arguments.done", item, arguments=item.text))
        closed = _item_object(item, "completed")
        return [*events, self._event("response.output_item.done", output_index=item.number or 0, item=closed)]

    # Ends

    def _finished(self, usage: Usage, incomplete: str | None) -> list[WireEvent]:
        reason = "tool_calls" if self.calls else incomplete
        self._end = {
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "usage": response_usage(usage),
        }
        snapshot, events = self._snapshot(), list[WireEvent]()
        if (action := self.required_action) is not None:
            events.append(self._event("response.required_action", response=snapshot, required_action=action))
        return [*events, self._event("response.completed", response=snapshot)]

    def _failed(self, error: ApiError) -> list[WireEvent]:
        told: WireEvent = {"type": "error", "message": error.message}
        self.events.append(told)
        self._end = {"status": "failed", "error": {"message": error.message, "code": error.code}}
        return [told, self._event("response.completed", response=self._snapshot())]

    # Events and snapshots

    def _event(self, type: str, **members: object) -> WireEvent:
        event: WireEvent = {"type": type, "sequence_number": self._sequence, **members}
        self._sequence += 1
        self.events.append(event)
        return event

    def _call_event(self, type: str, call: OutputItem, **members: object) -> WireEvent:
        return self._event(type, item_id=call.id, output_index=call.number, **members)

    def _part_event(self, type: str, message: OutputItem, **members: object) -> WireEvent:
        return self._event(type, item_id=message.id, output_index=0, content_index=0, **members)

    def _snapshot(self) -> WireEvent:
        """Calls stand first: what reads this dialect looks at `output[0]`."""
        said = [_item_object(item, "completed") for item in self._items if not item.is_call]
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created_at,
            "model": self._model,
            "output": [*self.calls, *said],
            "reasoning": {"effort": None, "summary": None},
            "required_action": None if self._end["status"] == "failed" else self.required_action,
            "incomplete_details": None,
            **self._end,
        }
