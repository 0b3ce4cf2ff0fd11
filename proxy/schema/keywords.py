"""The keywords that are not as `jsonschema` has them: patterns and `uniqueItems`, which run on, and `multipleOf`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import orjson
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from .budget import current_budget

Json = Any
# Takes the validator, the keyword's own value, the value in question, and the schema of the keyword.
Keyword = Callable[[Draft202012Validator, Json, Json, Mapping[str, Json]], Iterator[ValidationError]]


def spending(keyword: Keyword) -> Keyword:
    """`keyword`, at the price of a step, more for what is large, and one for each error that it passes on."""

    def spends(
        validator: Draft202012Validator, wanted: Json, value: Json, schema: Mapping[str, Json]
    ) -> Iterator[ValidationError]:
        budget = current_budget()
        large = len(wanted) if isinstance(wanted, dict | list | str) else 0
        large += len(value) if isinstance(value, dict | list) else 0
        budget.spend(1 + large // 8)
        for error in keyword(validator, wanted, value, schema):
            budget.spend()
            yield error

    return spends


def _pattern(
    validator: Draft202012Validator, pattern: str, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    if isinstance(value, str) and not current_budget().matches(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Draft202012Validator, patterns: Mapping[str, Json], value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    for pattern, wanted in patterns.items():
        for name, each in value.items() if isinstance(value, dict) else ():
            if current_budget().matches(pattern, name):
                yield from validator.descend(each, wanted, path=name, schema_path=pattern)


def _additional_properties(
    validator: Draft202012Validator, wanted: Json, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    """The library's, after those whose names match a pattern have been taken out."""
    patterns = schema.get("patternProperties", ())
    if patterns and isinstance(value, dict):
        matches = current_budget().matches
        value = {name: each for name, each in value.items() if not any(matches(pattern, name) for pattern in patterns)}
        schema = {name: each for name, each in schema.items() if name != "patternProperties"}
    yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, wanted, value, schema)


def _unique_items(
    validator: Draft202012Validator, unique: Json, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    """In one pass over the items. 1 and 1.0 count as two."""
    if unique is True and isinstance(value, list):
        current_budget().spend(len(value))
        texts = {orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in value}
        if len(texts) < len(value):
            yield ValidationError(f"{value!r} has non-unique elements")


def _multiple_of(
    validator: Draft202012Validator, divisor: Json, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    """In decimals, as JSON's numbers are: 19.99 is a multiple of 0.01."""
    if validator.is_type(value, "number") and Decimal(str(value)) % Decimal(str(divisor)):
        yield ValidationError(f"{value!r} is not a multiple of {divisor}")


KEYWORDS: Mapping[str, Keyword] = {
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "uniqueItems": _unique_items,
}
