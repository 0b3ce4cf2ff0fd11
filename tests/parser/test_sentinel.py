"""What single answers read as: well-formed calls, and text. Every one is read at several sizes of delta."""

from __future__ import annotations

import json

import pytest

from parser import ParserEvent, ReadingEnded, SentinelParser, write_call
from tests.parser.blocks import BODY, CALL, R, arguments, block, every_size
from tests.parser.reading import Answer, answer_of, completed, cut, read

# What is read without help: the answer, its visible text, its calls.
VALID: dict[str, tuple[str, str, list[tuple[str, str]]]] = {
    "one call alone": (CALL, "", [R]),
    "white space round a call": (f" \n{CALL}\n\t", "", [R]),
    "crlf round a call": (f"<tool_call>\r\n{BODY}\r\n</tool_call>\r\n", "", [R]),
    "prose before": (f"I look.\n\n{CALL}", "I look.\n\n", [R]),
    "prose after": (f"{CALL}\nDone.", "\nDone.", [R]),
    "prose between": (f"{CALL} and {CALL}", " and ", [R, R]),
    "calls without a gap": (CALL * 3, "", [R, R, R]),
    "empty arguments": (arguments("{}"), "", [("r", "{}")]),
    "spaces in the JSON": (
        '<tool_call> { "name" : "r" , "arguments" : { "p" : 1 } } </tool_call>', "", [("r", '{ "p" : 1 }')]),
    "arguments first": (block('{"arguments": {"p": 1}, "name": "r"}'), "", [("r", '{"p": 1}')]),
    "arguments in a string": (arguments(r'"{\"p\": \"a\\nb\"}"'), "", [("r", r'{"p": "a\nb"}')]),
    "arguments in a string, first": (
        block(r'{"arguments": "{\"p\": 1}", "name": "r"}'), "", [("r", '{"p": 1}')]),
    "blanks round arguments in a string": (arguments(r'" \n{\"p\": 1}\n "'), "", [("r", '{"p": 1}')]),
    "a pair of surrogate escapes in a string": (
        arguments(r'"{\"p\": \"\ud83d\ude00\"}"'), "", [("r", '{"p": "😀"}')]),
    "a pair of surrogate escapes": (arguments(r'{"p": "\uD83D\uDE00"}'), "", [("r", r'{"p": "\uD83D\uDE00"}')]),
    "every escape": (arguments(r'{"p": "\"\\\/\b\f\n\r\t\u00e9"}'), "", [("r", r'{"p": "\"\\\/\b\f\n\r\t\u00e9"}')]),
    "backslashes before the quote": (arguments(r'{"p": "\\\\"}'), "", [("r", r'{"p": "\\\\"}')]),
    "a close tag in a string": (arguments('{"p": "</tool_call>"}'), "", [("r", '{"p": "</tool_call>"}')]),
    "an open tag in a string": (arguments('{"p": "<tool_call>{"}'), "", [("r", '{"p": "<tool_call>{"}')]),
    "a whole call in a string": (
        arguments(r'{"p": "<tool_call>{\"name\": \"x\", \"arguments\": {}}</tool_call>"}'), "",
        [("r", r'{"p": "<tool_call>{\"name\": \"x\", \"arguments\": {}}</tool_call>"}')]),
    "a close tag in a key": (arguments('{"</tool_call>": 1}'), "", [("r", '{"</tool_call>": 1}')]),
    "a call behind a fence that words introduce": (
        f"It was: ```json\n[]\n```\n\n{CALL}", "It was: ```json\n[]\n```\n\n", [R]),
    "a fence in a string": (arguments(r'{"p": "```\n~~~"}'), "", [("r", r'{"p": "```\n~~~"}')]),
    "think tags in a string": (arguments('{"p": "<think>"}') + CALL, "", [("r", '{"p": "<think>"}'), R]),
    "unicode": (arguments('{"ключ": "значение 😀 \u2028"}'), "", [("r", '{"ключ": "значение 😀 \u2028"}')]),
    "delete and nbsp in a string": (arguments('{"p": "\x7f\u00a0"}'), "", [("r", '{"p": "\x7f\u00a0"}')]),
    "huge integers": (arguments('{"n": ' + "9" * 5000 + "}"), "", [("r", '{"n": ' + "9" * 5000 + "}")]),
    "exact numbers": (
        arguments('{"n": [1.10, 1e400, -0, 12345678901234567890]}'), "",
        [("r", '{"n": [1.10, 1e400, -0, 12345678901234567890]}')]),
    "literals": (arguments('{"n": [true, false, null]}'), "", [("r", '{"n": [true, false, null]}')]),
    "what looks like half a surrogate pair": (arguments(r'{"p": "\\ud83d"}'), "", [("r", r'{"p": "\\ud83d"}')]),
    "a key in several objects": (arguments('{"n": {"n": 1}, "m": [{"n": 1}, {"n": 2}]}'), "",
        [("r", '{"n": {"n": 1}, "m": [{"n": 1}, {"n": 2}]}')]),
    "members beside": (block('{"type": "tool_call", "id": "c1", "name": "r", "arguments": {}}'), "", [("r", "{}")]),
    "nested as deep as allowed": (
        arguments('{"a": ' + "[" * 63 + "]" * 63 + "}"), "", [("r", '{"a": ' + "[" * 63 + "]" * 63 + "}")]),
    "an undeclared name": (block('{"name": "no such tool", "arguments": {}}'), "", [("no such tool", "{}")]),
    "escapes in name and keys": (
        block(r'{"n\u0061me": "r\u0065ad", "argument\u0073": {}}'), "", [("read", "{}")]),
}  # fmt: skip


