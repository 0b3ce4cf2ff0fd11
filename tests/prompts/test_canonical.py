from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import AssistantText, Entry, PastCall, Text, ToolResult, Transcript, UserTurn, canonical, looping_calls
from prompts.canonical import folder_of, properties_of, sent_back

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
    ("written", "back"),
    [
        ({"path": "a", "offset": None}, {"path": "a"}),
        ({"text": "x = 1  \n\t\n    y\n"}, {"text": "x = 1\n\n    y\n"}),
        ({"text": "one\r\ntwo"}, {"text": "one\ntwo"}),
        ({"n": 1.0}, {"n": 1}),
    ],
)
def test_a_call_that_its_client_has_tidied_up_is_the_same_when_it_comes_back(
    written: dict[str, object], back: dict[str, object]
) -> None:
    assert sent_back(json.dumps(written)) == sent_back(json.dumps(back)) is not None


@pytest.mark.parametrize(
    ("written", "back"),
    [
        ({"replace_all": True}, {}),
        ({"replace_all": False}, {}),
        ({"replace_all": True}, {"replace_all": False}),
        ({"n": 0}, {}),
        ({"text": ""}, {}),
        ({"text": "  x"}, {"text": "x"}),
        ({"text": "x\n"}, {"text": "x"}),
        ({"command": "cd /a && ls"}, {"command": "ls"}),
        ({"command": "cd /a && ls"}, {"command": "cd /b && ls"}),
        ({"a": {"b": False}}, {"a": {}}),
    ],
)
def test_a_call_that_somebody_has_changed_is_another(written: dict[str, object], back: dict[str, object]) -> None:
    assert sent_back(json.dumps(written)) != sent_back(json.dumps(back))


@pytest.mark.parametrize(
    ("command", "folder", "rest"),
    [
        ("cd /home/me/work && ls -l", "/home/me/work", "ls -l"),
        ("cd C:\\work && dir", "C:\\work", "dir"),
        ("cd /a && cd /b && ls", "/a", "cd /b && ls"),
    ],
)
def test_a_command_may_come_back_without_its_change_to_the_folder(command: str, folder: str, rest: str) -> None:
    written = json.dumps({"command": command})
    assert folder_of(written) == folder
    assert sent_back(written, folder=folder) == sent_back(json.dumps({"command": rest})) is not None
    assert sent_back(written, folder="/other") == sent_back(written)


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "cd /a; ls"},
        {"command": "cd $HOME && ls"},
        {"command": "ls && cd /a && ls"},
        {"prompt": "cd /a && ls"},
        {"command": ["cd /a && ls"]},
    ],
)
def test_any_other_command_stays_where_it_is(arguments: object) -> None:
    assert folder_of(json.dumps(arguments)) is None
    assert folder_of(json.dumps(arguments)[:-1]) is None


FILLED = {
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "number", "default": 10},
        "deep": {"type": "boolean", "default": False},
        "range": {"properties": {"from": {"default": 1}, "to": {}}},
        "each": {"items": {"properties": {"n": {"default": "x"}}}},
    }
}


@pytest.mark.parametrize(
    ("written", "back"),
    [
        ({"path": "a"}, {"path": "a", "limit": 10, "deep": False}),
        ({"path": "a", "limit": 5}, {"path": "a", "limit": 5, "deep": False}),
        ({"path": "a", "limit": 10.0}, {"path": "a", "limit": 10, "deep": False}),
        ({"path": "a", "range": {"to": 2}}, {"path": "a", "limit": 10, "deep": False, "range": {"from": 1, "to": 2}}),
        ({"each": [{}, {"n": "y"}]}, {"each": [{"n": "x"}, {"n": "y"}], "limit": 10, "deep": False}),
        ({"range": "all", "each": {}}, {"range": "all", "each": {}, "limit": 10, "deep": False}),
        ({"old": "a", "deep": True}, {"deep": True, "limit": 10, "old": "a"}),
    ],
)
def test_a_call_with_the_defaults_that_its_tool_declares_is_the_same(
    written: dict[str, object], back: dict[str, object]
) -> None:
    assert sent_back(json.dumps(written), properties_of(json.dumps(FILLED))) == sent_back(json.dumps(back)) is not None


@pytest.mark.parametrize("parameters", ["[]", "{", '{"properties": []}', '{"properties": {"a": true, "b": 1}}'])
def test_a_schema_that_says_nothing_of_defaults_changes_no_call(parameters: str) -> None:
    assert sent_back('{"a": 1}', properties_of(parameters)) == sent_back('{"a": 1}')


@pytest.mark.parametrize(
    "text", ["", "[]", "1", '"{}"', "{", "{} {}", '{"a": NaN}', "{'a': 1}", '{"a":' * 100_000, "[" * 100_000]
)
def test_what_is_no_object_has_no_canonical_form(text: str) -> None:
    assert canonical(text) is None


@given(st.text())
def test_any_text_may_be_asked_about(text: str) -> None:
    canonical(text)


def looped(call_id: str, path: str = "a.md", result: str | None = "# A") -> tuple[Entry, ...]:
    call = PastCall(call_id, "read_note", json.dumps({"path": path}))
    return (call,) if result is None else (call, ToolResult(call_id, (Text(result),)))


LOOP = ("read_note", canonical('{"path": "a.md"}'))
ASKED = UserTurn((Text("Read it."),))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((ASKED, *looped("1"), *looped("2")), LOOP),
        ((ASKED, *looped("1"), AssistantText("Again."), *looped("2", result="# B")), LOOP),
        ((ASKED, *looped("0", "b.md"), *looped("1"), *looped("2")), LOOP),
        ((ASKED, *looped("1")[:1], *looped("2", "b.md")[:1], looped("1")[1], *looped("3")), LOOP),
        ((ASKED, *looped("1")), None),
        ((ASKED, *looped("1"), ASKED, *looped("2")), None),
        ((ASKED, *looped("1"), *looped("2"), ASKED), None),
        ((ASKED, *looped("1"), *looped("2", "b.md"), *looped("3")), None),
        ((ASKED, *looped("1"), *looped("2"), *looped("3", "b.md")), None),
        ((ASKED, *looped("1"), *looped("2", result=None)), None),
        ((PastCall("1", "r", "a.md"), ToolResult("1", ()), PastCall("1", "r", "a.md")), None),
    ],
)  # fmt: skip
def test_only_the_same_call_twice_in_a_row_with_its_results_is_a_loop(
    entries: tuple[Entry, ...], expected: tuple[str, str] | None
) -> None:
    assert looping_calls(Transcript(entries)) == ({expected} if expected else set())
