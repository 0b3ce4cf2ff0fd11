from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parser.json_scan import MAX_DEPTH
from proxy.schema.coercion import (
    MAX_SCHEMA_DEPTH,
    Coerced,
    Coercion,
    Doubtful,
    coerce,
    fit,
    read_parameter_types,
    readings,
)
from tests.support.cpu_time import any_round, cpu_seconds

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "b": {"type": "boolean"},
            "s": {"type": "string"},
            "either": {"type": ["string", "integer"]},
            "maybe": {"type": ["integer", "null"]},
            "nullable": {"type": "integer", "nullable": True},
            "any": {},
            "optional": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Optional"},
            "options": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "number"}}]},
            "picked": {"anyOf": [{"type": "integer", "enum": [1, 2]}, {"type": "null"}]},
            "word": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "union": {"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "string"}]},
            "narrowed": {"anyOf": [{"type": "integer"}, {"type": "null"}], "enum": ["5", None]},
            "reference": {"$ref": "#/$defs/n"},
            "level": {"type": "integer", "enum": [1, 2]},
            "mode": {"enum": ["5", 5]},
            "choice": {"type": "integer", "enum": ["5", 5]},
            "chosen": {"type": "integer", "enum": [1, None]},
            "must": {"type": "integer"},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "sort": {"enum": ["up", ""]},
            "code": {"type": "string", "minLength": 1},
            "where": {
                "type": "object",
                "properties": {"column": {"type": "string"}, "row": {"type": "integer"}},
                "required": ["column"],
            },
            "some": {"type": "array", "minItems": 1},
            "list": {"type": "array", "items": {"type": "number"}},
            "deep": {"type": "object", "properties": {"n": {"type": "integer"}, "b": {"type": "boolean"}}},
        },
        "required": ["must"],
    }
)

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "sentinel.md").read_text("utf-8")

