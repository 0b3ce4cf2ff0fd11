"""The schema that codex passes on for its service to hold the model to.

codex always asks for the service's strict mode, which takes only a part of JSON Schema and refuses the rest. That rest
is left out here. The prompt says it in words, and the answer is checked in any case.
https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson

from ...rpc import RpcObject

# Known to be refused in strict mode.
REFUSED = frozenset({
    "additionalItems", "allOf", "contains", "dependencies", "dependentRequired", "dependentSchemas", "else", "if",
    "maxProperties", "minProperties", "not", "oneOf", "patternProperties", "prefixItems", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties", "uniqueItems",
})  # fmt: skip

# What strict mode takes of one schema, in all of it.
MOST_PROPERTIES = 5_000
MOST_LEVELS = 10
"""Of objects and arrays in one another."""
MOST_ENUM_VALUES = 1_000
MOST_CHARACTERS = 120_000
"""Of the names of properties and definitions, and of the values of `enum` and `const`."""

# Schemas whose reading is kept: a tool set has one, and sends it with each request.
_KEPT = 64


@lru_cache(maxsize=_KEPT)
def output_schema(text: str) -> RpcObject | None:
    """The schema of this JSON text, if it is of that part: closed objects, all of whose properties are required."""
    root = orjson.loads(text)
    if not isinstance(root, dict) or root.get("type") != "object" or "anyOf" in root:
        return None
    properties = values = characters = 0
    waiting: list[tuple[object, int]] = [(root, 0)]
    while waiting:
        schema, level = waiting.pop()
        if not isinstance(schema, dict):
            continue
        if not REFUSED.isdisjoint(schema) or not _is_closed(schema) or isinstance(schema.get("items"), list):
            return None
        if not _is_local(schema.get("$ref", "#")):
            return None
        level += "properties" in schema or "items" in schema
        names, listed = _names(schema), _listed(schema.get("enum"))
        properties += len(_named(schema, "properties"))
        values += len(listed)
        characters += sum(len(str(value)) for value in (*names, *listed, schema.get("const", "")))
        if (
            level > MOST_LEVELS
            or properties > MOST_PROPERTIES
            or values > MOST_ENUM_VALUES
            or characters > MOST_CHARACTERS
        ):
            return None
        waiting += [(inner, level) for inner in _inner(schema)]
    return root


def _named(schema: RpcObject, keyword: str) -> dict[str, Any]:
    return named if isinstance(named := schema.get(keyword), dict) else {}


def _names(schema: RpcObject) -> Iterator[str]:
    for keyword in ("$defs", "definitions", "properties"):
        yield from _named(schema, keyword)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _is_local(reference: object) -> bool:
    return isinstance(reference, str) and reference.startswith("#")


def _inner(schema: RpcObject) -> Iterator[object]:
    """The schemas that stand directly in one without what is refused."""
    for keyword in ("$defs", "definitions", "properties"):
        yield from _named(schema, keyword).values()
    yield from _listed(schema.get("anyOf"))
    yield schema.get("items")
    yield schema.get("additionalProperties")


def _is_closed(schema: RpcObject) -> bool:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if schema.get("type") != "object" and not properties:
        return True
    if not isinstance(properties, dict) or not isinstance(required, list):
        return False
    return schema.get("additionalProperties") is False and sorted(map(str, required)) == sorted(properties)
