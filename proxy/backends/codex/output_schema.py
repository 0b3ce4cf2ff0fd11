"""The schema that codex passes on for its service to hold the model to.

codex always asks for the service's strict mode, which takes a part of JSON Schema only and refuses the rest. What
is not of that part is left out here: the prompt says it in words, and the answer is checked either way.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from ...rpc import RpcObject

# Known to be refused in strict mode.
_REFUSED = frozenset({
    "additionalItems", "allOf", "contains", "dependencies", "dependentRequired", "dependentSchemas", "else", "if",
    "maxProperties", "minProperties", "not", "oneOf", "patternProperties", "prefixItems", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties", "uniqueItems",
})  # fmt: skip


def output_schema(text: str) -> RpcObject | None:
    """The schema of this JSON text, if it is of that part: closed objects, all of whose properties are required."""
    root = orjson.loads(text)
    if not isinstance(root, dict) or root.get("type") != "object" or "anyOf" in root:
        return None
    waiting: list[object] = [root]
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        if not _REFUSED.isdisjoint(schema) or not _is_closed(schema) or isinstance(schema.get("items"), list):
            return None
        waiting += _inner(schema)
    return root


def _inner(schema: RpcObject) -> Iterator[object]:
    """The schemas that stand directly in one without what is refused."""
    for keyword in ("$defs", "definitions", "properties"):
        if isinstance(named := schema.get(keyword), dict):
            yield from named.values()
    if isinstance(forms := schema.get("anyOf"), list):
        yield from forms
    yield schema.get("items")
    yield schema.get("additionalProperties")


def _is_closed(schema: RpcObject) -> bool:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if schema.get("type") != "object" and not properties:
        return True
    if not isinstance(properties, dict) or not isinstance(required, list):
        return False
    return schema.get("additionalProperties") is False and sorted(map(str, required)) == sorted(properties)
