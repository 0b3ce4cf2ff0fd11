"""llama.cpp's grammar for an answer in which every call fits: text, and calls behind our tag and nowhere else.

    root -> text: any, but for the tag ---<tool_call>---> a call of the schema ---</tool_call>---> text

The text is free: `<table>`, `a < b` and half a tag are text. White space in a call is bounded, and members come in the
order of the schema, because a poor model would write either for ever. The grammar keeps the schema's types, properties,
alternatives, values, references and short bounds. The rest, such as patterns, is checked when the call is whole, as
with any other call.

GBNF: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from parser import CLOSE_TAG, OPEN_TAG

# Tool sets whose grammars are kept.
MOST_GRAMMARS = 64
# Repeats that are counted, and numbers of a range. llama.cpp writes each of them out, and refuses too many.
MOST_REPEATS = 128

_BASE = r"""
ws ::= | " " | "\n" " "{0,8}
char ::= [^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
string ::= "\"" char* "\""
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?
boolean ::= "true" | "false"
null ::= "null"
array ::= "[" ws (value (ws "," ws value)*)? ws "]"
object ::= "{" ws (string ws ":" ws value (ws "," ws string ws ":" ws value)*)? ws "}"
value ::= string | number | boolean | null | array | object
"""
# The rules of types without anything more.
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")

_Schema = Mapping[str, Any]


@lru_cache(maxsize=MOST_GRAMMARS)
def text_and_calls(schema: str) -> str:
    """The grammar for calls of `schema`, the JSON text of a schema of one call."""
    root = json.loads(schema)
    rules = _Rules(root)
    call = rules.of(root)
    close = _literal(CLOSE_TAG)
    return "\n".join((*_text(f"ws {call} ws {close} text-0"), *rules.written, _BASE))


def _text(then: str) -> Iterable[str]:
    """Text without our tag, as an automaton: a rule for each beginning of it that stands last; `then` behind it."""
    # The tag has one `<`, so what breaks it off begins it anew or is no part of it.
    yield "root ::= text-0"
    yield f"text-0 ::= | [^<] text-0 | {_literal(OPEN_TAG[0])} text-1"
    for place, char in enumerate(OPEN_TAG[1:], 1):
        goes_on = f"text-{place + 1}" if place + 1 < len(OPEN_TAG) else then
        yield f'text-{place} ::= | [^<{char}] text-0 | "<" text-1 | {_literal(char)} {goes_on}'


class _Rules:
    """Rules for the schemas of one document; `of` gives the name of one, or an expression."""

    def __init__(self, root: _Schema) -> None:
        self.written: list[str] = []
        self._definitions: _Schema = root.get("$defs", {})
        self._defined: dict[str, str] = {}

    def of(self, schema: Any) -> str:  # noqa: ANN401 -- JSON
        match schema:
            case {"$ref": str(reference)}:
                return self._referred(reference)
            case {"const": value}:
                return _literal(_json(value))
            case {"enum": [_, *_] as values}:
                return _either(_literal(_json(value)) for value in values)
            case {"anyOf": [_, *_] as forms} | {"oneOf": [_, *_] as forms}:
                return _either(map(self.of, forms))
            case {"type": [_, *_] as types}:
                return _either(self.of({**schema, "type": each}) for each in types)
            case {"type": "object", "additionalProperties": {}}:
                return "object"
            case {"type": "object", "properties": dict(properties)} if properties:
                return self._object(properties, schema.get("required"))
            case {"type": "array", "items": {} as items}:
                return self._array(self.of(items), schema.get("minItems"))
            case {"type": "string"}:
                return _string(schema)
            case {"type": "integer", "minimum": int(least), "maximum": int(most)} if 0 <= most - least < MOST_REPEATS:
                return _either(_literal(str(value)) for value in range(least, most + 1))
            case {"type": str(name)} if name in _TYPES:
                return name
            case _:
                return "value"

    def _rule(self, expression: str) -> str:
        name = f"r{len(self.written)}"
        self.written.append(f"{name} ::= {expression}")
        return name

    def _referred(self, reference: str) -> str:
        target = reference.removeprefix("#/$defs/")
        if target not in self._definitions:
            return "value"
        if target not in self._defined:
            # Named before it is looked at: it may lead into itself.
            name = self._defined[target] = f"d{len(self._defined)}"
            self.written.append(f"{name} ::= {self.of(self._definitions[target])}")
        return self._defined[target]

    def _object(self, properties: _Schema, required: object) -> str:
        needed = set(map(str, required)) if isinstance(required, list) else set()
        if not needed <= properties.keys():
            return "object"
        pairs = [
            (name in needed, f'{_literal(_json(name))} ws ":" ws {self.of(of)}') for name, of in properties.items()
        ]
        # What may stand behind a property: each one after it, with its comma.
        rest = ""
        firsts: list[str] = []
        for must, pair in reversed(pairs):
            if must:
                firsts.clear()
            firsts.append(f"{pair} {rest}")
            more = f'ws "," ws {pair} {rest}'
            rest = self._rule(more if must else f"| {more}" if not rest else f"{rest} | {more}")
        empty = [] if needed else [""]
        return self._rule(f'"{{" ws ({" | ".join((*empty, *reversed(firsts)))}) ws "}}"')

    def _array(self, item: str, least: object) -> str:
        name = self._rule(item)
        some = f'{name} (ws "," ws {name})*'
        return self._rule(f'"[" ws {some if least else f"({some})?"} ws "]"')


def _string(schema: _Schema) -> str:
    least, most = (
        count if isinstance(count := schema.get(bound), int) and 0 < count <= MOST_REPEATS else None
        for bound in ("minLength", "maxLength")
    )
    if least is None and most is None:
        return "string"
    return f'"\\"" char{{{least or 0},{"" if most is None else max(most, least or 0)}}} "\\""'


def _either(expressions: Iterable[str]) -> str:
    return f"({' | '.join(expressions)})"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