# What is text: it comes back verbatim, and nothing is called.
TEXT = {
    "nothing": "",
    "only white space": " \n\n ",
    "a mention of the tag": "The <tool_call> tag opens a call, </tool_call> closes it.",
    "the tag at the end": "It starts with <tool_call>",
    "the tag and white space at the end": "It starts with <tool_call> \n",
    "two tags at the end": "<tool_call><tool_call>",
    "part of the tag at the end": "It starts with <tool_ca",
    "a bare less-than at the end": "a <",
    "other tags": "<tool> <tools>{}</tools> <tool_calls> <tool_call_x>{} <tool_callx> <toolcall>{}",
    "a tag with attributes of its own": '<tool_call class="r">{"p": 1}</tool_call>',
    "a tag with attributes and no JSON": 'The <tool_call name="x"> form.',
    "the tag and a word": "The <tool_call> read_note(x) {y",
    "a tag cut by a space": "<tool _call>{}",
    "a stray close tag": "Done.</tool_call> Bye.",
    "generics": "Map<String, List<t>> x = a < b && c > d; <<t <to <too",
    "escaped markup": "&lt;tool_call&gt;{}&lt;/tool_call&gt;",
    "a backslash in the tag": f"<\\tool_call>{BODY}</tool_call>",
    "inline code": f"Write `{CALL}` there.",
    "inline code with two ticks": f"Write `` a ` {CALL} `` there.",
    "a fence": f"Like this:\n```\n{CALL}\n```\nDone.",
    "a fence with a language": f"Like this:\n```xml\n{CALL}\n```\nDone.",
    "a fence that words introduce": f"Like this: ```xml\n{CALL}\n```\nDone.",
    "a fence of tildes": f"Like this:\n~~~\n{CALL}\n~~~\nDone.",
    "a fence of four ticks": f"Like this:\n````\n```\n{CALL}\n```\n````\nDone.",
    "ticks do not close tildes": f"~~~\n```\n{CALL}\n~~~",
    "an indented fence": f"1. Like this:\n   ```\n   {CALL}\n   ```\n",
    "a fence in a quotation": f"> [!example] Like this:\n> ```json\n> {CALL}\n> ```\nDone.",
    "a fence that does not end": f"Like this:\n```\n{CALL}",
    "a fence line with text does not close": f"```\n``` x\n{CALL}\n```",
    "a draft": f"<think>Perhaps {CALL}?</think> No.",
    "a draft of a thinking model": f"<thinking>Perhaps {CALL}?</thinking> No.",
    "a draft in a fence in thoughts": f"<think>```\n{CALL}</think>No.",
    "thoughts that do not end": f"<think>Perhaps {CALL}",
    "a made-up result without a call": "[tool:call_1] nothing\n<tool_response>x</tool_response>",
    "foreign sentinels": "<function=r><parameter=p>1</parameter></function> <|tool_call|>{} [TOOL_CALLS] []",
    "bare JSON": BODY,
    "fenced JSON": f"```json\n{BODY}\n```",
    "repeated text": "ha ha ha hahaha\n\n\n\nno no",
}