CHANGED = {
    "an integer": ('{"n": "5"}', '{"n": 5}', ["coerced_number"]),
    "a negative integer": ('{"n": "-12"}', '{"n": -12}', ["coerced_number"]),
    "nought": ('{"n": "0"}', '{"n": 0}', ["coerced_number"]),
    "the longest integer": ('{"n": "9007199254740991"}', '{"n": 9007199254740991}', ["coerced_number"]),
    "a number": ('{"x": "1.50"}', '{"x": 1.50}', ["coerced_number"]),
    "a power": ('{"x": "2e-3"}', '{"x": 2e-3}', ["coerced_number"]),
    "a power in capitals": ('{"x": "2E-3"}', '{"x": 2E-3}', ["coerced_number"]),
    "an integer as number": ('{"x": "7"}', '{"x": 7}', ["coerced_number"]),
    "true": ('{"b": "true"}', '{"b": true}', ["coerced_boolean"]),
    "False": ('{"b": "False"}', '{"b": false}', ["coerced_boolean"]),
    "null in a string": ('{"maybe": "null"}', '{"maybe": null}', ["coerced_null"]),
    "None in a string": ('{"nullable": "None"}', '{"nullable": null}', ["coerced_null"]),
    "an integer that may be null": ('{"maybe": "5"}', '{"maybe": 5}', ["coerced_number"]),
    "an integer or null in anyOf": ('{"optional": "5"}', '{"optional": 5}', ["coerced_number"]),
    "null in a string for anyOf": ('{"optional": "null"}', '{"optional": null}', ["coerced_null"]),
    "an empty one in anyOf": ('{"optional": "", "must": 1}', '{"must": 1}', ["dropped_empty"]),
    "a list in anyOf": ('{"options": ["1", 2]}', '{"options": [1, 2]}', ["coerced_number"]),
    "one of a few integers": ('{"level": "2"}', '{"level": 2}', ["coerced_number"]),
    "null for what is optional": ('{"n": null, "must": 1}', '{"must": 1}', ["dropped_null"]),
    "null in the middle": ('{"must": 1, "n": null, "s": "a"}', '{"must": 1, "s": "a"}', ["dropped_null"]),
    "null at the end": ('{"must": 1, "n": null}', '{"must": 1}', ["dropped_null"]),
    "nothing but null": ('{"n": null, "s": null}', "{}", ["dropped_null", "dropped_null"]),
    "two nulls at the end": ('{"must":1,"n":null,"s":null}', '{"must":1}', ["dropped_null", "dropped_null"]),
    "null for one of a few words": ('{"unit": null, "must": 1}', '{"must": 1}', ["dropped_null"]),
    "an empty one of a few words": ('{"must": 1, "unit": ""}', '{"must": 1}', ["dropped_empty"]),
    "an empty number": ('{"n": "", "b": {}, "x": [ ]}', "{}", ["dropped_empty"] * 3),
    "an empty word that needs a letter": ('{"code": "", "must": 1}', '{"must": 1}', ["dropped_empty"]),
    "an object without what it requires": ('{"where": { }, "must": 1}', '{"must": 1}', ["dropped_empty"]),
    "an object of nothing but null that requires more": (
        '{"where": {"row": null}, "must": 1}', '{"must": 1}', ["dropped_null", "dropped_empty"]),
    "an empty object in a string that requires more": (
        '{"where": "{}", "must": 1}', '{"must": 1}', ["coerced_object", "dropped_empty"]),
    "any other empty value for it": ('{"where": "", "some": {}, "must": 1}', '{"must": 1}', ["dropped_empty"] * 2),
    "an empty list that needs one": ('{"some": [], "must": 1}', '{"must": 1}', ["dropped_empty"]),
    "in a list": ('{"list": ["1", 2, "3.5"]}', '{"list": [1, 2, 3.5]}', ["coerced_number", "coerced_number"]),
    "in a list without blanks": ('{"list":["1","2",3]}', '{"list":[1,2,3]}', ["coerced_number", "coerced_number"]),
    "in an object without blanks": ('{"n":"5","b":"true"}', '{"n":5,"b":true}', ["coerced_number", "coerced_boolean"]),
    "in an object": (
        '{"deep": {"b": "true", "n": null}}', '{"deep": {"b": true}}', ["coerced_boolean", "dropped_null"]),
    "a list in a string": (r'{"list": "[1, \"2\"]"}', '{"list": [1, 2]}', ["coerced_array", "coerced_number"]),
    "an object in a string": (r'{"deep": "{\"n\": 1}"}', '{"deep": {"n": 1}}', ["coerced_object"]),
    "all else keeps its bytes": (
        '{ "any":1.10 ,"n" :"5","s":"\\u00e9" ,\n"b":null }', '{ "any":1.10 ,"n" :5,"s":"\\u00e9" }',
        ["coerced_number", "dropped_null"]),
    "a key with an escape": (r'{"\u006e": "5"}', r'{"\u006e": 5}', ["coerced_number"]),
}  # fmt: skip

KEPT = {
    "nothing": "{}",
    "what fits": '{"n": 5, "x": 1.5, "b": true, "s": "5", "list": [1], "deep": {"n": 1}}',
    "a string where a string may stand": '{"s": "5", "either": "5"}',
    "a string where anything may stand": '{"any": "5", "other": "5", "union": "5", "reference": "5", "mode": "5"}',
    "a string where anyOf allows one": '{"word": "5", "narrowed": "5"}',
    "null where null may stand": '{"maybe": null, "nullable": null, "any": null, "union": null, "other": null}',
    "null where anyOf allows it": '{"optional": null, "options": null, "picked": null, "word": null}',
    "what is one of the choices": '{"choice": "5", "chosen": null}',
    "null for what is required": '{"must": null}',
    "an empty value that may stand there": '{"s": "", "any": "", "sort": "", "deep": {}, "list": [], "either": ""}',
    "an empty value that may be meant as another": '{"s": {}, "list": "", "deep": [], "sort": []}',
    "an empty value where it is not said plainly": '{"union": "", "reference": {}, "other": []}',
    "an empty value for what is required": '{"must": ""}',
    "a blank": '{"n": " ", "unit": " "}',
    "null in a list": '{"list": [null]}',
    "a number where a string is wanted": '{"s": 5}',
    "no number": '{"n": "five", "x": "1,5"}',
    "leading noughts": '{"n": "007", "x": "00.5"}',
    "signs and blanks": '{"n": "+5", "x": " 5 "}',
    "minus nought": '{"n": "-0", "x": "-0"}',
    "a fraction for an integer": '{"n": "5.0"}',
    "a long integer": '{"n": "9007199254740992", "x": "12345678901234567890"}',
    "a power that is no double": '{"x": "1e400", "x": "1e-999"}',
    "digits that a double has not": '{"x": "0.12345678901234567890"}',
    "words for null": '{"n": "null", "maybe": "NULL", "maybe": "nil", "union": "null", "s": "null"}',
    "words for booleans": '{"b": "yes", "b": "1", "b": "TRUE ", "b": 1}',
    "no container in a string": '{"deep": "[1]", "list": "{}", "list": "[1", "deep": "{a: 1}", "deep": "[NaN]"}',
    "numbers no one can convert": '{"n": "' + "9" * 10_000 + '"}',
}


