from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import AssistantText, PastCall, Text, ToolResult, Transcript, answered_calls, canonical

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


@given(OBJECTS, st.booleans(), st.sampled_from([None, 2]))
def test_the_way_an_object_is_written_does_not_show(
    value: dict[str, object], ascii_only: bool, indent: int | None
) -> None:
    turned = dict(reversed(value.items()))
    assert canonical(json.dumps(value)) == canonical(json.dumps(turned, ensure_ascii=ascii_only, indent=indent))


@given(OBJECTS, OBJECTS)
def test_different_objects_differ(one: dict[str, object], other: dict[str, object]) -> None:
    # As JSON: to Python True is 1.
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (canonical(json.dumps(one)) == canonical(json.dumps(other))) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "1.0"), ("10", "1e1"), ("0.5", "5E-1"), ("-0", "0.0"), ("120", "1.2e+2"), ("1" + "0" * 5000, "1e5000")],
)
def test_equal_numbers_are_equal(one: str, other: str) -> None:
    assert canonical(f'{{"n": {one}}}') == canonical(f'{{"n": {other}}}')


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", '"1"'),
        ("12345678901234567890", "12345678901234567891"),
        ("1e400", "1e401"),
        ("1", "true"),
        ("5", "-5"),
        ("105", "15"),
        ("1e" + "9" * 5000, "1e" + "9" * 5001),
    ],
)
def test_different_numbers_differ(one: str, other: str) -> None:
    assert canonical(f'{{"n": {one}}}') != canonical(f'{{"n": {other}}}')


@pytest.mark.parametrize(
    "text", ["", "[]", "1", '"{}"', "{", "{} {}", '{"a": NaN}', "{'a': 1}", '{"a":' * 100_000, "[" * 100_000]
)
def test_what_is_no_object_has_no_canonical_form(text: str) -> None:
    assert canonical(text) is None


@given(st.text())
def test_any_text_may_be_asked_about(text: str) -> None:
    canonical(text)


def test_a_call_with_a_result_is_answered() -> None:
    transcript = Transcript(
        (
            PastCall("call_1", "read_note", '{"path": "a.md", "limit": 1}'),
            PastCall("call_2", "read_note", '{"path": "b.md"}'),
            AssistantText("…"),
            ToolResult("call_1", (Text("# A"),)),
        )
    )
    assert answered_calls(transcript) == {("read_note", canonical('{"limit": 1.0, "path": "a.md"}'))}


def test_results_of_nothing_and_arguments_that_are_no_object_are_passed_over() -> None:
    transcript = Transcript(
        (
            ToolResult("call_1", (Text("early"),)),
            PastCall("call_1", "read_note", "{}"),
            PastCall("call_2", "read_note", "a.md"),
            ToolResult("call_2", ()),
        )
    )
    assert answered_calls(transcript) == frozenset()
