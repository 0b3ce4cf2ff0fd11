"""A check ends after so many steps, whatever the schema and the value, and on every machine after the same."""

from __future__ import annotations

import ast
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proxy.schema
from proxy.schema import Schema, SchemaError, SchemaUnusable
from proxy.schema.check import extent_of, problem_of
from proxy.schema.check_budget import FOR_EACH_CHARACTER, LEAST, MOST, MOST_DEPTH, CheckBudget
from proxy.schema.dialects import dialect_of

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
MEMBERS = {f"k{n}": n for n in range(5_000)}
ANCHORED = {f"d{n}": {"$anchor": f"n{n}", "anyOf": [{"$ref": f"#n{n + 1}"}] * 2} for n in range(40)}
ANCHORED["d40"] = {"$anchor": "n40", "type": "null"}

STEEP: dict[str, tuple[Any, Any]] = {
    "references that double": (DOUBLING, 1),
    "references that double where nothing is checked": (UNEVALUATED, {"a": 1, "b": 2}),
    "references by name that double": ({"$defs": ANCHORED, "$ref": "#n0"}, 1),
    "forms that double": ({"$defs": fanned(lambda each: {"anyOf": [each, each]}), "$ref": "#/$defs/d0"}, "x"),
    "conditions that double": ({"$defs": fanned(lambda each: {"if": each, "then": each}), "$ref": "#/$defs/d0"}, 1),
    "a reference to itself": ({"$ref": "#"}, 1),
    "references in a ring": (RING, 1),
    "recursion that branches": (BRANCHING, NESTED),
    "a value that is deep": ({"additionalProperties": {"$ref": "#"}}, DEEPER),
    "another dialect inside": ({**DOUBLING, "$defs": {**fanned(lambda e: {"$schema": LATEST, "allOf": [e, e]})}}, 1),
    "a large enum and many items": ({"items": {"enum": [[n] for n in range(4_000)]}}, [[3_999]] * 1_000),
    "a large enum of texts": ({"items": {"enum": [f"s{n}" for n in range(9_000)]}}, ["s8999"] * 5_000),
    "a large const": ({"items": {"const": [0] * 9_000}}, [[0] * 9_000] * 500),
    "many forms and many items": ({"items": {"anyOf": [{"const": n} for n in range(4_500)]}}, [4_499] * 1_000),
    "many forms of a large value": ({"anyOf": [{"type": "string"}] * 4_000}, [[]] * 30_000),
    "many required": ({"allOf": [{"required": ["k0"]}] * 3_000}, MEMBERS),
    "many dependencies": ({"items": {"dependentRequired": {"a": [f"b{n}" for n in range(8_000)]}}}, [{}] * 10_000),
    "very many items": ({"items": {"type": "integer"}}, [1] * 400_000),
    "more items than are counted": ({"items": True}, [1] * 1_000_000),
    "many different items": ({"allOf": [{"uniqueItems": True}] * 100}, [[n] for n in range(4_000)]),
    "many unevaluated items": ({"allOf": [{"unevaluatedItems": {"type": "null"}}] * 100}, [None] * 10_000),
    "many patterns and many members": ({"patternProperties": {f"^a{n}": {} for n in range(1_000)}}, MEMBERS),
    "many additional members": ({"allOf": [{"additionalProperties": {}}] * 1_000}, MEMBERS),
    "many multiples": ({"items": {"multipleOf": 1e-7}}, [1] * 200_000),
    "a reference into the letters of a text": ({"title": "x", "items": {"$ref": "#/title" + "/0" * 30_000}}, [1]),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), STEEP.values(), ids=STEEP)
def test_what_takes_too_many_steps_is_not_judged(schema: Any, value: Any) -> None:
    with pytest.raises(SchemaUnusable, match=r"too many steps|too deep|too large"):
        Schema(json.dumps(schema)).misfit(value)


def test_a_reference_may_be_long() -> None:
    schema = Schema(json.dumps({"$defs": {"A" * 60_000: {"type": "null"}}, "$ref": "#/$defs/" + "%41" * 60_000}))
    assert schema.misfit(None) is None
    assert schema.misfit(1) is not None


AGAIN = {"$ref": "#"}


@pytest.mark.parametrize(
    "schema",
    [AGAIN, {"not": AGAIN}, {"if": AGAIN}, {"allOf": [AGAIN]}, {"oneOf": [{}, AGAIN]}, {"anyOf": [{"not": AGAIN}]}],
    ids=json.dumps,
)
def test_a_ring_is_left_at_the_same_depth_wherever_it_is_asked_from(schema: Any) -> None:
    """Before Python itself finds it too deep, which depends on who asks."""

    def asked(from_below: int) -> None:
        if from_below:
            asked(from_below - 1)
        else:
            Schema(json.dumps(schema)).misfit(1)

    for from_below in (0, 100):
        with pytest.raises(SchemaUnusable, match="goes too deep") as caught:
            asked(from_below)
        assert not isinstance(caught.value.__cause__, RecursionError)


