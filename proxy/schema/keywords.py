"""Keywords that replace those of `jsonschema`: some would run on without bound, some stand in nearly every schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal

import orjson
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from .unevaluated import unevaluated_items, unevaluated_properties
from .validator import CountingValidator, Json, Keyword, values_in

# As JSON is read; true is no int here.
_TYPES = {"array": list, "boolean": bool, "integer": int, "null": type(None), "object": dict, "string": str}

# Steps for an item, and characters of it that are held against those of the others in a step.
ITEM = 4
COMPARED_A_STEP = 32


def _unless(fits: Callable[[CountingValidator, Json, Json], bool], name: str) -> Keyword:
    """The library's keyword `name`, which is asked only what to say. Most values fit, and its ways are long."""
    library = Draft202012Validator.VALIDATORS[name]

    def keyword(
        validator: CountingValidator, wanted: Json, value: Json, schema: Mapping[str, Json]
    ) -> Iterable[ValidationError]:
        return () if fits(validator, wanted, value) else library(validator, wanted, value, schema)

    return keyword


def _has_type(validator: CountingValidator, wanted: Json, value: Json) -> bool:
    names = (wanted,) if isinstance(wanted, str) else wanted
    if type(value) in {_TYPES.get(each) for each in names}:
        return True
    return any(validator.is_type(value, each) for each in names)  # an integer is a number, and 1.0 may be an integer


def _has_required(_: CountingValidator, wanted: Json, value: Json) -> bool:
    return not isinstance(value, dict) or all(name in value for name in wanted)


def _is_one_of(validator: CountingValidator, wanted: Json, value: Json) -> bool:
    """`==` takes 1 for true, also within objects and arrays: what it finds may be another value, what it misses is."""
    if value not in wanted:
        return False
    if not isinstance(value, str):
        validator.check.budget.spend(values_in(wanted))
        return False  # the library knows
    return True


def _pattern(
    validator: CountingValidator, pattern: str, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    if isinstance(value, str) and not validator.check.patterns.found(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: CountingValidator, patterns: Mapping[str, Json], value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    for pattern, wanted in patterns.items():
        for name, each in value.items() if isinstance(value, dict) else ():
            if validator.check.patterns.found(pattern, name):
                yield from validator.descend(each, wanted, path=name, schema_path=pattern)


def _additional_properties(
    validator: CountingValidator, wanted: Json, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    """In the order of the value, where the library has that of a set: what is found in bounds must not depend on it."""
    if not isinstance(value, dict):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", ())
    found = validator.check.patterns.found
    extra = [name for name in value if name not in named and not any(found(pattern, name) for pattern in patterns)]
    if isinstance(wanted, dict):
        for name in extra:
            yield from validator.descend(value[name], wanted, path=name)
    elif extra and not wanted:
        shown = ", ".join(map(repr, sorted(extra)))
        yield ValidationError(
            f"Additional properties are not allowed ({shown} {'was' if len(extra) == 1 else 'were'} unexpected)"
        )


def _unique_items(
    validator: CountingValidator, unique: Json, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    """In one pass over the items. 1 and 1.0 count as two."""
    if unique is True and isinstance(value, list):
        texts = set()
        for each in value:
            text = orjson.dumps(each, option=orjson.OPT_SORT_KEYS)
            validator.check.budget.spend(ITEM + len(text) // COMPARED_A_STEP)
            texts.add(text)
        if len(texts) < len(value):
            yield ValidationError(f"{value!r} has non-unique elements")


def _multiple_of(
    validator: CountingValidator, divisor: Json, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    """In decimals, as JSON's numbers are: 19.99 is a multiple of 0.01."""
    validator.check.budget.spend(2)
    if validator.is_type(value, "number") and Decimal(str(value)) % Decimal(str(divisor)):
        yield ValidationError(f"{value!r} is not a multiple of {divisor}")


def _recursive_reference(
    validator: CountingValidator, reference: Json, value: Json, schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    return validator.referred_back().iter_errors(value)


# Each stands in for the library's where a draft has it.
KEYWORDS: Mapping[str, Keyword] = {
    "$recursiveRef": _recursive_reference,
    "additionalProperties": _additional_properties,
    "const": _unless(lambda validator, wanted, value: _is_one_of(validator, [wanted], value), "const"),
    "enum": _unless(_is_one_of, "enum"),
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "required": _unless(_has_required, "required"),
    "type": _unless(_has_type, "type"),
    "unevaluatedItems": unevaluated_items,
    "unevaluatedProperties": unevaluated_properties,
    "uniqueItems": _unique_items,
}
