"""The grammar of Anthropic's event streams, to the letter: clients break on less.

    message_start  (content_block_start  content_block_delta*  content_block_stop)*  message_delta  message_stop

with `ping` anywhere behind the first, and `error` in place of what has not come yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# What every event has, and may have; of a block and a delta by their types.
EVENTS: Mapping[str, set[str]] = {
    "message_start": {"type", "message"},
    "content_block_start": {"type", "index", "content_block"},
    "content_block_delta": {"type", "index", "delta"},
    "content_block_stop": {"type", "index"},
    "message_delta": {"type", "delta", "usage"},
    "message_stop": {"type"},
    "ping": {"type"},
    "error": {"type", "error", "request_id"},
}
OPENED: Mapping[str, Mapping[str, Any]] = {
    "text": {"type": "text", "text": "", "citations": None},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
    "tool_use": {"type": "tool_use", "id": str, "name": str, "input": {}},
}
DELTAS: Mapping[str, Mapping[str, str]] = {
    "text": {"text_delta": "text"},
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
    "tool_use": {"input_json_delta": "partial_json"},
}
MESSAGE = {
    "id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "stop_details", "container", "usage",
}  # fmt: skip
REASONS = {"end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"}
COUNTS = {"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"}


def events_of(stream: bytes) -> list[dict[str, Any]]:
    """The events of a stream as it left: each is its name, one line of JSON and a blank line, and nothing is behind."""
    *blocks, end = stream.decode().split("\n\n")
    assert end == ""
    events = []
    for block in blocks:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def checked(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The message that `events` tell, as a client puts it together. `error` is in it, if they end in one."""
    came = [dict(event) for event in events]
    for event in came:
        assert set(event) == EVENTS[event["type"]], event
    told = [event for event in came if event["type"] != "ping"]
    assert came[0]["type"] == "message_start"
    message = dict(told[0]["message"])
    assert set(message) == MESSAGE
    assert (message["type"], message["role"], message["content"], message["stop_reason"]) == (
        "message", "assistant", [], None,
    )  # fmt: skip
    assert message["usage"].keys() >= COUNTS
    if told[-1]["type"] == "error":
        error = told[-1]["error"]
        assert set(error) == {"type", "message"}
        message["content"] = _blocks(told[1:-1], whole=False)
        return {**message, "error": error}
    *inner, delta, stop = told[1:]
    assert (delta["type"], stop["type"]) == ("message_delta", "message_stop")
    assert delta["usage"].keys() >= COUNTS
    assert delta["delta"]["stop_reason"] in REASONS
    message["content"] = _blocks(inner, whole=True)
    called = any(block["type"] == "tool_use" for block in message["content"])
    assert called or delta["delta"]["stop_reason"] != "tool_use"
    return {**message, **delta["delta"], "usage": {**message["usage"], **delta["usage"]}}


def _blocks(events: Sequence[Mapping[str, Any]], *, whole: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    texts: list[str] = []
    opened = False
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert not opened, "blocks do not overlap"
                assert event["index"] == len(blocks)
                block = dict(event["content_block"])
                form = OPENED[block["type"]]
                assert set(block) == set(form)
                assert all(
                    isinstance(block[key], str) if want is str else block[key] == want for key, want in form.items()
                )
                blocks.append(block)
                texts, opened = [], True
            case "content_block_delta":
                assert opened
                assert event["index"] == len(blocks) - 1
                delta = dict(event["delta"])
                member = DELTAS[blocks[-1]["type"]][delta.pop("type")]
                assert list(delta) == [member]
                if member == "signature":
                    blocks[-1]["signature"] += delta[member]
                else:
                    texts.append(delta[member])
            case "content_block_stop":
                assert opened
                assert event["index"] == len(blocks) - 1
                opened = False
                _close(blocks[-1], "".join(texts))
            case other:
                raise AssertionError(f"{other} among the blocks")
    assert not (whole and opened)
    return blocks[:-1] if opened and blocks[-1]["type"] == "tool_use" else blocks


def _close(block: dict[str, Any], text: str) -> None:
    if block["type"] == "tool_use":
        block["input"] = json.loads(text or "{}")
        assert isinstance(block["input"], dict)
    else:
        block[block["type"]] = text
