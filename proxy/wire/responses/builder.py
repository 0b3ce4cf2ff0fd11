"""Turn events to the events of the Responses API, and to the Response object: one builder for both.

    created, in_progress
      message     added, content_part.added, output_text.delta*, .done, content_part.done, item.done
      call        added, function_call_arguments.delta+, .done, item.done
      custom call added, custom_tool_call_input.delta, .done, item.done
      reasoning   added, (summary_part.added, summary_text.delta+, .done, summary_part.done)*, item.done
    completed | incomplete | failed

At most one item is open; every item that was added is done. Three kinds of client exist: those that
read deltas, those that read `output_item.done` and those that read the last event. Each is whole.
Source: OpenAI's OpenAPI document 2.3.0; docs/reference/events.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

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
from .output_items import (
    CustomCall,
    FunctionCall,
    ItemStatus,
    Message,
    OutputItem,
    ReasoningItem,
    summary_part,
    text_part,
)
from .request import ResponsesRequest

# The codes a Response's own `error` may carry; strict clients check the list.
RESPONSE_ERROR_CODES = frozenset({
    "bio_policy", "data_residency_mismatch", "empty_image_file", "failed_to_download_image",
    "image_content_policy_violation", "image_file_not_found", "image_file_too_large", "image_parse_error",
    "image_too_large", "image_too_small", "invalid_base64_image", "invalid_image", "invalid_image_format",
    "invalid_image_mode", "invalid_image_url", "invalid_prompt", "rate_limit_exceeded", "server_error",
    "unsupported_image_media_type", "vector_store_timeout",
})  # fmt: skip


def usage_object(usage: Usage) -> WireEvent:
    """`usage` of a Response, in tokens. The backend does not report cache writes: always 0."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