@pytest.mark.parametrize(("arguments", "expected", "coercions"), CHANGED.values(), ids=CHANGED)
def test_a_value_that_can_only_be_meant_otherwise_becomes_that(
    arguments: str, expected: str, coercions: list[str]
) -> None:
    coerced = coerce(arguments, read_parameter_types(SCHEMA))
    assert (coerced.arguments, list(coerced.coercions)) == (expected, coercions)
    json.loads(coerced.arguments)


@pytest.mark.parametrize("arguments", KEPT.values(), ids=KEPT)
def test_any_other_value_stays_as_it_was_written(arguments: str) -> None:
    coerced = coerce(arguments, read_parameter_types(SCHEMA))
    assert (coerced.arguments, coerced.coercions) == (arguments, ())


@pytest.mark.parametrize(
    "schema",
    ["", "null", "true", "[]", "{", "{}", '{"type": "object"}', '{"properties": 5}', '{"properties": {"n": 5}}',
     '{"properties": {"n": {"type": 5}}}', '{"properties": {"n": {"type": ["integer", 5]}}}',
     '{"properties": {"n": {"type": "int"}}}', '{"properties": {"n": {"type": []}}}',
     '{"anyOf": [{"properties": {"n": {"type": "integer"}}}]}', "[" * 10_000, '{"properties": {"n":' * 5_000],
)  # fmt: skip
def test_a_schema_that_does_not_say_it_plainly_changes_nothing(schema: str) -> None:
    assert coerce('{"n": "5", "m": null}', read_parameter_types(schema)).arguments == '{"n": "5", "m": null}'


@pytest.mark.parametrize(("opener", "closer"), [("[", "]"), ('{"a":', "}")])
def test_what_is_nested_deeper_than_calls_are_read_is_left_alone(opener: str, closer: str) -> None:
    def nested(levels: int) -> str:
        return f'{{"n":"5","any":{opener * levels}1{closer * levels}}}'

    most = MAX_DEPTH - 1
    wanted = read_parameter_types(SCHEMA)
    assert coerce(nested(most), wanted).arguments == nested(most).replace('"5"', "5")
    assert coerce(nested(most + 1), wanted).arguments == nested(most + 1)


@pytest.mark.parametrize(("levels", "written"), [(MAX_SCHEMA_DEPTH - 1, "5"), (MAX_SCHEMA_DEPTH, '"5"')])
@pytest.mark.parametrize("lists", [True, False])
def test_a_schema_is_read_to_a_certain_depth(levels: int, written: str, lists: bool) -> None:
    schema: dict[str, object] = {"type": "integer"}
    text, coerced = '"5"', written
    for level in range(levels):
        inside = lists and level < levels - 1
        schema = {"items": schema} if inside else {"properties": {"a": schema}}
        text, coerced = (f"[{value}]" if inside else f'{{"a":{value}}}' for value in (text, coerced))
    assert coerce(text, read_parameter_types(json.dumps(schema))).arguments == coerced


