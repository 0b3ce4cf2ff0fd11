"""A prompt as the body of `POST /chat/completions`.

real    system: instructions and tools   user   assistant   user: results, and our line   ...
flat    user: all of that as one text, for templates that know no such roles, or not in this order
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
from msgspec import Struct

from prompts import Image, Item, Part, Text

from ...contracts import Prompt
from .grammar import text_and_calls

# Of our roles, those that templates know by another name.
_ROLES: Mapping[str, str] = {"developer": "system"}

_Message = dict[str, Any]


class Manner(Struct, frozen=True):
    """How a server takes requests, as far as it has said.

    `flat`: the conversation as one text. `efforts`: those that it has refused. `grammar`: it holds its model to
    one, if it is llama.cpp's. `stop`: a stop string ends the answer; servers look for it in thoughts, too.
    """

    flat: bool = False
    efforts: tuple[str, ...] = ()
    grammar: bool = True
    stop: bool = True


def chat_body(prompt: Prompt, manner: Manner, *, llama_cpp: bool = False) -> bytes:
    """The request's JSON. It always asks for a stream: whoever leaves one ends the model's work.

    `llama_cpp`: the server is llama.cpp's, which tells how far it has read the prompt, and takes a grammar.
    """
    schema = prompt.call_schema if llama_cpp and manner.grammar else None
    optional = {
        "temperature": prompt.sampling.temperature,
        "top_p": prompt.sampling.top_p,
        "seed": prompt.sampling.seed,
        "max_tokens": prompt.max_tokens,
        "stop": (prompt.stop or None) if manner.stop else None,
        "reasoning_effort": None if prompt.effort in manner.efforts else prompt.effort,
        "response_format": None if prompt.output_schema is None else _held_to(prompt.output_schema),
        "return_progress": llama_cpp or None,
        "grammar": None if schema is None else text_and_calls(schema),
    }
    return orjson.dumps(
        {
            "model": prompt.model,
            "messages": [*(_flat(prompt) if manner.flat or _ends_in_an_answer(prompt) else _real(prompt))],
            "stream": True,
            "stream_options": {"include_usage": True},
            **{name: value for name, value in optional.items() if value is not None},
        }
    )


def _ends_in_an_answer(prompt: Prompt) -> bool:
    """Some servers would go on with that answer, some begin another one, and some repeat it."""
    return bool(prompt.items) and prompt.items[-1].role == "assistant"


def _real(prompt: Prompt) -> Iterator[_Message]:
    if prompt.head:
        yield {"role": "system", "content": prompt.head}
    yield from ({"role": role, "content": _content(parts)} for role, parts in said(prompt.items))


def said(items: Iterable[Item]) -> list[tuple[str, list[Part]]]:
    """The messages that `items` are: one each, but for a line of ours, which ends the message in front of it.

    Where it stands alone a small model takes it for a question. Of results each is a message, as the border between two
    could be written into one.
    """
    messages: list[tuple[str, list[Part]]] = []
    for item in items:
        role = _ROLES.get(item.role, item.role)
        if item.ours and messages and messages[-1][0] == role:
            messages[-1][1].extend((Text("\n\n"), *item.parts))
        else:
            messages.append((role, [*item.parts]))
    return messages


def _flat(prompt: Prompt) -> Iterator[_Message]:
    head = [Text(f"{prompt.developer}\n\n")] if prompt.developer else []
    yield {"role": "user", "content": _content([*head, *prompt.parts])}


def _content(parts: Iterable[Part]) -> str | list[_Message]:
    """A string where there is only text: some servers take nothing else."""
    parts = [*parts]
    if all(isinstance(part, Text) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, Text))
    return [_part(part) for part in parts]


def _part(part: Part) -> _Message:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(url, None):
            return {"type": "image_url", "image_url": {"url": url}}
        case Image(url, detail):  # servers know low and high at least
            return {"type": "image_url", "image_url": {"url": url, "detail": "low" if detail == "low" else "high"}}


def _held_to(schema: str) -> _Message:
    # Its own text: numbers in it may be larger than what a parser keeps.
    held = {"name": "answer", "schema": orjson.Fragment(schema), "strict": True}
    return {"type": "json_schema", "json_schema": held}
