"""What fits is what fits `jsonschema` itself, and what is said of the rest is what it says."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator, Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import best_match

from proxy.schema import Schema

NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 1.5, "", "a", "b", "ab", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["string", "integer", "number", "null", "boolean", "object", "array"])
SMALL = st.integers(0, 3)
PLAIN = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=repr),
    "required": st.lists(NAMES, min_size=1, max_size=2, unique=True),
    "minimum": st.integers(-2, 2),
    "maximum": st.integers(-2, 2),
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "minLength": SMALL,
    "maxLength": SMALL,
    "minItems": SMALL,
    "maxItems": SMALL,
    "minProperties": SMALL,
    "maxProperties": SMALL,
    "pattern": st.sampled_from(["^a", "b$", "^[ab]+$"]),
    "$ref": st.just("#/definitions/x"),
}


def some(keywords: dict[str, st.SearchStrategy[Any]], *, least: int) -> st.SearchStrategy[Any]:
    """Schemas of a few of these keywords: where there are many, the first refuses nearly every value."""
    names = st.lists(st.sampled_from(list(keywords)), min_size=least, max_size=8, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in chosen}))


def schemas(more: dict[str, Any], below: dict[str, Any]) -> st.SearchStrategy[Any]:
    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        forms = st.lists(inner, min_size=1, max_size=3)
        named = st.dictionaries(NAMES, inner, max_size=2)
        return some(
            {
                **PLAIN,
                **more,
                "properties": named,
                "additionalProperties": inner | st.booleans(),
                "patternProperties": st.dictionaries(st.sampled_from(["^a", "c"]), inner, max_size=2),
                "items": inner,
                "allOf": forms,
                "anyOf": forms,
                "oneOf": forms,
                "not": inner,
                **{name: make(inner) for name, make in below.items()},
            },
            least=1,
        )

    return nested(st.recursive(some({**PLAIN, **more}, least=0), nested, max_leaves=4))


LATER = {
    "const": VALUES,
    "exclusiveMinimum": st.integers(-2, 2),
    "uniqueItems": st.just(False),
}
WITH_SCHEMAS = {
    "contains": lambda inner: inner,
    "propertyNames": lambda inner: inner,
    "if": lambda inner: inner,
    "then": lambda inner: inner,
    "else": lambda inner: inner,
}
DRAFT_7 = schemas(LATER, {**WITH_SCHEMAS, "dependencies": lambda inner: st.dictionaries(NAMES, inner, max_size=2)})
LATEST = schemas(
    {**LATER, "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=2)},
    {
        **WITH_SCHEMAS,
        "prefixItems": lambda inner: st.lists(inner, min_size=1, max_size=2),
        "dependentSchemas": lambda inner: st.dictionaries(NAMES, inner, max_size=2),
        "unevaluatedItems": lambda inner: inner | st.just(False),
        "unevaluatedProperties": lambda inner: inner | st.just(False),
    },
)


def check(library: Any, schema: Any, value: Any, *, words: bool = True) -> None:
    schema = {"$schema": library.META_SCHEMA.get("$id", library.META_SCHEMA.get("id")), **schema}
    schema["definitions"] = {"x": {"type": ["string", "integer", "array"]}}
    problem = best_match(library(schema).iter_errors(value))
    said = Schema(json.dumps(schema)).misfit(value)
    assert (said is None) is (problem is None)
    # Ours is told in the library's other words for what no pattern names.
    words = words and problem is not None and len(problem.message) < 60 and "regexes" not in problem.message
    if words and problem is not None and said is not None:
        assert said.endswith(problem.message)


@given(schemas({}, {}), VALUES)
def test_draft_4_is_the_librarys(schema: Any, value: Any) -> None:
    check(Draft4Validator, schema, value)


@given(DRAFT_7, VALUES)
def test_draft_7_is_the_librarys(schema: Any, value: Any) -> None:
    check(Draft7Validator, schema, value)


@given(LATEST, VALUES)
def test_the_latest_draft_is_the_librarys(schema: Any, value: Any) -> None:
    check(Draft202012Validator, schema, value, words="unevaluated" not in json.dumps(schema))


@given(schemas(LATER, WITH_SCHEMAS), VALUES)
def test_draft_2019_is_the_librarys(schema: Any, value: Any) -> None:
    check(Draft201909Validator, schema, value)
