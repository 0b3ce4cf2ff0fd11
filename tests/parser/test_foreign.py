from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.foreign import begins_foreign, read_foreign
from parser.relaxed_json import UnreadableError

NOTE = {"path": "a.md"}
CALLS: dict[str, tuple[str, dict[str, object]]] = {
    "a function of parameters": ("<function=r>\n<parameter=path>\na.md\n</parameter>\n</function>", {**NOTE}),
    "a function on one line": ("<function=r><parameter=path>a.md</parameter></function>", {**NOTE}),
    "a function without parameters": ("<function=r>\n</function>", {}),
    "a function in quotes": ('<function="r"><parameter="path">a.md</parameter></function>', {**NOTE}),
    "a named function": ('<function name="r">\n<parameter name="path">a.md</parameter>\n</function>', {**NOTE}),
    "an invocation": ('<invoke name="r">\n<parameter name="path">a.md</parameter>\n</invoke>', {**NOTE}),
    "a function with JSON in it": ('<function=r>{"path": "a.md"}</function>', {**NOTE}),
    "a function and JSON beside it": ('<function>r</function>\n{"path": "a.md"}', {**NOTE}),
    "a tool's name and JSON beside it": ('<tool_name>r</tool_name>{"path": "a.md"}', {**NOTE}),
    "keys and values": ("r\n<arg_key>path</arg_key>\n<arg_value>a.md</arg_value>\n", {**NOTE}),
    "two keys": (
        "r<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>b</arg_key><arg_value>\nx\ny\n</arg_value>",
        {"a": "1", "b": "x\ny"},
    ),
    "a call of Python": ("r(path='a.md')", {**NOTE}),
    "a call of Python with values": ('r(a = 1, b=[True, None], c="x, y)",)', {"a": 1, "b": [True, None], "c": "x, y)"}),
    "a call of Python with an object": ('r({"path": "a.md"})', {**NOTE}),
    "a call of Python with nothing": ("r()", {}),
    "a name and JSON": ('r {"path": "a.md"}', {**NOTE}),
    "a name over JSON": ('r\n{"path": "a.md"}', {**NOTE}),
    "a label over the call": ('json\n{"name": "r", "arguments": {"path": "a.md"}}', {**NOTE}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "arguments"), CALLS.values(), ids=CALLS)
def test_a_call_in_another_notation_is_read(text: str, arguments: dict[str, object]) -> None:
    read = read_foreign(text, 0, closed=True)
    assert read is not None
    call, end = read
    assert (call.name, json.loads(call.arguments), end) == ("r", arguments, len(text))
    assert call.rules[0] == "foreign-notation"


@pytest.mark.parametrize("text", [text for text, _ in CALLS.values()], ids=CALLS)
def test_it_is_never_denied_while_it_is_being_written(text: str) -> None:
    decided = [begins_foreign(text[:end], 0) for end in range(1, len(text) + 1)]
    assert False not in decided
    assert decided == sorted(decided, key=bool)
    assert decided[-1] is True


@pytest.mark.parametrize(
    "text", ["tag opens a call", "is a tag", "and </tool_call>", "(see below)", "<b>", "<functional", "foo (x=1)",
             "f(x)", 'f("a.md")', "block { x }", "42", "I would call r."]
)  # fmt: skip
def test_prose_begins_no_call(text: str) -> None:
    assert begins_foreign(f"{text} ", 0) is False


def test_a_value_keeps_all_but_the_line_ends_round_it() -> None:
    value = '\n  it\'s "x" {\n\t</b> \\n '
    text = f"<function=w><parameter=content>\n{value}\n</parameter></function>"
    read = read_foreign(text, 0, closed=False)
    assert read is not None
    assert json.loads(read[0].arguments) == {"content": value}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("value", ["a.md", "", "\n", "\n\r\n", "a\r\nb"])
