"""A check ends soon, whatever the schema and the value."""

from __future__ import annotations

import gc
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.schema import Schema, SchemaError, SchemaUnusable, one_budget
from proxy.schema.budget import STEPS, Budget

pytestmark = pytest.mark.timeout(10)

LATEST = "https://json-schema.org/draft/2020-12/schema"


def fanned(keyword: Any) -> dict[str, Any]:
    """40 schemas, each of which refers to the next one twice."""
    return {f"d{n}": keyword({"$ref": f"#/$defs/d{n + 1}"}) for n in range(40)} | {"d40": {"type": "integer"}}


DOUBLING = {"$defs": fanned(lambda each: {"allOf": [each, each]}), "$ref": "#/$defs/d0"}
UNEVALUATED = {
    "$defs": fanned(lambda each: {"dependentSchemas": {"a": each, "b": each}}),
    "unevaluatedProperties": False,
    "$ref": "#/$defs/d0",
}
RING = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
BRANCHING = {"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "type": "object"}
NESTED: Any = 1
for _ in range(60):
    NESTED = {"a": NESTED}
DEEPER: Any = NESTED
for _ in range(60):
    DEEPER = {"a": DEEPER}

STEEP: dict[str, tuple[Any, Any]] = {
    "references that double": (DOUBLING, 1),
    "references that double where nothing is checked": (UNEVALUATED, {"a": 1, "b": 2}),
    "a reference to itself": ({"$ref": "#"}, 1),
    "references in a ring": (RING, 1),
    "recursion that branches": (BRANCHING, NESTED),
    "a value that is deep": ({"additionalProperties": {"$ref": "#"}}, DEEPER),
    "another dialect inside": ({**DOUBLING, "$defs": {**fanned(lambda e: {"$schema": LATEST, "allOf": [e, e]})}}, 1),
    "a large enum and many items": ({"items": {"enum": [[n] for n in range(4_000)]}}, [[3_999]] * 1_000),
    "many forms": ({"anyOf": [{"const": n} for n in range(4_500)]}, "x"),
    "many errors": ({"anyOf": [{"required": [f"a{n}" for n in range(4_000)]}]}, {}),
    "many items": ({"items": {"type": "integer"}}, [1] * 9_000),
    "many different items": ({"uniqueItems": True}, [[n] for n in range(4_000)]),
    "very many items": ({"items": {"type": "integer"}}, [1] * 100_000),
    "a reference that is long": ({"$defs": {"A" * 60_000: {}}, "$ref": "#/$defs/" + "%41" * 60_000}, 1),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), STEEP.values(), ids=STEEP)
def test_what_takes_too_many_steps_is_not_judged(schema: Any, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.schema.budget.SECONDS", 60)
    with pytest.raises(SchemaUnusable, match=r"too many steps|too deep|too large"):
        Schema(json.dumps(schema)).misfit(value)


BACKTRACKING = "^(a|aa)+$"
LONG = "a" * 40 + "b"
PATTERNS: dict[str, tuple[Any, Any]] = {
    "one": ({"pattern": "^(a+)+$"}, "a" * 5_000 + "b"),
    "many": ({"items": {"pattern": BACKTRACKING}}, [LONG] * 1_000),
    "of names": ({"propertyNames": {"pattern": BACKTRACKING}}, {LONG: 1}),
    "of properties": ({"patternProperties": {BACKTRACKING: True}}, {LONG: 1}),
    "of other properties": ({"additionalProperties": False, "patternProperties": {BACKTRACKING: True}}, {LONG: 1}),
    "unevaluated": ({"unevaluatedProperties": False, "patternProperties": {BACKTRACKING: True}}, {LONG: 1}),
    "in another dialect": ({"items": {"$schema": LATEST, "pattern": BACKTRACKING}}, [LONG]),
    "too long": ({"pattern": "a" * 2_000}, "a"),
    "repeats of repeats": ({"pattern": "((a{1000}){1000}){1000}"}, "a"),
    "none": ({"pattern": "("}, "a"),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), PATTERNS.values(), ids=PATTERNS)
def test_patterns_that_run_on_are_not_judged(schema: Any, value: Any) -> None:
    with pytest.raises(SchemaUnusable, match="pattern"):
        Schema(json.dumps(schema)).misfit(value)


def test_a_pattern_that_backtracks_is_of_no_matter_where_it_does_not() -> None:
    assert Schema('{"pattern": "^(a+)+$"}').misfit("aaa") is None


def test_patterns_may_look_ahead_and_name_unicode_properties() -> None:
    schema = Schema(r'{"pattern": "^(?!\\.)(?<name>\\p{L}+)@\\w+\\/$"}')
    assert schema.misfit("zoë@home/") is None
    assert schema.misfit(".zoë@home/") is not None


def test_many_schemas_can_share_one_budget() -> None:
    with one_budget() as budget:
        schemas = [Schema(f'{{"title": "{n}", "properties": {{"a": {{"type": "string"}}}}}}') for n in range(1_000)]
        with pytest.raises(SchemaUnusable):
            budget.spend()
    assert all(schema.misfit({"a": 5}) is not None for schema in schemas)


def test_time_that_others_take_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget()
    monkeypatch.setattr("proxy.schema.budget.perf_counter", lambda: float("inf"))
    monkeypatch.setattr("proxy.schema.budget.thread_time", lambda: 0.0)
    budget.spend()
    monkeypatch.setattr("proxy.schema.budget.thread_time", lambda: float("inf"))
    with pytest.raises(SchemaUnusable, match="takes too long"):
        budget.spend()


def test_no_garbage_is_collected_in_the_time_of_a_check() -> None:
    with one_budget():
        assert not gc.isenabled()
        with one_budget():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_there_are_as_many_steps_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.schema.budget.SECONDS", 60)
    budget = Budget()
    budget.spend(STEPS)
    with pytest.raises(SchemaUnusable, match="too many steps"):
        budget.spend()


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-1e300, 1e300) | st.sampled_from(["#", "(", "object"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([
                "$id", "$schema", "$ref", "$defs", "$anchor", "$dynamicRef", "type", "enum", "properties", "required",
                "items", "anyOf", "not", "if", "then", "pattern", "patternProperties", "additionalProperties",
                "unevaluatedProperties", "unevaluatedItems", "multipleOf", "minLength", "uniqueItems", "contains", "a",
            ]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@given(ANY, ANY, st.sampled_from([None, LATEST, "http://json-schema.org/draft-07/schema#"]))
def test_nothing_else_is_ever_raised(schema: Any, value: Any, dialect: str | None) -> None:
    if isinstance(schema, dict) and dialect is not None:
        schema["$schema"] = dialect
    with suppress(SchemaError, SchemaUnusable):
        Schema(json.dumps(schema)).misfit(value)
