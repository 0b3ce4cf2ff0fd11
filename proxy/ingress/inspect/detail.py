"""One turn with its words, as JSON. The call key is masked in every string of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson

from prompts import Image, Part

from ...contracts import Prompt, ReasoningPiece, TextPiece
from ...replay.key_placeholder import key_of
from ...turn.filters import masked
from ...wire.json_body import parse_json_object
from .record import TurnRecord
from .turn_transcript import HeardTurn, KeptWords, LeftEvents


def detail(record: TurnRecord) -> dict[str, object]:
    """The record's summary, its words where they are kept."""
    told: dict[str, object] = {**record.summary, "dropped": record.dropped}
    words = record.words
    if words is None:
        return told
    told |= {
        "message": record.error and record.error.message,
        "asked": None if words.body is None else parse_json_object(words.body),
        "answers": [_answer(turn, record.began) for turn in words.heard],
        "blocks": [{**each.row, "block": each.block} for each in record.marks],
        "left": [_left(row, record.began) for row in words.left],
        "lines": any(turn.lines for turn in words.heard),
    }
    return {name: _masked_by(value, words) for name, value in told.items()}


def holds(record: TurnRecord, searched: str) -> bool:
    """Whether the words of a turn, as far as they are kept, or its sentence have what is `searched`, in any case."""
    searched = searched.casefold()
    told = f"{record.summary['said']} {record.question}"
    if searched in told.casefold():
        return True
    if (words := record.words) is None:
        return False
    body = (words.body or b"").decode(errors="replace").casefold()
    wrote = "".join(event.text for turn in words.heard for _, event in turn.told if isinstance(event, TextPiece))
    # A body may have its letters escaped.
    return searched in body or json.dumps(searched)[1:-1] in body or searched in wrote.casefold()


def lines(words: KeptWords, began: float) -> Iterator[dict[str, object]]:
    """The JSON-RPC messages as a fixture has them: seconds, who sent it, the message."""
    for turn in words.heard:
        for line in turn.lines:
            message: dict[str, Any] = orjson.loads(line.data)
            if line.text is not None:
                message["params"]["delta"] = str(line.text)
            told = {"t": round(line.at - began, 3), "dir": "client" if line.ours else "server", "msg": message}
            yield {name: _masked_by(value, words) for name, value in told.items()}


def _masked_by(value: object, words: KeptWords) -> object:
    for key in {key for turn in words.heard if (key := key_of(turn.prompt.developer)) is not None}:
        value = _masked(value, key)
    return value


def _answer(turn: HeardTurn, began: float) -> dict[str, object]:
    """One prompt, and what the model wrote to it."""
    return {
        "at": round(turn.begun - began, 3),
        "prompt": list(_shown(turn.prompt)),
        "reasoning": "".join(event.text for _, event in turn.told if isinstance(event, ReasoningPiece)),
        "wrote": "".join(event.text for _, event in turn.told if isinstance(event, TextPiece)),
        "error": turn.error and turn.error.message,
        "seconds": round(turn.over - turn.begun, 3) if turn.over else None,
    }


def _shown(prompt: Prompt) -> Iterator[dict[str, object]]:
    if prompt.developer:
        yield {"role": "developer", "text": prompt.developer}
    for item in prompt.items:
        yield {"role": item.role, "text": "\n".join(map(_text, item.parts)), "ours": item.ours is not None}


def _text(part: Part) -> str:
    return "[an image]" if isinstance(part, Image) else part.text


def _left(row: LeftEvents, began: float) -> dict[str, object]:
    told: dict[str, object] = {"at": round(row.at - began, 3), "name": row.name, "count": row.count}
    if row.text is None:
        return told | {"text": "", "data": orjson.loads(row.data)}
    return told | {"text": str(row.text), "data": None}


def _masked(value: object, key: str) -> object:
    match value:
        case str():
            return masked(value, key)
        case list() | tuple():
            return [_masked(inner, key) for inner in value]
        case dict():
            return {masked(name, key): _masked(inner, key) for name, inner in value.items()}
        case _:
            return value