def test_one_line_end_on_either_side_is_not_of_the_value(end: str, value: str) -> None:
    for text in (
        f"<function=w><parameter=p>{end}{value}{end}</parameter></function>",
        f"w<arg_key>p</arg_key><arg_value>{end}{value}{end}</arg_value>",
    ):
        read = read_foreign(text, 0, closed=True)
        assert read is not None
        assert json.loads(read[0].arguments) == {"p": value}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("\n      a.md\n    ", "a.md"),
        ("\r\n      a.md\r\n    ", "a.md"),
        ("\n\ta b\n\t", "a b"),
        ("\n    ", ""),
        ("\n      \n    ", ""),
        ("\ndef f():\n    pass\n    ", "def f():\n    pass"),
        ("\n    1\n\n  2\n    ", "    1\n\n  2"),
        (" a.md ", " a.md "),
        ("<![CDATA[a & <b>\n]]>", "a & <b>\n"),
        ("\n  <![CDATA[]]>\n  ", ""),
        ("<![CDATA[a]]> or <![CDATA[b]]>", "<![CDATA[a]]> or <![CDATA[b]]>"),
        ("<![CDATA[a</parameter><parameter=b>c]]>", "a</parameter><parameter=b>c"),
        ("<![CDATA[a</parameter></function> <function=w>]]>", "a</parameter></function> <function=w>"),
        ("<![CDATA[a</arg_value><arg_key>b</arg_key><arg_value>c]]>", "a</arg_value><arg_key>b</arg_key><arg_value>c"),
        ("a\n  b\n  ", "a\n  b\n  "),
        ("\n  a.md\n", "  a.md"),
    ],
)
def test_the_indentation_of_its_elements_is_not_of_the_value(written: str, value: str) -> None:
    for text in (
        f"<function=w>\n  <parameter=p>{written}</parameter>\n</function>",
        f"w\n  <arg_key>p</arg_key>\n  <arg_value>{written}</arg_value>\n",
    ):
        read = read_foreign(text, 0, closed=True)
        assert read is not None
        assert json.loads(read[0].arguments) == {"p": value}


@pytest.mark.parametrize("name", ["path", "-n", "$filter", "@id", "2d", "ort.größe", "城市", "a:b/c-d"])
def test_a_parameter_has_any_name_that_a_schema_may_give_it(name: str) -> None:
    read = read_foreign(f"<function=w><parameter={name}>a</parameter></function>", 0, closed=False)
    assert read is not None
    assert json.loads(read[0].arguments) == {name: "a"}


@pytest.mark.parametrize(
    "text",
    [
        "<function=r>\n<parameter=path>\na.m",
        "<function=r><parameter=path>a.md</parameter>",
        "<function=r><parameter=path>a.md",
        "<function=r><parameter=a><function=w></function></parameter></function>",
        "<function=r><parameter=a>1</parameter><parameter=a>2</parameter></function>",
        "<function=r>\n  <parameter=a>\n    if x:\n      y\n  </parameter>\n</function>",
        "<function=r>\n  <parameter=a>\n        return x\n  </parameter>\n</function>",
        "<function=r><parameter=a><![CDATA[x</parameter><parameter=b>y</parameter></function>",
        "<function=r><parameter=a><![CDATA[x</parameter><parameter=b>y]]> z</parameter></function>",
        "r<arg_key>a</arg_key>",
        "r<arg_key>a</arg_key><arg_value>1<arg_key>b</arg_key><arg_value>2</arg_value>",
        "r<arg_key>a</arg_key><arg_value><![CDATA[x</arg_value>",
        "r<arg_key>a</arg_key><arg_value><![CDATA[x</arg_value><arg_key>b</arg_key><arg_value>y]]> z</arg_value>",
        "r(path='a.md'",
        "r(path='a.md', 5)",
        "r(path=a)",
        'r({"path": "a.md"}, 1)',
        'r {"path": "a.md"',
        'r {"name": "w", "arguments": {}}',
        'r {"arguments": {"path": "a.md"}}',
        'r {"function": {"name": "w"}}',
    ],
)
def test_a_call_that_is_cut_or_has_two_readings_has_none(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_foreign(text, 0, closed=True)


def test_keys_and_values_that_nothing_ends_may_go_on() -> None:
    with pytest.raises(UnreadableError):
        read_foreign("r<arg_key>a</arg_key><arg_value>1</arg_value>", 0, closed=False)


PIECES = st.sampled_from(
    ["<function=r>", "<parameter=a>", "</parameter>", "</function>", "<invoke name='r'>", "</invoke>", "r", "(", ")",
     "a=1", ",", " ", "\n", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<![CDATA[",
     "]]>", '{"a": 1}', "{", "}", '"', "x"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join), st.booleans())
def test_any_text_has_a_reading_or_a_reason(text: str, closed: bool) -> None:
    try:
        read = read_foreign(text, 0, closed=closed)
    except UnreadableError:
        return
    if read is None:
        assert begins_foreign(text, 0) is not True
        return
    call, end = read
    assert isinstance(json.loads(call.arguments), dict)
    assert 0 < end <= len(text)


@pytest.mark.parametrize("name", ["function", "tool_name", "name"])
@pytest.mark.parametrize("box", ["arguments", "parameters", "tool_args", "args"])
def test_name_and_arguments_may_stand_in_elements(name: str, box: str) -> None:
    begun = f"<{name}>\nr\n</{name}>\n<{box}>\n"
    text = f'{begun}{{"path": "a.md"}}'
    assert False not in [begins_foreign(text[:end], 0) for end in range(1, len(text))]
    read = read_foreign(f"{text}\n</{box}>", 0, closed=True)
    assert read is not None
    assert (read[0].name, json.loads(read[0].arguments), read[1]) == ("r", NOTE, len(text))