# As strict SDKs write what is optional: required, and perhaps null.
OPTIONAL = {
    "path": {"type": "string"},
    "limit": {"type": ["integer", "null"]},
    "unit": {"anyOf": [{"type": "string", "enum": ["C", "F"]}, {"type": "null"}], "default": None},
    "where": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}, {"type": "null"}]},
}
STRICT = {"type": "object", "properties": OPTIONAL, "required": [*OPTIONAL]}


@pytest.mark.parametrize(
    ("schema", "arguments", "filled", "count"),
    [
        (STRICT, '{"path": "a"}', '{"path": "a", "limit": null, "unit": null, "where": null}', 3),
        (STRICT, '{ "unit":"C","path":"a" } ', '{ "unit":"C","path":"a" , "limit": null, "where": null} ', 2),
        ({**STRICT, "required": ["limit"]}, "{}", '{"limit": null}', 1),
        ({**STRICT, "required": ["limit", "path"]}, '{"path":"a"}', '{"path":"a", "limit": null}', 1),
        ({"properties": {"in": STRICT}}, '{"in": {"path": "a", "limit": 1, "unit": "C"}}',
         '{"in": {"path": "a", "limit": 1, "unit": "C", "where": null}}', 1),
        ({"properties": {"all": {"items": {**STRICT, "required": ["limit"]}}}}, '{"all": [{}, {"limit": 2}]}',
         '{"all": [{"limit": null}, {"limit": 2}]}', 1),
    ],
)  # fmt: skip
def test_a_required_member_that_may_be_null_is_null_where_it_is_left_out(
    schema: object, arguments: str, filled: str, count: int
) -> None:
    wanted = read_parameter_types(json.dumps(schema))
    assert coerce(arguments, wanted) == Coerced(filled, (Coercion.LEFT_OUT,) * count)
    assert coerce(filled, wanted) == Coerced(filled)


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        # The model is asked again for the rest, so nothing is made up for it.
        (STRICT, "{}"),
        ({**STRICT, "required": ["other", "limit"]}, '{"path": "a"}'),
        ({**STRICT, "required": []}, "{}"),
        # Another value is meant where nothing is said.
        ({"properties": {"n": {"type": ["integer", "null"], "default": 5}}, "required": ["n"]}, "{}"),
        # Null is not plainly allowed.
        ({"properties": {"n": {"type": ["string", "null"], "enum": ["a"]}}, "required": ["n"]}, "{}"),
        ({"properties": {"n": {"anyOf": [{"type": "string"}, {"type": "null"}], "not": {}}}, "required": ["n"]}, "{}"),
        ({"properties": {"n": {"type": ["string", "null"], "const": "a"}}, "required": ["n"]}, "{}"),
        ({"properties": {"n": {}}, "required": ["n"]}, "{}"),
        ({**STRICT, "required": ["limit"], "anyOf": [{}]}, "{}"),
        ({**STRICT, "required": ["limit"], "enum": [{}]}, "{}"),
    ],
)
def test_nothing_else_is_added(schema: object, arguments: str) -> None:
    assert coerce(arguments, read_parameter_types(json.dumps(schema))) == Coerced(arguments)


def test_what_stands_in_front_of_the_rest_of_a_list_is_none_of_the_rest() -> None:
    row = {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}
    wanted = read_parameter_types(json.dumps({"properties": {"row": row, "n": {"type": "integer"}}}))
    assert coerce('{"row": ["5", 6], "n": "7"}', wanted) == Coerced('{"row": ["5", 6], "n": 7}', (Coercion.NUMBER,))


def test_an_optional_object_that_is_empty_is_left_out_rather_than_filled() -> None:
    wanted = read_parameter_types(
        json.dumps({"properties": {"in": {"type": "object", "properties": OPTIONAL, "required": ["limit"]}}})
    )
    assert coerce('{"in": {}}', wanted) == Coerced("{}", (Coercion.EMPTY,))


@pytest.mark.parametrize(
    ("text", "coerced"), [('{"n": "5"}', ['{"n": 5}']), ('{"n": 5}', []), ("no JSON", []), ('{"n": "five"}', [])]
)
def test_a_text_is_read_as_it_stands_before_it_is_changed(text: str, coerced: list[str]) -> None:
    wanted = read_parameter_types('{"properties": {"n": {"type": "integer"}}}')
    assert [each.arguments for each in readings(text, wanted)] == [text, *coerced]


