"""Free text in and out of the function that stands for a custom tool."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import RequestError
from proxy.schema import read_schema
from proxy.wire.custom_tools import (
    grammar_of,
    has_grammar,
    input_schema,
    parse_format,
    pattern_of,
    unwrap_input,
    wrap_input,
)
from proxy.wire.json_body import JsonObject
from proxy.wire.reader import Reader

GRAMMAR: JsonObject = {"type": "grammar", "syntax": "lark", "definition": 'start: "a"+\n'}


@given(st.text())
def test_an_input_makes_the_round_trip(text: str) -> None:
    assert unwrap_input(wrap_input(text)) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"input": "a\\nb"}', "a\nb"),
        ('{"input": "a", "why": "because"}', "a"),
        ('{"patch": "a"}', "a"),
        ('"a"', "a"),
        ("{}", ""),
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": "x", "b": "y"}', '{"a": "x", "b": "y"}'),
        ('{"input": ["a"]}', '{"input": ["a"]}'),
        ("[]", "[]"),
        ("no JSON", "no JSON"),
        ('{"input": "\\ud800"}', '{"input": "\\ud800"}'),
    ],
)
def test_what_has_one_reading_is_read_and_the_rest_is_left_as_it_is(arguments: str, text: str) -> None:
    assert unwrap_input(arguments) == text


@pytest.mark.parametrize("form", [None, {"type": "text"}])
def test_without_a_grammar_the_input_is_text(form: JsonObject | None) -> None:
    assert parse_format(Reader({"format": form})) == {"type": "text"}


def test_the_model_is_shown_the_grammar_in_full() -> None:
    schema = orjson.dumps(input_schema(parse_format(Reader({"format": GRAMMAR}))))
    assert orjson.dumps(GRAMMAR["definition"])[1:-1] in schema
    assert b"Lark grammar" in schema


def test_chats_nested_grammar_is_the_same() -> None:
    nested: JsonObject = {"type": "grammar", "grammar": {"syntax": "lark", "definition": GRAMMAR["definition"]}}
    assert parse_format(Reader({"format": nested})) == GRAMMAR


@pytest.mark.parametrize(
    ("form", "param", "code"),
    [
        ({}, "tools[0].format.type", "missing_required_parameter"),
        ({"type": "prose"}, "tools[0].format.type", "invalid_value"),
        ({"type": "grammar"}, "tools[0].format.syntax", "missing_required_parameter"),
        ({**GRAMMAR, "syntax": "ebnf"}, "tools[0].format.syntax", "invalid_value"),
        ({**GRAMMAR, "definition": None}, "tools[0].format.definition", "missing_required_parameter"),
    ],
)
def test_a_format_that_is_none_is_refused(form: JsonObject, param: str, code: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_format(Reader({"format": form}, "tools[0]"))
    assert (caught.value.param, caught.value.code) == (param, code)


def regex(definition: str) -> JsonObject:
    return {"type": "grammar", "syntax": "regex", "definition": definition}


@pytest.mark.parametrize(
    ("definition", "fits", "misfits"),
    [
        ("[0-9]+", ["7", "42"], ["", "7a", "a7", "7\n"]),
        ("a|b", ["a", "b"], ["ab", "aa", ""]),
        ("^cat .+$", ["cat a.md"], ["cat ", "concat a"]),
        (r"(?i)yes|no", ["YES", "No"], ["maybe"]),
        (r"\w+ \d", ["Äpfel 3", "a_b ٣"], ["a- 3", "a b"]),
        (r"[\w.]+@[^\d]", ["ä.b@c"], ["a b@c", "a@5"]),
        (r"a\[[]x]", ["a[]", "a[x"], ["a[", "a]"]),
    ],
)
def test_an_input_is_held_to_its_regular_expression_as_a_whole(
    definition: str, fits: list[str], misfits: list[str]
) -> None:
    wanted = read_schema(orjson.dumps(input_schema(regex(definition))).decode())
    assert [wanted.misfit({"input": text}) for text in fits] == [None] * len(fits)
    assert None not in [wanted.misfit({"input": text}) for text in misfits]


@pytest.mark.parametrize(
    "definition", ["(?=a)b", "(", "(?x)a b", "(?is).+", "[[:alpha:]]", "[a-z&&[^b]]", r"[^\W]", "x" * 2_000]
)
def test_what_cannot_be_held_in_bounds_is_shown_and_no_pattern(definition: str) -> None:
    assert pattern_of(regex(definition)) is None
    told: Any = input_schema(regex(definition))["properties"]
    assert definition in told["input"]["description"]
    assert "pattern" not in told["input"]


def test_an_input_is_held_to_its_lark_grammar_beside_the_schema() -> None:
    assert (pattern_of(GRAMMAR), grammar_of(GRAMMAR)) == (None, GRAMMAR["definition"])
    assert grammar_of({**GRAMMAR, "definition": "x" * 10_000}) is None
    assert grammar_of(regex("a+")) is None
    assert (has_grammar(GRAMMAR), has_grammar(regex("a")), has_grammar({"type": "text"})) == (True, True, False)
