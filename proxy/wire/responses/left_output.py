"""The output of a Response whose process did not finish it, from the events that were sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import orjson

from ..json_body import JsonObject

# Deltas of what is shown of an item that is not whole. JSON of other calls is not: half of it is no input.
DELTAS = ("response.output_text.delta", "response.function_call_arguments.delta")


def left_output(events: Iterable[bytes]) -> list[JsonObject]:
    """The items, as the Response would have ended with them: one that was not done is incomplete, with what had come.

    `events` are as `encode_typed` writes them, a piece each. A summary of reasoning that was not done is left out.
    """
    items: dict[object, JsonObject] = {}
    texts: defaultdict[object, list[str]] = defaultdict(list)
    for piece in events:
        event: JsonObject = orjson.loads(piece.partition(b"\ndata: ")[2])
        index, item, delta = event.get("output_index"), event.get("item"), event.get("delta")
        if isinstance(item, dict):
            items[index] = item
        elif event["type"] in DELTAS and isinstance(delta, str):
            texts[index].append(delta)
    for place, begun in list(items.items()):
        if begun.get("status") == "in_progress":
            items[place] = {**begun, "status": "incomplete", **_content(begun, "".join(texts[place]))}
    return list(items.values())


def _content(item: JsonObject, text: str) -> JsonObject:
    match item["type"]:
        case "message":
            return {"content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]}
        case "function_call":
            return {"arguments": text}
        case _:
            return {}
