"""Turns turn events into the events of the Responses API and the Response object: one builder for both.

    created, in_progress
      message     added, content_part.added, output_text.delta*, .done, content_part.done, item.done
      call        added, function_call_arguments.delta+, .done, item.done
      custom call added, custom_tool_call_input.delta, .done, item.done
      tool search added, item.done (a hosted one: its call and its output, in front of the call of what it found)
      compaction  added, item.done
      reasoning   added, (summary_part.added, summary_text.delta+, .done, summary_part.done)*, item.done
    completed | incomplete | (error,) failed

At most one item is open, and every item that was added is done. Some clients read only the deltas, some only
`output_item.done`, some only the last event: each of the three tells the whole answer.
Source: OpenAI's OpenAPI document 2.3.0; docs/reference/events.md.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Mapping

from msgspec import Struct

from ...contracts import Compacted, StoredResponse, Usage
from ...errors import ApiError
from ...ids import MintId, mint_id
from ..builder import WireEvent
from ..custom_tools import unwrap_input
from ..json_body import JsonObject
from ..output import ItemStatus, ItemType, OutputBuilder, OutputItem
from .compaction_items import Summary, write_summary
from .request import ResponsesRequest
from .stored_items import ID_PREFIXES
from .tool_search import search_arguments

# Codes that the service sends besides the published ones. Clients see by them that they must compact, wait or give up.
# The service sends an `error` event with them first, and opencode looks for them nowhere else.
ACTED_ON = frozenset({"context_length_exceeded", "insufficient_quota", "server_is_overloaded"})

# The codes that a Response's own `error` may carry.
RESPONSE_ERROR_CODES = ACTED_ON | {
    "bio_policy", "data_residency_mismatch", "empty_image_file", "failed_to_download_image",
    "image_content_policy_violation", "image_file_not_found", "image_file_too_large", "image_parse_error",
    "image_too_large", "image_too_small", "invalid_base64_image", "invalid_image", "invalid_image_format",
    "invalid_image_mode", "invalid_image_url", "invalid_prompt", "rate_limit_exceeded", "server_error",
    "unsupported_image_media_type", "vector_store_timeout",
}  # fmt: skip

# Members of the items of a search that tagcall itself reports.
HOSTED_SEARCH: Mapping[str, str | None] = {"call_id": None, "execution": "server"}

# Items that are no answer: clients expect a message or a call beside them.
SILENT = frozenset({"compaction", "reasoning"})


def _text_part(text: str) -> WireEvent:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _summary_part(text: str) -> WireEvent:
    return {"type": "summary_text", "text": text}


class PartEvents(Struct, frozen=True):
    """The types of a part's events, in their order, and the members of these events."""

    added: str
    delta: str
    text_done: str
    done: str
    index: str
    """The member that counts the parts."""
    part: Callable[[str], WireEvent]
    """Makes a part of its text."""
    extra: Mapping[str, object]
    """More members of the events of its text."""


# The items that have parts, by their type.
PART_EVENTS: Mapping[ItemType, PartEvents] = {
    "message": PartEvents(
        "response.content_part.added", "response.output_text.delta", "response.output_text.done",
        "response.content_part.done", index="content_index", part=_text_part, extra={"logprobs": []},
    ),
    "reasoning": PartEvents(
        "response.reasoning_summary_part.added", "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done", "response.reasoning_summary_part.done",
        index="summary_index", part=_summary_part, extra={},
    ),
}  # fmt: skip


def _place(item: OutputItem, part: int | None = None) -> WireEvent:
    """The members that give the place of an item, or of a part of it, in the answer."""
    if part is None:
        return {"item_id": item.id, "output_index": item.index}
    return {"item_id": item.id, "output_index": item.index, PART_EVENTS[item.type].index: part}


