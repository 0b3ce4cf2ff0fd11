"""Items of `input` that came with an earlier request as well: each stretch of them is read once, and then looked up.

A conversation is sent whole with each request, and most of it was sent before. Only items are looked up that say the
same in every request, whatever its tools are: messages, calls outside of namespaces, their outputs, and reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

import orjson
from msgspec import Struct

from prompts import Entry, PastCall, RecentlyMade, bytes_taken

from ..content import untold_images
from ..json_body import JsonValue
from ..reader import Reader

# Items of a stretch.
STRETCH = 16
# Bytes that what was read lately may take: two or three conversations of 1,000 items.
_MOST_BYTES = 4 * 2**20
# Bytes of a digest that stands for nothing.
_NOTHING = 200


class SeenItems(Struct, frozen=True):
    """What a stretch says, and the ids by which it hangs together with what stands around it."""

    entries: tuple[Entry, ...]
    ids: frozenset[str]
    calls: Mapping[str, str]
    unanswered: Mapping[str, PastCall]
    outputs: Mapping[str, JsonValue]
    uncalled: frozenset[str]


_RECENT: RecentlyMade[SeenItems | None] = RecentlyMade(_MOST_BYTES)


def seen_items(
    stretch: Sequence[JsonValue], read: Callable[[Sequence[JsonValue]], SeenItems | None]
) -> SeenItems | None:
    """What `read` makes of a stretch, if it says the same in every request."""

    def made() -> SeenItems | None:
        return read(stretch) if all(map(_says_the_same, stretch)) else None

    return _RECENT.get(blake2b(orjson.dumps(stretch), digest_size=16).digest(), made, _size)


def _size(seen: SeenItems | None) -> int:
    return _NOTHING + (bytes_taken(seen.entries) if seen else 0)


def _says_the_same(item: JsonValue) -> bool:
    if not isinstance(item, dict):
        return False
    match item.get("type"):
        case "message" | None:
            # Of images in others' messages the client is told each time.
            return not untold_images([Reader(item)])
        case "function_call" | "custom_tool_call":
            return item.get("namespace") is None
        case "function_call_output" | "custom_tool_call_output":
            return item.get("call_id") is not None and isinstance(item.get("output"), str)
        case kind:
            return kind == "reasoning"
