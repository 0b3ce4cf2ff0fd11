"""`unevaluatedProperties` and `unevaluatedItems`: members that no keyword beside them, or in an applied subschema, met.

The library's own search a list for each member, and match patterns for as long as it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jsonschema.exceptions import ValidationError

from .validator import VALUES_A_STEP, CountingValidator, Json


def unevaluated_properties(
    validator: CountingValidator, wanted: Json, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    met: set[str] = set()
    for each in _in_place(validator, value):
        met |= _met_properties(each, value, itself=each.schema is schema)
    left = [name for name in value if name not in met and not validator.evolve(schema=wanted).is_valid(value[name])]
    if left and wanted is False:
        shown = ", ".join(map(repr, sorted(left)))
        yield ValidationError(f"Unevaluated properties are not allowed ({shown} {_were(left)} unexpected)")
    elif left:
        shown = f"{', '.join(map(repr, left))} {_were(left)} unevaluated and invalid"
        yield ValidationError(f"Unevaluated properties are not valid under the given schema ({shown})")


def unevaluated_items(
    validator: CountingValidator, wanted: Json, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    if not isinstance(value, list):
        return
    met: set[int] = set()
    for each in _in_place(validator, value):
        met.update(_met_items(each, value, itself=each.schema is schema))
    left = [
        item
        for index, item in enumerate(value)
        if index not in met and not validator.evolve(schema=wanted).is_valid(item)
    ]
    if left:
        shown = ", ".join(map(repr, left))
        yield ValidationError(f"Unevaluated items are not allowed ({shown} {_were(left)} unexpected)")


def _were(left: list[Json]) -> str:
    return "was" if len(left) == 1 else "were"


def _in_place(validator: CountingValidator, value: Json) -> Iterator[CountingValidator]:
    """`validator`, and those that hold for the value itself by its word."""
    budget, schema = validator.check.budget, validator.schema
    budget.spend(1 + len(value) // VALUES_A_STEP)
    if isinstance(schema, bool):
        return
    yield validator
    budget.go_deeper()
    for below in _applied(validator, schema, value):
        yield from _in_place(below, value)
    budget.come_back()


def _applied(validator: CountingValidator, schema: Mapping[str, Json], value: Json) -> Iterator[CountingValidator]:
    known = validator.check.vocabulary.keywords
    for name in ("$ref", "$dynamicRef"):
        if name in schema and name in known:
            yield validator.referred(schema[name])
    if "$recursiveRef" in schema and "$recursiveRef" in known:
        yield validator.referred_back()
    for name in ("allOf", "anyOf", "oneOf"):
        for each in schema.get(name, ()):
            if (form := validator.evolve(schema=each)).is_valid(value):
                yield form
    if "if" in schema:
        condition = validator.evolve(schema=schema["if"])
        holds = condition.is_valid(value)
        if holds:
            yield condition
        if (name := "then" if holds else "else") in schema:
            yield validator.evolve(schema=schema[name])
    for name, each in schema.get("dependentSchemas", {}).items():
        if name in value:
            yield validator.evolve(schema=each)


def _met_properties(validator: CountingValidator, value: Mapping[str, Json], *, itself: bool) -> set[str]:
    schema = validator.schema
    if "additionalProperties" in schema or ("unevaluatedProperties" in schema and not itself):
        return set(value)
    found = validator.check.patterns.found
    met = {name for pattern in schema.get("patternProperties", ()) for name in value if found(pattern, name)}
    met.update(schema.get("properties", {}).keys() & value.keys())
    return met


def _met_items(validator: CountingValidator, value: list[Json], *, itself: bool) -> Iterator[int]:
    schema, items = validator.schema, validator.schema.get("items")
    in_row = schema.get("prefixItems", items if isinstance(items, list) else ())
    rest = "additionalItems" if isinstance(items, list) else "items"
    if rest in schema or ("unevaluatedItems" in schema and not itself):
        yield from range(len(value))
        return
    yield from range(len(in_row))
    if "contains" in schema:
        contained = validator.evolve(schema=schema["contains"])
        yield from (index for index, item in enumerate(value) if contained.is_valid(item))
