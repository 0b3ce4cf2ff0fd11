"""A turn as whole texts for people: what the model was shown, and what it wrote.

    [user]
    What did I plant?

    [assistant]
    I will look.
    <tool_call>{"name": "search_notes", "arguments": {"query": "plant"}}</tool_call>

It is made from the lines of a `backend.jsonl` alone, without times, and with a number for each id that tagcall made. So
two recordings in which the same was said have equal transcripts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

# An id that tagcall made, where it stands in a text: `[tool:call_8c1...]`.
_ID = re.compile(r"(?<![0-9A-Za-z])([a-z]{1,16})_[0-9a-f]{32}(?![0-9A-Za-z])")

_Pieces = dict[str, list[str]]


def transcript(messages: Iterable[object]) -> str:
    """The messages of both sides in order, as they stand in the lines of a `backend.jsonl`."""
    pieces: _Pieces = {}
    text = "\n".join(f"[{by}]\n{said}\n" for message in messages for by, said in _said(message, pieces))
    names: dict[str, str] = {}
    counts = Counter[str]()
    for found in _ID.finditer(text):
        if found[0] not in names:
            counts[found[1]] += 1
            names[found[0]] = f"{found[1]}_{counts[found[1]]}"
    return _ID.sub(lambda found: names[found[0]], text)


def _said(message: object, pieces: _Pieces) -> Iterator[tuple[str, str]]:
    """Who says what with one message. `pieces` are those of items that are not whole yet, by id."""
    match message:
        case {"method": "thread/inject_items", "params": {"items": list(items)}}:
            for held in items:
                yield from _held(held)
        case {"method": "turn/start", "params": {"input": list(parts)}}:
            yield "user", _text(parts)
        case {
            "method": "item/agentMessage/delta" | "item/reasoning/summaryTextDelta",
            "params": {"itemId": str(item_id), "delta": str(delta)},
        }:
            pieces.setdefault(item_id, []).append(delta)
        case {"method": "item/completed", "params": {"item": {"type": "agentMessage", "id": str(item_id), **item}}}:
            yield "assistant", str(item.get("text") or "".join(pieces.get(item_id, [])))
            pieces.pop(item_id, None)
        case {"method": "item/completed", "params": {"item": {"type": "reasoning", "id": str(item_id), **item}}}:
            pieces.pop(item_id, None)
            if summary := item.get("summary"):
                yield "reasoning", "\n\n".join(map(str, summary if isinstance(summary, list) else [summary]))
        case {"method": "error", "params": {"willRetry": True}}:
            yield from _broken_off(pieces)
        case {"method": "turn/completed", "params": {"turn": {"status": str(status), **turn}}}:
            yield from _broken_off(pieces)
            if status != "completed":
                yield status, _reason(turn.get("error"))
        case _:
            pass


def _held(item: object) -> Iterator[tuple[str, str]]:
    match item:
        case {"type": "message", "role": str(role), "content": list(parts)}:
            yield role, _text(parts)
        case _:
            pass


def _reason(error: object) -> str:
    match error:
        case {"message": str(text)}:
            return text
        case _:
            return ""


def _broken_off(pieces: _Pieces) -> Iterator[tuple[str, str]]:
    for begun in pieces.values():
        yield "broken off", "".join(begun)
    pieces.clear()


def _text(parts: Iterable[object]) -> str:
    return "\n".join(_part(part) for part in parts)


def _part(part: object) -> str:
    match part:
        case {"text": str(text)}:
            return text
        case _:
            return "[an image]"