def _item_object(item: OutputItem, status: ItemStatus, *, encrypted: bool = False) -> WireEvent:
    """The item as JSON; empty while in progress. `encrypted`: the client wants `reasoning.encrypted_content`."""
    begun = status == "in_progress"
    head: WireEvent = {"id": item.id, "type": item.type}
    called: WireEvent = {"call_id": item.call_id, "name": item.name}
    namespace: WireEvent = {} if item.namespace is None else {"namespace": item.namespace}
    match item.type:
        case "message":
            content = [] if begun else [_text_part(item.text)]
            phase: WireEvent = {} if item.phase is None else {"phase": item.phase}
            return {**head, "status": status, "role": "assistant", "content": content, **phase}
        case "function_call":
            return {**head, "status": status, "arguments": "" if begun else item.text, **called, **namespace}
        case "custom_tool_call":
            text = unwrap_input(item.text) if status == "completed" else ""
            return {**head, "status": status, **called, "input": text, **namespace}
        case "tool_search_call" if item.found is not None:
            paths: WireEvent = {} if begun else {"paths": [item.found["name"]]}
            return {**head, "status": status, **HOSTED_SEARCH, "arguments": paths}
        case "tool_search_call":
            found = {} if status != "completed" else search_arguments(item.text)
            return {**head, "status": status, "call_id": item.call_id, "execution": "client", "arguments": found}
        case "tool_search_output":
            return {**head, "status": status, **HOSTED_SEARCH, "tools": [] if begun else [item.found]}
        case "reasoning":  # without a status, as at OpenAI
            return {**head, "summary": []} if begun else {**head, **_summary(item.texts, encrypted=encrypted)}
        case "compaction":  # without a status, too
            return {**head, "encrypted_content": "" if begun else item.content}


def _summary(texts: list[str], *, encrypted: bool) -> WireEvent:
    summary: WireEvent = {"summary": [_summary_part(text) for text in texts]}
    if encrypted:
        # There is nothing to hide, but clients that asked for this member must find it. The line end is for clients
        # that take an empty member for a missing one.
        summary["encrypted_content"] = b64encode(("\n\n".join(texts) + "\n").encode()).decode()
    return summary


