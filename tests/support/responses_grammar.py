"""The grammar of a streamed Response, as a checker for any list of its events.

    final = check_events(events)        # raises AssertionError; returns the last snapshot

    created, (queued,) in_progress, item*, completed | incomplete | (error,) failed
    item    added, its own events, done; one item is open at a time, `output_index` counts them
    part    added, delta*, done of its text, done of the part; only messages and reasoning have parts

The rules are OpenAI's published grammar and what real clients are seen to break on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]

# The members besides `type` and `sequence_number` (OpenAI's OpenAPI document 2.3.0).
MEMBERS: Mapping[str, frozenset[str]] = {
    f"response.{name}": frozenset(members.split())
    for name, members in {
        "created": "response",
        "queued": "response",
        "in_progress": "response",
        "output_item.added": "output_index item",
        "content_part.added": "item_id output_index content_index part",
        "output_text.delta": "item_id output_index content_index delta logprobs",
        "output_text.done": "item_id output_index content_index text logprobs",
        "content_part.done": "item_id output_index content_index part",
        "function_call_arguments.delta": "item_id output_index delta",
        "function_call_arguments.done": "item_id output_index name arguments",
        "custom_tool_call_input.delta": "item_id output_index delta",
        "custom_tool_call_input.done": "item_id output_index input",
        "reasoning_summary_part.added": "item_id output_index summary_index part",
        "reasoning_summary_text.delta": "item_id output_index summary_index delta",
        "reasoning_summary_text.done": "item_id output_index summary_index text",
        "reasoning_summary_part.done": "item_id output_index summary_index part",
        "output_item.done": "output_index item",
        "completed": "response",
        "incomplete": "response",
        "failed": "response error",
    }.items()
} | {"error": frozenset({"code", "message", "param", "error"})}

TERMINAL = ("response.completed", "response.incomplete", "response.failed")

# What may tell an error: the published event, which stands right in front of the end, and the end.
LAST_WORDS = ("error", "response.failed")

# What a snapshot may say differently from the one before.
CHANGING = frozenset({"completed_at", "error", "incomplete_details", "output", "service_tier", "status", "usage"})


@dataclass(frozen=True)
class Kind:
    """How items of a type grow: the member that fills, and the events that fill it. Without `text` it comes whole."""

    member: str
    prefix: str
    text: str | None
    part: str | None = None
    index: str | None = None
    part_type: str | None = None


KINDS = {
    "message": Kind("content", "msg_", "output_text", "content_part", "content_index", "output_text"),
    "reasoning": Kind(
        "summary", "rs_", "reasoning_summary_text", "reasoning_summary_part", "summary_index", "summary_text"
    ),
    "function_call": Kind("arguments", "fc_", "function_call_arguments"),
    "custom_tool_call": Kind("input", "ctc_", "custom_tool_call_input"),
    "compaction": Kind("encrypted_content", "cmp_", None),
    "tool_search_call": Kind("arguments", "tsc_", None),
    "tool_search_output": Kind("tools", "tso_", None),
}

# As at OpenAI.
WITHOUT_STATUS = frozenset({"compaction", "reasoning"})


@dataclass
class _Open:
    """The item that is growing. `deltas` are those of its open part, or of a call; `text` is what `.done` said."""

    added: Event
    kind: Kind
    parts: list[Any] = field(default_factory=list)
    deltas: list[str] | None = None
    text: str | None = None

    def grown(self) -> object:
        return self.parts if self.kind.part else "".join(self.deltas or [])


class _Reading:
    def __init__(self) -> None:
        self.head: Event | None = None
        self.done: list[Event] = []
        self.open: _Open | None = None
        self.ids: set[str] = set()

    def read(self, event: Event) -> None:
        name = event["type"]
        if "response" in event:
            self.snapshot(event["response"], name)
        elif name == "error":
            assert self.open is None, "an error is told within an item"
        elif name == "response.output_item.added":
            self.added(event)
        else:
            self.grow(event, name.removeprefix("response."))

    def snapshot(self, response: Event, name: str) -> None:
        head = {key: value for key, value in response.items() if key not in CHANGING}
        assert self.head is None or self.head == head, "a snapshot contradicts the one before"
        self.head = head
        if name in TERMINAL:
            assert self.open is None, "the stream ends within an item"
            assert response["output"] == self.done, "the last snapshot does not hold the items as they were done"
        else:
            assert (response["output"], response["usage"], response["error"]) == ([], None, None)

    def added(self, event: Event) -> None:
        item = event["item"]
        assert self.open is None, "an item begins within another"
        assert event["output_index"] == len(self.done)
        kind = KINDS[item["type"]]
        assert item["id"].startswith(kind.prefix)
        self.take_id(item["id"])
        assert not item[kind.member], "it begins with something in it"
        if item["type"] not in WITHOUT_STATUS:
            assert item["status"] == "in_progress"
        if item["type"] == "message":
            assert item["role"] == "assistant"
        if item.get("execution") == "server":
            assert item["call_id"] is None
        elif "call_id" in item:
            self.take_id(item["call_id"])
        if kind.part is None and kind.text is not None:
            assert item["call_id"]
            assert item["name"]
        self.open = _Open(item, kind, deltas=None if kind.part else [])

    def take_id(self, identifier: str) -> None:
        assert identifier
        assert identifier not in self.ids, f"{identifier} names two things"
        self.ids.add(identifier)

    def grow(self, event: Event, name: str) -> None:
        item = self.open
        assert item is not None, f"{name} outside of an item"
        assert event["output_index"] == len(self.done)
        if name == "output_item.done":
            self.end(item, event["item"])
            return
        assert event["item_id"] == item.added["id"]
        if item.kind.index:
            assert event[item.kind.index] == len(item.parts)
        if name == f"{item.kind.text}.delta":
            assert item.deltas is not None, "a delta outside of a part"
            assert item.text is None, "a delta after the text was done"
            item.deltas.append(event["delta"])
        elif name == f"{item.kind.text}.done":
            assert item.deltas or event.get("text") == "", "a text without a delta"
            assert item.text is None, "a text is done twice"
            item.text = "".join(item.deltas or ())
            assert item.text == event[item.kind.member if item.kind.part is None else "text"]
            assert event.get("name", item.added.get("name")) == item.added.get("name")
        elif name == f"{item.kind.part}.added":
            assert item.deltas is None, "a part begins within another"
            assert event["part"]["type"] == item.kind.part_type
            assert event["part"]["text"] == ""
            item.deltas = []
        else:
            assert name == f"{item.kind.part}.done", f"{name} within a {item.added['type']}"
            assert event["part"]["text"] == item.text
            item.parts.append(event["part"])
            item.deltas = item.text = None

    def end(self, item: _Open, done: Event) -> None:
        status = done.get("status", "completed")
        assert status in {"completed", "incomplete"}
        if item.kind.text is None:
            assert done[item.kind.member], "the item holds nothing"
        else:
            assert done[item.kind.member] == item.grown(), "the item is not what its events add up to"
        if item.kind.part:
            assert item.deltas is None, "an item ends within a part"
        elif item.kind.text is not None:
            # Those who wait for `.done` must not take a call that broke off for a whole one.
            assert (item.text is not None) == (status == "completed")
        growing = {item.kind.member, "status", "encrypted_content"}
        for key, value in item.added.items():
            assert key in growing or done[key] == value, f"{key} of an item changed"
        self.done.append(done)
        self.open = None


def _cancelled(event: Event) -> bool:
    return "response" in event and event["response"]["status"] == "cancelled"


def check_events(events: Sequence[Event]) -> dict[str, Any]:
    """Holds a whole stream to the grammar; returns its last snapshot."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    types = [event["type"] for event in events]
    for event in events:
        missing = MEMBERS[event["type"]] - event.keys() - ({"error"} if _cancelled(event) else set())
        assert not missing, f"{event['type']} lacks {missing}"
        assert not event.get("error") or event["type"] in LAST_WORDS, "clients abort at any `error` member"
    opening = ["response.created", "response.in_progress"]
    if "response.queued" in types:
        opening[1:1] = ["response.queued"]
        # One that was ended in the queue never begins.
        opening = opening[: len(types) - 1]
    assert types[: len(opening)] == opening
    assert [name for name in types if name in TERMINAL] == types[-1:]
    assert not set(opening) & set(types[len(opening) :])
    if "error" in types:
        assert tuple(types[-2:]) == LAST_WORDS, "only a failure is told twice"
        assert events[-2]["error"] == events[-1]["error"]
        assert (
            events[-2]["error"] | {key: events[-2][key] for key in ("code", "message", "param")} == events[-1]["error"]
        )
    reading = _Reading()
    for event in events:
        reading.read(event)
    final: dict[str, Any] = events[-1]["response"]
    # No published event says that a response was cancelled.
    said = {"cancelled": "failed"}.get(final["status"], final["status"])
    assert f"response.{said}" == types[-1]
    _check_end(final, events[-1])
    return final


def _check_end(final: Event, last: Event) -> None:
    match final["status"]:
        case "completed":
            assert final["completed_at"] >= final["created_at"]
            assert (final["error"], final["incomplete_details"]) == (None, None)
            assert not [item for item in final["output"] if item.get("status") == "incomplete"]
        case "incomplete":
            assert final["incomplete_details"]["reason"] in {"max_output_tokens", "content_filter"}
            assert (final["error"], final["completed_at"]) == (None, None)
        case "cancelled":
            assert not last.get("error"), "nothing went wrong"
            assert (final["error"], final["usage"], final["completed_at"]) == (None, None, None)
        case _:
            assert set(last["error"]) == {"type", "code", "message", "param"}
            assert final["error"]["message"] == last["error"]["message"]
            assert (final["usage"], final["completed_at"]) == (None, None)
    if last["type"] != "response.failed":
        usage = final["usage"]
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def without_identity(response: Event) -> dict[str, Any]:
    """A Response without what no two have in common: ids and times."""
    output = [
        {key: value for key, value in item.items() if key not in {"id", "call_id"}} for item in response["output"]
    ]
    rest = {key: value for key, value in response.items() if key not in {"id", "created_at", "completed_at"}}
    return {**rest, "output": output}