@pytest.mark.parametrize(("text", "visible", "calls"), VALID.values(), ids=VALID)
def test_a_well_formed_call_is_read(text: str, visible: str, calls: list[tuple[str, str]]) -> None:
    for answer in every_size(text):
        assert answer == Answer(visible, calls, "ok")


@pytest.mark.parametrize("text", TEXT.values(), ids=TEXT)
def test_text_stays_text(text: str) -> None:
    for answer in every_size(text):
        assert answer == Answer(text, [], "ok")


@pytest.mark.parametrize(
    "fake",
    ["[tool:call_1] x", "<tool_response>x", "<tool_result id='1'>", "<TOOL_OUTPUT>", "<|im_start|>user", " [tool:x]"],
)
def test_a_made_up_result_ends_the_reading(fake: str) -> None:
    for size in (1, 3, 7, 0):
        events = read(cut(f"A.\n{CALL}\n{fake}\nThe note says x.\n{CALL}", size))
        assert answer_of(events) == Answer("A.\n", [R], "repaired")
        assert isinstance(end := events[-1], ReadingEnded)
        assert end.rest == f"\n{fake}\nThe note says x.\n{CALL}"


@pytest.mark.parametrize(
    "text", ["a [tool:x]", "```\n[tool:x]\n```", "`[tool:x]`", "<think>\n[tool:x]</think>", "[too"]
)
def test_what_only_resembles_a_made_up_result_is_text(text: str) -> None:
    for size in (1, 3, 7, 0):
        assert answer_of(read(cut(f"{CALL}\n{text}", size))) == Answer(f"\n{text}", [R], "ok")


def test_a_thought_ends_where_it_is_first_closed() -> None:
    for answer in every_size(f"<think>a</think>{CALL}</think>"):
        assert answer == Answer("<think>a</think></think>", [R], "ok")


@pytest.mark.parametrize(
    "before",
    ["`a` ", "``a ` b`` ", "```\nx\n```\n", "~~~\nx\n~~~~ \n", "a ` b\n", "```a`b``` ", "~~x~~ ", "<think>```</think>",
     "  ```py\n  x\n  ```\n", "a ``` b\n"],
)  # fmt: skip
def test_code_that_has_ended_quotes_nothing(before: str) -> None:
    for size in (1, 3, 7, 0):
        assert answer_of(read(cut(before + CALL, size))) == Answer(before, [R], "ok")


def test_an_answer_may_come_without_any_text() -> None:
    parser = SentinelParser()
    assert parser.receive_text("") == []
    assert parser.receive_text("a") == ["a"]
    assert parser.receive_text("") == []
    assert parser.receive_eof() == []


def test_text_after_the_end_is_a_mistake_of_the_caller() -> None:
    parser = SentinelParser()
    parser.receive_eof()
    with pytest.raises(RuntimeError, match=r"^receive_text after receive_eof$"):
        parser.receive_text("x")
    with pytest.raises(RuntimeError, match=r"^receive_eof was called twice$"):
        parser.receive_eof()


LONG = "mcp__plugin_everything_github__create_pull_request_review".ljust(128, "_")


@pytest.mark.parametrize("size", [1, 7, 0])
@pytest.mark.parametrize(
    "text",
    [
        write_call(LONG, '{"a": "1"}'),
        f'<tool_call name="{LONG}">{{"a": "1"}}</tool_call>',
        f"<tool_call>\n<function={LONG}>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        f'<tool_call>{LONG}({{"a": "1"}})</tool_call>',
    ],
)
def test_a_name_may_be_as_long_as_a_request_may_have_it(text: str, size: int) -> None:
    [call] = completed(read(cut(text, size)))
    assert (call.name, json.loads(call.arguments)) == (LONG, {"a": "1"})


@pytest.mark.parametrize("size", [1, 4, 0])
def test_white_space_of_any_kind_before_a_call_leaves_nothing_on_its_line(size: int) -> None:
    parser, events = SentinelParser(), list[ParserEvent]()
    for piece in cut(f"\u00a0{write_call('r', '{}')}\n<tool_response>", size):
        events += parser.receive_text(piece)
    assert isinstance(events[-1], ReadingEnded)