def steps_of(schema: Any, value: Any) -> int:
    """What a check spends when it may spend anything."""

    class Counted(CheckBudget):
        spent = 0

        def spend(self, steps: int) -> None:
            self.spent += steps

    budget = Counted(0)
    problem_of(dialect_of(schema).document(schema), value, budget)
    return budget.spent


ROW = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "name": {"type": "string", "pattern": "^[a-z0-9-]+$"},
        "state": {"enum": ["open", "closed", "new"]},
        "note": {"type": ["string", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "name", "state", "note", "tags"],
    "additionalProperties": False,
}
TABLE = {"type": "object", "properties": {"rows": {"type": "array", "items": ROW}}, "required": ["rows"]}


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {"id": n, "name": f"row-{n}", "state": "open", "note": None, "tags": ["a", "b"]} for n in range(1, count + 1)
    ]


def test_ten_thousand_rows_are_judged() -> None:
    schema = Schema(json.dumps(TABLE))
    table = {"rows": rows(10_000)}
    assert schema.misfit(table) is None
    table["rows"][-1]["state"] = "gone"
    assert schema.misfit(table) == "at 'rows[9999].state': 'gone' is not one of ['open', 'closed', 'new']"


def test_twice_as_many_rows_take_twice_as_many_steps() -> None:
    some, twice = (steps_of(TABLE, {"rows": rows(count)}) for count in (1_000, 2_000))
    assert 1.9 < twice / some < 2.1


def test_ordinary_rows_take_a_third_of_what_their_text_is_worth() -> None:
    table = {"rows": rows(100)}
    assert steps_of(TABLE, table) < FOR_EACH_CHARACTER * len(json.dumps(table)) / 3


@pytest.mark.parametrize("levels", [6, 8, 10])
def test_steps_grow_as_fast_as_hostile_references_do(levels: int) -> None:
    def doubling(levels: int) -> Any:
        named = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
        return {"$defs": {**named, f"d{levels}": {}}, "$ref": "#/$defs/d0"}

    assert steps_of(doubling(levels + 2), 1) > 3 * steps_of(doubling(levels), 1)


@pytest.mark.parametrize(("schema", "value"), [(ROW, rows(1)[0]), (ROW, {"id": "x"}), (BRANCHING, {"a": {"a": 1}})])
def test_a_check_takes_the_same_steps_each_time(schema: Any, value: Any) -> None:
    assert len({steps_of(schema, value) for _ in range(3)}) == 1


CLOCKS = {"time", "datetime", "timeit", "gc", "signal", "threading", "asyncio"}


def test_no_clock_is_known_here() -> None:
    """A verdict on a slow machine is that on a fast one, and nothing of the process is switched meanwhile."""
    for file in Path(proxy.schema.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            # A grammar's engine goes down its rules on the stack, so it has a thread with a large one.
            allowed = {"threading"} if file.name == "lark.py" else set()
            assert not {name.partition(".")[0] for name in names} & CLOCKS - allowed, file.name
            assert not (isinstance(node, ast.keyword) and node.arg == "timeout"), file.name


def test_there_are_as_many_steps_as_it_says() -> None:
    for size, most in ((0, LEAST), (1_000, LEAST + 1_000 * FOR_EACH_CHARACTER), (10**9, MOST)):
        budget = CheckBudget(size)
        budget.spend(most)
        with pytest.raises(SchemaUnusable, match="too many steps"):
            budget.spend(1)


def test_it_goes_as_deep_as_it_says() -> None:
    budget = CheckBudget(0)
    for _ in range(MOST_DEPTH):
        budget.go_deeper()
    with pytest.raises(SchemaUnusable, match="too deep"):
        budget.go_deeper()


def test_a_schema_of_any_size_is_looked_through() -> None:
    members = {f"member_{n}": {"type": "string", "description": "x" * 40, "enum": ["a", "b"]} for n in range(1_600)}
    Schema(json.dumps({"properties": members}))
    members["member_1599"]["type"] = "strng"
    with pytest.raises(SchemaError, match="member_1599"):
        Schema(json.dumps({"properties": members}))


def test_each_schema_has_steps_of_its_own() -> None:
    texts = [json.dumps({"title": str(n), "properties": {"a": {"type": "string"}}}) for n in range(1_000)]
    assert all(Schema(text).misfit({"a": 5}) is not None for text in texts)


def test_the_size_of_a_value_is_about_that_of_its_text() -> None:
    table = {"rows": rows(100)}
    extent = extent_of(table, 10_000)
    assert extent is not None
    assert 0.5 < extent.characters / len(json.dumps(table)) < 1.5


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-1e300, 1e300) | st.sampled_from(["#", "(", "object"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([
                "$id", "$schema", "$ref", "$defs", "$anchor", "$dynamicRef", "type", "enum", "properties", "required",
                "items", "anyOf", "not", "if", "then", "pattern", "patternProperties", "additionalProperties",
                "unevaluatedProperties", "unevaluatedItems", "multipleOf", "minLength", "uniqueItems", "contains", "a",
                "const", "prefixItems", "dependentSchemas", "$recursiveRef",
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