def test_a_schema_is_read_once() -> None:
    assert read_parameter_types(SCHEMA) is read_parameter_types(str(json.dumps(json.loads(SCHEMA))))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["5", "-1.5", "true", "False", "null", "{}", "[1]", '{"a": "5"}', "1e5", "007", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries({}, optional={"type": TYPES | st.lists(TYPES, max_size=2), "nullable": st.booleans()}),
    lambda inner: st.fixed_dictionaries(
        {"type": TYPES},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "items": inner,
            "required": st.lists(st.sampled_from("abc"), max_size=2),
        },
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def fits(value: object, schema: object) -> bool:
    """Whether the part of the schema that coercion looks at allows the value."""
    if not isinstance(schema, dict):
        return True
    said = schema.get("type", [])
    types = [said] if isinstance(said, str) else said
    kinds: dict[str, bool] = {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "object": isinstance(value, dict),
        "array": isinstance(value, list),
    }
    if types and not any(kinds[name] for name in types) and not (value is None and schema.get("nullable")):
        return False
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        lacks_null = any(name in properties and name not in value for name in schema.get("required", []))
        return not lacks_null and all(fits(inner, properties.get(key, {})) for key, inner in value.items())
    if isinstance(value, list):
        return all(fits(inner, schema.get("items", {})) for inner in value)
    return True


@given(OBJECTS, SCHEMAS, st.sampled_from([None, 1]))
@settings(max_examples=4 * settings().max_examples)
def test_coercing_twice_is_coercing_once(value: object, schema: object, indent: int | None) -> None:
    known = read_parameter_types(json.dumps(schema))
    once = coerce(json.dumps(value, indent=indent), known)
    json.loads(once.arguments)
    assert coerce(once.arguments, known).arguments == once.arguments
    assert bool(once.coercions) == (once.arguments != json.dumps(value, indent=indent))


@given(OBJECTS, SCHEMAS)
@settings(max_examples=4 * settings().max_examples)
def test_what_fits_is_not_touched(value: object, schema: object) -> None:
    if fits(value, schema):
        text = json.dumps(value)
        assert coerce(text, read_parameter_types(json.dumps(schema))).arguments == text


@given(OBJECTS, VALUES, st.text(max_size=20))
def test_any_schema_and_any_text_is_taken(value: object, schema: object, text: str) -> None:
    for written in (json.dumps(schema), json.dumps({"properties": schema}), text):
        coerce(json.dumps(value), read_parameter_types(written))
        coerce(text, read_parameter_types(SCHEMA))


@pytest.mark.growth
@pytest.mark.parametrize(
    "unit", ['"n": "5", ', '"n": null, ', '"deep": {"n": "5"}, ', r'"list": "[\"1\", \"1\", \"1\"]", ']
)
def test_time_grows_with_the_length_alone(unit: str) -> None:
    def seconds(count: int) -> float:
        text = "{" + unit * count + '"must": 1}'
        assert coerce(text, read_parameter_types(SCHEMA)).coercions
        return cpu_seconds(lambda: coerce(text, read_parameter_types(SCHEMA)))

    for each in any_round():
        with each:
            assert seconds(10_000) < 40 * max(seconds(1_000), 1e-3)


@pytest.mark.growth
def test_so_it_does_with_the_number_of_members_that_are_null() -> None:
    def seconds(count: int) -> float:
        properties: dict[str, object] = {"text": {}}
        properties |= {f"n{number}": {"type": ["string", "null"]} for number in range(count)}
        wanted = read_parameter_types(json.dumps({"properties": properties, "required": [*properties]}))
        text = json.dumps({"text": "x" * 500 * count})
        assert len(coerce(text, wanted).coercions) == count
        return cpu_seconds(lambda: coerce(text, wanted))

    for each in any_round():
        with each:
            assert seconds(3_000) < 40 * max(seconds(300), 1e-3)


@pytest.mark.parametrize("schema", [SCHEMA, '{"anyOf": [], "required": ["must"]}'])
def test_a_repaired_call_without_what_is_required_is_doubtful(schema: str) -> None:
    wanted = read_parameter_types(schema)
    assert fit('{"n": 5}', wanted, repaired=True) == Doubtful("the arguments have no 'must'")
    assert fit('{"must": 5}', wanted, repaired=True) == Coerced('{"must": 5}')
    assert fit('{"n": 5}', wanted, repaired=False) == Coerced('{"n": 5}')


def test_a_repaired_call_may_leave_out_what_may_be_null() -> None:
    """A strict tool has no optional members, so models leave those out in every notation."""
    schema = '{"properties": {"must": {}, "may": {"type": ["integer", "null"]}, "id": {"type": ["string", "null"]}}, '
    wanted = read_parameter_types(schema + '"required": ["must", "may"]}')
    added = Coerced('{"must": 5, "may": null}', (Coercion.LEFT_OUT,))
    assert fit('{"must": 5}', wanted, repaired=True) == fit('{"must": 5}', wanted) == added
    assert fit("{}", wanted, repaired=True) == Doubtful("the arguments have no 'must'")
    assert fit('{"must": 5}', wanted, beside=[("other", "6")], repaired=True) == Doubtful(
        "'other' stands beside the arguments"
    )
    wanted = read_parameter_types(schema + '"required": ["must", "id"]}')
    assert fit('{"must": 5}', wanted, repaired=True) == Doubtful("the arguments have no 'id'")


NOTE = read_parameter_types('{"properties": {"path": {}, "size": {"type": "integer"}}, "required": ["path"]}')


@pytest.mark.parametrize(
    ("arguments", "beside", "fitted"),
    [
        ('{"path": "a"}', [("size", "5")], '{"path": "a", "size": 5}'),
        ("{}", [("path", '"a"')], '{"path": "a"}'),
        ('{ "path":"a" } ', [("size", '"5"')], '{ "path":"a" , "size": 5}'),
        ("{}", [("size", "5"), ("path", '"a"')], '{"size": 5, "path": "a"}'),
    ],
)
@pytest.mark.parametrize("repaired", [False, True])
def test_a_parameter_beside_the_arguments_is_lifted_into_them(
    arguments: str, beside: list[tuple[str, str]], fitted: str, repaired: bool
) -> None:
    coerced = fit(arguments, NOTE, beside=beside, repaired=repaired)
    assert isinstance(coerced, Coerced)
    assert coerced.arguments == fitted
    assert coerced.coercions.count(Coercion.LIFTED) == len(beside)


def test_a_schema_of_choices_says_which_parameters_there_are() -> None:
    wanted = read_parameter_types('{"anyOf": [{}], "properties": {"size": {"type": "integer"}}, "required": ["path"]}')
    assert fit('{"path": "a"}', wanted, beside=[("size", '"5"')]) == Coerced(
        '{"path": "a", "size": "5"}', (Coercion.LIFTED,)
    )


@pytest.mark.parametrize("member", [("path", '"b"'), ("Size", "5"), ("other", "{}")])
def test_what_belongs_nowhere_makes_a_call_doubtful(member: tuple[str, str]) -> None:
    assert fit('{"path": "a"}', NOTE, beside=[member]) == Doubtful(f"{member[0]!r} stands beside the arguments")
    assert isinstance(fit('{"path": "a"}', read_parameter_types(""), beside=[member]), Doubtful)


@pytest.mark.parametrize("name", ["id", "call_id", "type", "key", "name"])
def test_members_of_every_call_are_no_parameters(name: str) -> None:
    declared = f'"properties": {{"{name}": {{"type": "string"}}, "path": {{}}}}'
    optional, required = (
        read_parameter_types(f'{{{declared}, "required": {names}}}') for names in ("[]", f'["{name}"]')
    )
    beside = [(name, '"x"'), ("index", "0"), ("toolCallId", '"x"')]
    assert fit('{"path": "a"}', optional, beside=beside) == Coerced('{"path": "a"}')
    assert fit(f'{{"{name}": "y"}}', required, beside=beside) == Coerced(f'{{"{name}": "y"}}')
    # Which of the two it was meant to be, nobody can tell.
    assert isinstance(fit('{"path": "a"}', required, beside=beside), Doubtful)


REMARKS = ["thought", "reason", "reasoning", "explanation", "comment", "intent"]


@pytest.mark.parametrize("name", [*REMARKS, "Reasoning", "_comment"])
@pytest.mark.parametrize("repaired", [False, True])
def test_a_remark_beside_the_arguments_is_dropped(name: str, repaired: bool) -> None:
    beside = [("key", '"k"'), (name, '"I look \\"it\\" up."')]
    dropped = fit('{ "path":"a" } ', NOTE, beside=beside, repaired=repaired)
    assert dropped == Coerced('{ "path":"a" } ', (Coercion.REMARK,))
    assert fit("{}", read_parameter_types(""), beside=beside) == Coerced("{}", (Coercion.REMARK,))


def test_remarks_are_counted_beside_what_is_lifted_and_coerced() -> None:
    beside = [("thought", '"a"'), ("size", '"5"'), ("comment", '""')]
    assert fit('{"path": "a"}', NOTE, beside=beside) == Coerced(
        '{"path": "a", "size": 5}', (Coercion.LIFTED, Coercion.REMARK, Coercion.REMARK, Coercion.NUMBER)
    )


@pytest.mark.parametrize("value", ["5", "null", "{}", '["a"]', "true"])
def test_a_remark_is_a_string(value: str) -> None:
    assert isinstance(fit('{"path": "a"}', NOTE, beside=[("reason", value)]), Doubtful)


@pytest.mark.parametrize("repaired", [False, True])
def test_with_a_gap_in_the_arguments_nothing_is_a_remark(repaired: bool) -> None:
    doubtful = fit('{"size": 5}', NOTE, beside=[("reason", '"a"')], repaired=repaired)
    assert doubtful == Doubtful("'reason' stands beside the arguments")
    assert isinstance(fit("{}", NOTE, beside=[("reason", '"a"'), ("path", '"a"')]), Coerced)


@pytest.mark.parametrize(
    "schema",
    [
        '{"properties": {"Reason": {}}}',
        '{"properties": {"step": {"properties": {"reason": {}}}}}',
        '{"anyOf": [{"properties": {"reason": {}}}]}',
        '{"$ref": "#/$defs/r", "$defs": {"r": {"properties": {"reason": {}}}}}',
        '{"additionalProperties": {"type": "string"}}',
        '{"patternProperties": {"^r": {}}, "additionalProperties": false}',
    ],
)
def test_what_may_be_a_parameter_is_no_remark(schema: str) -> None:
    """It may have fallen out of its place, and then the call would run without it."""
    assert isinstance(fit("{}", read_parameter_types(schema), beside=[("reason", '"a"')]), Doubtful)


def test_a_parameter_with_the_name_of_a_remark_is_lifted() -> None:
    wanted = read_parameter_types('{"properties": {"reason": {}, "path": {}}}')
    assert fit('{"path": "a"}', wanted, beside=[("reason", '"b"')]) == Coerced(
        '{"path": "a", "reason": "b"}', (Coercion.LIFTED,)
    )
    assert isinstance(fit('{"reason": "a"}', wanted, beside=[("reason", '"b"')]), Doubtful)


PLAIN = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers())


@given(st.dictionaries(st.text(), PLAIN), st.dictionaries(st.text('ab\\é"'), PLAIN))
def test_nothing_is_lost_by_lifting(written: dict[str, object], beside: dict[str, object]) -> None:
    wanted = read_parameter_types(json.dumps({"properties": {key: {} for key in beside}}))
    fitted = fit(json.dumps(written), wanted, beside=[(key, json.dumps(value)) for key, value in beside.items()])
    match fitted:
        case Coerced(arguments):
            assert json.loads(arguments) == written | beside
        case Doubtful():
            assert written.keys() & beside.keys()


def test_every_coercion_is_documented() -> None:
    listed = re.findall(r"^\| `([a-z]+_[a-z]+)` \|", PAGE, re.MULTILINE)
    assert listed == [coercion.value for coercion in Coercion]