class ResponsesBuilder:
    """Builds one Response. Feed it `start()` and then each turn event; write what it returns."""

    def __init__(
        self, request: ResponsesRequest, *, mint: MintId = mint_id, clock: Callable[[], float] = time.time
    ) -> None:
        self._request = request
        self._mint = mint
        self._clock = clock
        self._sequence = 0
        self._output: list[WireEvent] = []
        self._open: OutputItem | None = None
        self.id = mint("resp")
        self.created_at = int(clock())
        self._head: WireEvent = {"id": self.id, "object": "response", "created_at": self.created_at}
        self.response: WireEvent = self._snapshot("queued" if request.echo["background"] else "in_progress")

    @property
    def body(self) -> WireEvent:
        return self.response

    @property
    def over(self) -> bool:
        return self.response["status"] not in {"queued", "in_progress"}

    def start(self) -> list[WireEvent]:
        """The two events that open every stream. A background response is queued first; `begin` it then."""
        second = "response.queued" if self._request.echo["background"] else "response.in_progress"
        return [
            self._event("response.created", response=self.response),
            self._event(second, response=self.response),
        ]

    def begin(self) -> list[WireEvent]:
        """The work on a queued response begins."""
        self.response = self._snapshot("in_progress")
        return [self._event("response.in_progress", response=self.response)]

    def warm_up(self) -> list[WireEvent]:
        """The end of a Response that only prepares the next one: it says nothing, and can be continued."""
        self.response = self._snapshot("completed", Usage(), completed_at=int(self._clock()))
        return [self._event("response.completed", response=self.response)]

    def cancel(self) -> list[WireEvent]:
        """Its client wants no more of a response.

        The published events have none for this but a failure's; without an error, for nothing went wrong.
        """
        events = self._close("incomplete")
        self.response = self._snapshot("cancelled")
        return [*events, self._event("response.failed", response=self.response)]

    def pulse(self) -> list[WireEvent]:
        return []

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        """The wire events of one turn event. After `TurnFinished` or `TurnFailed`, `response` is final."""
        match event:
            case AnswerText(text):
                return self._text(text)
            case AnswerMessageEnded():
                # Closed by what comes next: only then is it known that the message was not cut.
                if isinstance(self._open, Message):
                    self._open.over = True
                return []
            case Reasoning(part, text):
                return self._reasoning(part, text)
            case ReasoningItemEnded():
                opened = [] if isinstance(self._open, ReasoningItem) else self._add(self._new_reasoning())
                return opened + self._close("completed")
            case ToolCallStarted(call_id, name):
                client = self._request.tools.client_name(name)
                kind, prefix = (CustomCall, "ctc") if client.custom else (FunctionCall, "fc")
                return self._add(kind(self._mint(prefix), call_id, client.name, client.namespace))
            case ToolCallArguments(text):
                return self._arguments(text)
            case ToolCallEnded(complete):
                return self._close("completed" if complete else "incomplete")
            case TurnFinished(usage, incomplete):
                return self._finish(usage, incomplete)
            case TurnFailed(error):
                return self._fail(error)

    # Items

    def _add(self, opened: OutputItem) -> list[WireEvent]:
        events = self._close("completed")
        self._open = opened
        added = opened.item("in_progress")
        events.append(self._event("response.output_item.added", output_index=self._index, item=added))
        if isinstance(opened, Message):
            events.append(self._part_event("response.content_part.added", opened, part=text_part("")))
        return events

    def _text(self, text: str) -> list[WireEvent]:
        opened = self._open
        events: list[WireEvent] = []
        if not isinstance(opened, Message) or opened.over:
            opened = Message(self._mint("msg"))
            events = self._add(opened)
        opened.pieces.append(text)
        events.append(self._part_event("response.output_text.delta", opened, delta=text, logprobs=[]))
        return events

    def _arguments(self, text: str) -> list[WireEvent]:
        call = self._open
        if not isinstance(call, FunctionCall | CustomCall):
            raise TypeError("ToolCallArguments without ToolCallStarted")
        call.pieces.append(text)
        if isinstance(call, CustomCall):
            return []
        return [self._item_event("response.function_call_arguments.delta", call, delta=text)]

    def _reasoning(self, part: int, text: str) -> list[WireEvent]:
        opened = self._open
        events: list[WireEvent] = []
        if not isinstance(opened, ReasoningItem):
            opened = self._new_reasoning()
            events = self._add(opened)
        while len(opened.parts) <= part:
            if opened.parts:
                events += self._end_summary_part(opened)
            opened.parts.append([])
            events.append(self._summary_event("response.reasoning_summary_part.added", opened, part=summary_part("")))
        opened.parts[-1].append(text)
        events.append(self._summary_event("response.reasoning_summary_text.delta", opened, delta=text))
        return events

    def _new_reasoning(self) -> ReasoningItem:
        return ReasoningItem(self._mint("rs"), "reasoning.encrypted_content" in self._request.include)

    def _end_summary_part(self, opened: ReasoningItem) -> list[WireEvent]:
        text = "".join(opened.parts[-1])
        return [
            self._summary_event("response.reasoning_summary_text.done", opened, text=text),
            self._summary_event("response.reasoning_summary_part.done", opened, part=summary_part(text)),
        ]

    def _close(self, status: ItemStatus) -> list[WireEvent]:
        """Ends the open item, if there is one."""
        opened, events = self._open, list[WireEvent]()
        match opened:
            case None:
                return events
            case Message():
                text = "".join(opened.pieces)
                events.append(self._part_event("response.output_text.done", opened, text=text, logprobs=[]))
                events.append(self._part_event("response.content_part.done", opened, part=text_part(text)))
            case FunctionCall() if status == "completed":
                arguments = "".join(opened.pieces)
                done = "response.function_call_arguments.done"
                events.append(self._item_event(done, opened, name=opened.name, arguments=arguments))
            case CustomCall() if status == "completed":
                events.append(self._item_event("response.custom_tool_call_input.delta", opened, delta=opened.input))
                events.append(self._item_event("response.custom_tool_call_input.done", opened, input=opened.input))
            case FunctionCall() | CustomCall():
                pass  # a call that broke off must not look finished to those who wait for `.done`
            case ReasoningItem():
                if opened.parts:
                    events += self._end_summary_part(opened)
        item = opened.item(status)
        events.append(self._event("response.output_item.done", output_index=self._index, item=item))
        self._output.append(item)
        self._open = None
        return events

    # Ends

    def _finish(self, usage: Usage, incomplete: str | None) -> list[WireEvent]:
        events = self._close("incomplete" if incomplete else "completed")
        if all(item["type"] == "reasoning" for item in self._output):
            # Clients that look for the answer's message must find one, be it empty.
            events += self._text("")
            events += self._close("incomplete" if incomplete else "completed")
        if incomplete:
            self.response = self._snapshot("incomplete", usage, incomplete_details={"reason": incomplete})
            return [*events, self._event("response.incomplete", response=self.response)]
        self.response = self._snapshot("completed", usage, completed_at=int(self._clock()))
        return [*events, self._event("response.completed", response=self.response)]

    def _fail(self, error: ApiError) -> list[WireEvent]:
        """`response.failed` with the error twice: the one form that every known client shows."""
        events = self._close("incomplete")
        code = error.code if error.code in RESPONSE_ERROR_CODES else "server_error"
        self.response = self._snapshot("failed", error={"code": code, "message": error.message})
        return [*events, self._event("response.failed", response=self.response, error=error.error_object())]

    # Events and snapshots

    @property
    def _index(self) -> int:
        return len(self._output)

    def _event(self, type: str, **members: object) -> WireEvent:
        event: WireEvent = {"type": type, "sequence_number": self._sequence, **members}
        self._sequence += 1
        return event

    def _item_event(self, type: str, item: OutputItem, **members: object) -> WireEvent:
        return self._event(type, item_id=item.id, output_index=self._index, **members)

    def _part_event(self, type: str, message: Message, **members: object) -> WireEvent:
        return self._item_event(type, message, content_index=0, **members)

    def _summary_event(self, type: str, item: ReasoningItem, **members: object) -> WireEvent:
        return self._item_event(type, item, summary_index=len(item.parts) - 1, **members)

    def _snapshot(
        self, status: str, usage: Usage | None = None, **members: Mapping[str, object] | int | None
    ) -> WireEvent:
        return {
            **self._head,
            "status": status,
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "output": list(self._output),
            "frequency_penalty": 0.0,
            "presence_penalty": 0.0,
            "service_tier": self._request.service_tier if usage is None else "default",
            "usage": None if usage is None else usage_object(usage),
            **self._request.echo,
            **members,
        }
