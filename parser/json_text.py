"""JSON text as text: the members of an object as they were written, strings decoded piece by piece."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from .json_scan import after_space

_SURROGATE = re.compile("[\ud800-\udfff]")
_MAY_BE_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def decode_string(inner: str) -> str:
    """The text of a JSON string, given what stands between its quotes, which must be well-formed.

    A lone surrogate stays the escape it was: as a character it could not be encoded again.
    """
    if "\\" not in inner:
        return inner
    text: str = json.loads(f'"{inner}"')
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


class _Verbatim(str):
    """A number, kept as text: it may be longer than any int."""

    __slots__ = ()


def _distinct(pairs: list[tuple[str, object]]) -> list[tuple[str, object]]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice")
    return pairs


_DECODER, _DISTINCT, _PAIRS = (
    json.JSONDecoder(parse_int=_Verbatim, parse_float=_Verbatim, object_pairs_hook=hook)
    for hook in (None, _distinct, tuple)
)


def ambiguity(text: str) -> str | None:
    """What in well-formed JSON text is read differently by different readers; None if nothing is.

    Of a key that stands twice some take the first value, others the last. Half a character is refused by some, and made
    a question mark, or nothing, by others (RFC 8259, sections 4 and 8.2).
    """
    # Most texts have no escape of that kind, and a member alone cannot stand twice.
    may_be_half = _MAY_BE_HALF.search(text)
    if not may_be_half and text.count(":") < 2:
        return None
    try:
        value = _DISTINCT.decode(text)
    except ValueError as error:
        return str(error)
    if may_be_half and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        return "half a surrogate pair stands alone"
    return None


def elements_of(text: str) -> list[str]:
    """The elements of a well-formed JSON array, each as it was written."""
    return [text[start:end] for start, end in _values(text)]


def members_of(text: str) -> list[tuple[str, str]]:
    """The members of a well-formed JSON object in order, duplicates included, values as they were written."""
    spans = _values(text)
    return [
        (decode_string(text[key_start + 1 : key_end - 1]), text[start:end])
        for (key_start, key_end), (start, end) in zip(spans[::2], spans[1::2], strict=True)
    ]


def edited(text: str, change: Callable[[str, str], str | None]) -> str:
    """A well-formed JSON object or array with other values, its other characters as they were.

    `change` is given each key, which elements do not have, and its value as it was written, and gives the new value.
    None takes the member out, with the comma behind it; of the last one, the comma in front.
    """
    keyed = text[0] == "{"
    spans = _values(text)
    keys, values = (spans[::2], spans[1::2]) if keyed else (spans, spans)
    if not spans:
        return text
    parts = [text[: keys[0][0]]]
    between = ""
    for (start, key_end), (value_start, end), (after, _) in zip(keys, values, [*keys[1:], (0, 0)], strict=True):
        value = change(decode_string(text[start + 1 : key_end - 1]) if keyed else "", text[value_start:end])
        if value is not None:
            parts += between, text[start:value_start], value
            between = text[end:after]
    return "".join((*parts, text[values[-1][1] :]))


def without_member(text: str, key: str) -> str:
    """A well-formed JSON object without any member of that key, its other characters as they were."""
    return edited(text, lambda name, value: None if name == key else value)


def nested_objects(text: str) -> Iterator[tuple[int, bool]]:
    """The objects in well-formed JSON that are values of members: how many members each has, and if one follows it."""
    todo: list[object] = [_PAIRS.decode(text)]
    while todo:
        value = todo.pop()
        if isinstance(value, tuple):
            for place, (_, inner) in enumerate(value, 1):
                todo.append(inner)
                if isinstance(inner, tuple):
                    yield len(inner), place < len(value)
        elif isinstance(value, list):
            todo += value


def _values(text: str) -> list[tuple[int, int]]:
    """Where each element of an array stands, or each key and each value of an object in turn."""
    spans: list[tuple[int, int]] = []
    pos = after_space(text, 1)
    while text[pos] not in "]}":
        _, end = _DECODER.raw_decode(text, pos)
        spans.append((pos, end))
        pos = after_space(text, end)
        if text[pos] in ",:":
            pos = after_space(text, pos + 1)
    return spans