def response_usage(usage: Usage) -> WireEvent:
    """`usage` of a Response, in tokens."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


class ResponsesBuilder(OutputBuilder):
    """Builds one Response. Feed it `start()` and then each turn event; write what it returns."""

    def __init__(
        self,
        request: ResponsesRequest,
        *,
        mint: MintId = mint_id,
        clock: Callable[[], float] = time.time,
        begun: StoredResponse | None = None,
    ) -> None:
        """`begun`: a stored Response that is made once more, from the beginning."""
        super().__init__(mint, ID_PREFIXES, client_name=request.tools.client_name)
        self._request = request
        self._clock = clock
        self._sequence = 0
        self._found: list[JsonObject] = []
        self.id = mint("resp") if begun is None else begun.id
        self.created_at = int(clock()) if begun is None else begun.created_at
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
        """The end of a Response that only prepares the next one. It is empty, and can be continued."""
        self.response = self._snapshot("completed", Usage(), completed_at=int(self._clock()))
        return [self._event("response.completed", response=self.response)]

    def cancel(self) -> list[WireEvent]:
        """The end of a response that its client has cancelled.

        No event is published for this, so it is that of a failure. It has no error, because nothing went wrong.
        """
        events = self._close("incomplete")
        self.response = self._snapshot("cancelled")
        return [*events, self._event("response.failed", response=self.response)]

    def take_back(self) -> None:
        """The event that was built last does not leave. The next one gets its number."""
        self._sequence -= 1

    def pulse(self) -> list[WireEvent]:
        return []

    # Items

    def _compacted(self, event: Compacted) -> list[WireEvent]:
        item = self._new("compaction")
        item.content = write_summary(Summary(event.summary, event.whole))
        return [*self._add(item), *self._close("completed")]

    def _start_call(self, call_id: str, name: str) -> list[WireEvent]:
        return [*self._find(name), *super()._start_call(call_id, name)]

    def _find(self, name: str) -> list[WireEvent]:
        """The items of a hosted search, in front of the first call of a deferred tool: clients expect the search.

        The model was offered the tool from the beginning, and has not searched.
        """
        found = self._request.tools.unfound.get(name)
        if found is None or found in self._found:
            return []
        self._found.append(found)
        events: list[WireEvent] = []
        for kind in ("tool_search_call", "tool_search_output"):
            item = self._new(kind)
            item.found = found
            events += self._add(item)
        return [*events, *self._close("completed")]

    def _item_opened(self, item: OutputItem) -> list[WireEvent]:
        opened = self._item_object(item, "in_progress")
        return [self._event("response.output_item.added", output_index=item.index, item=opened)]

    def _part_opened(self, item: OutputItem, part: int) -> list[WireEvent]:
        names = PART_EVENTS[item.type]
        return [self._event(names.added, **_place(item, part), part=names.part(""))]

    def _text_grew(self, item: OutputItem, part: int, text: str) -> list[WireEvent]:
        # Written out, because it runs for each delta.
        names, number = PART_EVENTS[item.type], self._sequence
        self._sequence += 1
        return [
            {
                "type": names.delta,
                "sequence_number": number,
                "item_id": item.id,
                "output_index": item.index,
                names.index: part,
                "delta": text,
                **names.extra,
            }
        ]

    def _part_closed(self, item: OutputItem, part: int, text: str) -> list[WireEvent]:
        names, place = PART_EVENTS[item.type], _place(item, part)
        return [
            self._event(names.text_done, **place, text=text, **names.extra),
            self._event(names.done, **place, part=names.part(text)),
        ]

    def _arguments_grew(self, call: OutputItem, text: str) -> list[WireEvent]:
        if call.type != "function_call":
            return []  # the model writes the input as JSON, which can be read only when it is whole
        return [self._event("response.function_call_arguments.delta", **_place(call), delta=text)]

    def _item_closed(self, item: OutputItem) -> list[WireEvent]:
        events = self._call_events(item) if item.status == "completed" else []
        closed = self._item_object(item, item.status)
        return [*events, self._event("response.output_item.done", output_index=item.index, item=closed)]

    def _call_events(self, item: OutputItem) -> list[WireEvent]:
        """The events that say that a call is whole."""
        if item.type == "function_call":
            done = "response.function_call_arguments.done"
            return [self._event(done, **_place(item), name=item.name, arguments=item.text)]
        if item.type == "custom_tool_call":
            text = unwrap_input(item.text)
            return [
                self._event("response.custom_tool_call_input.delta", **_place(item), delta=text),
                self._event("response.custom_tool_call_input.done", **_place(item), input=text),
            ]
        return []

    def _item_object(self, item: OutputItem, status: ItemStatus) -> WireEvent:
        return _item_object(item, status, encrypted="reasoning.encrypted_content" in self._request.include)

    # Ends

    def _finished(self, usage: Usage, incomplete: str | None) -> list[WireEvent]:
        events: list[WireEvent] = []
        if not self._request.only_compacts and all(item.type in SILENT for item in self._items):
            # Clients that look for a message must find one, even if it is empty.
            item = self._new("message")
            events = [*self._add(item), *self._add_part(item)]
            events += self._close("incomplete" if incomplete else "completed")
        if incomplete:
            self.response = self._snapshot("incomplete", usage, incomplete_details={"reason": incomplete})
            return [*events, self._event("response.incomplete", response=self.response)]
        self.response = self._snapshot("completed", usage, completed_at=int(self._clock()))
        return [*events, self._event("response.completed", response=self.response)]

    def _failed(self, error: ApiError) -> list[WireEvent]:
        """`response.failed` with the error twice: the only form that every known client shows.

        The `error` event in front has the error flat, as it is published, and in an object, as the service sends it.
        """
        code = error.code if error.code in RESPONSE_ERROR_CODES else "server_error"
        self.response = self._snapshot("failed", error={"code": code, "message": error.message})
        told = error.error_object()
        flat: WireEvent = {"code": error.code, "message": error.message, "param": error.param}
        events = [self._event("error", **flat, error=told)] if error.code in ACTED_ON else []
        return [*events, self._event("response.failed", response=self.response, error=told)]

    # Events and snapshots

    def _event(self, type: str, **members: object) -> WireEvent:
        event: WireEvent = {"type": type, "sequence_number": self._sequence, **members}
        self._sequence += 1
        return event

    def _snapshot(
        self, status: str, usage: Usage | None = None, **members: Mapping[str, object] | int | None
    ) -> WireEvent:
        return {
            **self._head,
            "status": status,
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "output": [self._item_object(item, item.status) for item in self._items],
            "frequency_penalty": 0.0,
            "presence_penalty": 0.0,
            "service_tier": self._request.service_tier if usage is None else "default",
            "usage": None if usage is None else response_usage(usage),
            **self._request.echo,
            **members,
        }
