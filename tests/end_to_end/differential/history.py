"""A conversation as its client knows it: what a model is to be shown of it, and how it is sent."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from prompts import summarised
from proxy.wire.responses.compaction_items import read_summary
from tests.support.shown_history import Shown, ShownCall, ShownHistory, joined, one_spelling, plain, told


@dataclass(frozen=True, slots=True, eq=False)
class User:
    parts: tuple[str, ...]
    """Texts; images as data URLs."""


@dataclass(frozen=True, slots=True, eq=False)
class Guidance:
    role: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    call_id: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Texts, and calls of (id, name, arguments). `wire` is what came, if it is sent back as it came."""

    pieces: tuple[str | tuple[str, str, str], ...]
    wire: tuple[Mapping[str, Any], ...] = ()

    @property
    def text(self) -> str:
        return "\n\n".join(piece for piece in self.pieces if isinstance(piece, str))

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        return [piece for piece in self.pieces if not isinstance(piece, str)]


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    wire: Mapping[str, Any]


Entry = User | Guidance | Result | Answer | Summary


def is_image(part: str) -> bool:
    return part.startswith("data:")


def in_call_order(history: Sequence[Entry]) -> list[Entry]:
    """`history` with the results of an answer in the order of its calls, and guidance among them behind them."""
    ordered: list[Entry] = []
    run: list[Result | Guidance] = []
    place: dict[str, int] = {}
    for entry in (*history, None):
        if isinstance(entry, Result) or (run and isinstance(entry, Guidance)):
            run.append(entry)
            continue
        results = [one for one in run if isinstance(one, Result)]
        results.sort(key=lambda result: place[result.call_id])
        ordered += results
        ordered += [one for one in run if isinstance(one, Guidance)]
        run = []
        if isinstance(entry, Answer):
            place |= {call[0]: len(place) + number for number, call in enumerate(entry.calls)}
        if entry is not None:
            ordered.append(entry)
    return ordered


def said(history: Sequence[Entry]) -> Iterator[Shown]:
    """What a model is to be shown of the conversation, guidance in its place."""
    for entry in in_call_order(history):
        match entry:
            case User(parts):
                texts: list[str] = []
                for part in (*parts, None):
                    if part is not None and not is_image(part):
                        texts.append(part)
                        continue
                    if text := plain("\n".join(texts)):
                        yield Shown("user", text)
                    texts = []
                    if part is not None:
                        yield Shown("image", part)
            case Guidance(_, text):
                yield Shown("developer", plain(text))
            case Result(call_id, text):
                yield Shown("result", plain(text), call_id)
            case Answer():
                calls = tuple(ShownCall(name, one_spelling(text), call_id) for call_id, name, text in entry.calls)
                text = told(entry.text)
                if text or calls:
                    yield Shown("assistant", text, None, calls)
            case Summary(wire):
                summary = read_summary(wire["encrypted_content"])
                yield Shown("user", plain(summarised(summary.text if summary else "")))


def expected(instructions: str, history: Sequence[Entry], *, as_messages: bool) -> ShownHistory:
    """What a request should show. `head` is only the part of it that the client wrote."""
    everything = [*said(history)]
    first = next((place for place, one in enumerate(everything) if one.kind in {"user", "image"}), len(everything))
    in_head = [one.kind == "developer" and (place < first or not as_messages) for place, one in enumerate(everything)]
    head = "\n\n".join(filter(None, [instructions, *(one.text for one in compress(everything, in_head))]))
    rest = [one for one, before in zip(everything, in_head, strict=True) if not before]
    return ShownHistory(head, tuple(joined(rest)), again=False)


def fits(seen: ShownHistory, wanted: ShownHistory) -> bool:
    """Whether a history is the one that is wanted; a call that shows an id shows that by which its client knows it."""
    head = seen.head.removeprefix(wanted.head)
    if len(head) + len(wanted.head) != len(seen.head) or not (not head or head.lstrip().startswith("# ")):
        return False
    if len(seen.said) != len(wanted.said):
        return False
    for one, other in zip(seen.said, wanted.said, strict=True):
        if len(one.calls) != len(other.calls):
            return False
        ids = [replace(known, id=shown.id and known.id) for shown, known in zip(one.calls, other.calls, strict=True)]
        if one != replace(other, calls=tuple(ids)):
            return False
    return True


def for_responses_alone(history: Sequence[Entry]) -> bool:
    """Whether there is a summary, or guidance among results, which Chat Completions refuse."""
    waiting: set[str] = set()
    for entry in history:
        match entry:
            case Answer():
                waiting = {call[0] for call in entry.calls}
            case Result(call_id):
                waiting.discard(call_id)
            case Summary():
                return True
            case _ if waiting:
                return True
            case _:
                pass
    return False


def from_compaction(item: Mapping[str, Any]) -> Entry:
    if item["type"] == "compaction":
        return Summary(item)
    content = item["content"]
    if isinstance(content, str):
        return User((content,))
    return User(tuple(part.get("text", part.get("image_url", "")) for part in content))


def responses_input(history: Sequence[Entry], draw: random.Random) -> list[Any]:
    items: list[Any] = []
    for entry in history:
        match entry:
            case User(parts):
                content = [
                    {"type": "input_image", "image_url": part} if image else {"type": "input_text", "text": part}
                    for part, image in zip(parts, map(is_image, parts), strict=True)
                ]
                items.append({"role": "user", "content": content if len(parts) > 1 else parts[0]})
            case Guidance(role, text):
                items.append({"role": role, "content": text})
            case Result(call_id, text):
                items.append({"type": "function_call_output", "call_id": call_id, "output": text})
            case Answer(pieces, wire):
                items += wire if wire and draw.random() < 0.6 else map(_respelled, pieces)
            case Summary(wire):
                items.append(wire)
    return items


def _respelled(piece: str | tuple[str, str, str]) -> dict[str, Any]:
    if isinstance(piece, str):
        return {"role": "assistant", "content": piece.rstrip() or piece}
    call_id, name, arguments = piece
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": one_spelling(arguments)}


def chat_messages(history: Sequence[Entry]) -> list[Any]:
    messages: list[Any] = []
    for entry in history:
        match entry:
            case User(parts):
                content = [
                    {"type": "image_url", "image_url": {"url": part}} if image else {"type": "text", "text": part}
                    for part, image in zip(parts, map(is_image, parts), strict=True)
                ]
                messages.append({"role": "user", "content": content if len(parts) > 1 else parts[0]})
            case Guidance(role, text):
                messages.append({"role": role, "content": text})
            case Result(call_id, text):
                messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
            case Answer():
                calls = [
                    {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                    for call_id, name, arguments in entry.calls
                ]
                message = {"role": "assistant", "content": entry.text or None}
                messages.append(message | ({"tool_calls": calls} if calls else {}))
            case Summary():
                raise AssertionError("Chat Completions know no summaries")
    return messages
