"""What single answers read as, by what is in them. Every one is read at several sizes of delta."""

from __future__ import annotations

import json

import pytest

from parser import (
    CallCompleted,
    CallMalformed,
    CallStarted,
    ReadingEnded,
    SentinelParser,
)
from tests.parser.reading import Answer, answer_of, completed, cut, merged, read, received

BODY = '{"name": "r", "arguments": {"p": "a.md"}}'
CALL = f"<tool_call>{BODY}</tool_call>"
R = ("r", '{"p": "a.md"}')


def block(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


def arguments(text: str) -> str:
    return block(f'{{"name": "r", "arguments": {text}}}')


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
    "a fence of tildes": f"Like this:\n~~~\n{CALL}\n~~~\nDone.",
    "a fence of four ticks": f"Like this:\n````\n```\n{CALL}\n```\n````\nDone.",
    "ticks do not close tildes": f"~~~\n```\n{CALL}\n~~~",
    "an indented fence": f"1. Like this:\n   ```\n   {CALL}\n   ```\n",
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

# What takes a rule: the answer, its visible text, its calls, the rules.
REPAIRED: dict[str, tuple[str, str, list[tuple[str, str]], list[str]]] = {
    "blanks in the tags": (f"<tool_call >{BODY}</tool_call >", "", [R], ["tag-spelling"]),
    "an upper case open tag": (f"<TOOL_CALL>{BODY}</tool_call>", "", [R], ["tag-spelling"]),
    "an upper case close tag": (f"<tool_call>{BODY}</TOOL_CALL>", "", [R], ["tag-spelling"]),
    "a close tag that is escaped": (f"<tool_call>{BODY}<\\/tool_call> So.", " So.", [R], ["tag-spelling"]),
    "a close tag that is escaped, twice": (
        f"<tool_call>{BODY}\n<\\/tool_call>\n<\\/tool_call>\n{CALL}", "", [R, R], ["tag-spelling", ""]),
    "a close tag that is escaped, behind a repair": (
        f"<tool_call>[{BODY},]<\\/tool_call> So.", " So.", [R], ["tag-spelling trailing-comma array-of-calls"]),
    "half a close tag that is escaped": (f"<tool_call>{BODY}<\\/tool", "", [R], ["unclosed"]),
    "an id in the tag": (f"<tool_call id='c1'>{BODY}</tool_call>", "", [R], ["tag-spelling"]),
    "the name in the tag, too": (f'<tool_call name="r">{BODY}</tool_call>', "", [R], ["tag-spelling"]),
    "the name in the tag alone": (
        '<tool_call name="r">{"p": "a.md"}</tool_call>', "", [R], ["tag-spelling name-in-tag"]),
    "the name in the tag, and a repair": (
        "<tool_call name=\"r\">{'p': \"a.md\"}</tool_call>", "", [R], ["tag-spelling name-in-tag single-quotes"]),
    "the name in the tag": (
        '<tool_call name="r">{"p": "a.md"}</tool_call>', "", [R], ["tag-spelling name-in-tag"]),
    "no close tag": (f"Hm. <tool_call>{BODY}", "Hm. ", [R], ["unclosed"]),
    "no close tag, white space": (f"<tool_call>{BODY}\n\n", "", [R], ["unclosed"]),
    "half a close tag": (f"<tool_call>{BODY}</tool", "", [R], ["unclosed"]),
    "the next call closes": (f"<tool_call>{BODY}\n{CALL}", "", [R, R], ["unclosed", ""]),
    "an open tag closes": (f"<tool_call>{BODY}\n<tool_call>\n", "", [R], ["unclosed"]),
    "an open tag closes two": (f"<tool_call>{BODY}<tool_call>{BODY}<tool_call>", "", [R, R], ["unclosed"] * 2),
    "an open tag after a closed call": (f"{block(BODY + ',')}\n<tool_call>", "\n<tool_call>", [R], ["trailing-text"]),
    "prose after a call that is not closed": (f"<tool_call>{BODY}\nI look.", "\nI look.", [R], ["unclosed"]),
    "a line and half a close tag after a call that is not closed": (
        f"<tool_call>{BODY}\n[1] y</tool", "\n[1] y</tool", [R], ["unclosed"]),
    "much prose after a call that is not closed": (
        f"<tool_call>{BODY}\n" + "I look. " * 200, "\n" + "I look. " * 200, [R], ["unclosed"]),
    "the end of the turn in place of the close tag": (
        f"<tool_call>{BODY}<|im_end|>", "", [R], ["unclosed other-close-tag"]),
    "another close tag": (f"<tool_call>{BODY}</tool>", "", [R], ["unclosed other-close-tag"]),
    "two close tags": (f"<tool_call>{BODY}</function></tool_call>", "", [R], ["other-close-tag"]),
    "two open tags": (f"<tool_call>\n<tool_call>{BODY}</tool_call>", "", [R], ["doubled-opener"]),
    "two of both": (f"<tool_call>{CALL}</tool_call> ok", " ok", [R], ["doubled-opener"]),
    "a close tag twice": (f"{CALL}</tool_call> ok", " ok", [R], [""]),
    "a close tag twice, on its own line": (f"{CALL}\n</tool_call>\n{CALL}", "", [R, R], ["", ""]),
    "a close tag and a half": (f"{CALL}\n</tool_c", "", [R], [""]),
    "three close tags": (
        f"{CALL}</tool_call>\n</tool_call>", "\n</tool_call>", [R], [""]),
    "a close tag twice after an array": (
        block(f"[{BODY}, {BODY}]") + "</tool_call>", "", [R, R], ["array-of-calls"] * 2),
    "a fence in the block": (block(f"```\n{BODY}\n```"), "", [R], ["fence"]),
    "a fence of tildes in the block": (block(f"~~~json\n{BODY}\n~~~"), "", [R], ["fence"]),
    "half a fence and a remark": (
        block(f"```\n{BODY}\nThat reads it."), "\nThat reads it.\n", [R], ["fence trailing-text"]),
    "half a fence in the block": (block(f"```json\n{BODY}"), "", [R], ["fence"]),
    "the whole call as a string": (
        block(r'"{\"name\": \"r\", \"arguments\": {\"p\": \"a.md\"}}"'), "", [R], ["call-as-string"]),
    "the whole call escaped": (
        block(r'{\"name\": \"r\", \"arguments\": {\"p\": \"a.md\"}}'), "", [R], ["escaped-json"]),
    "the whole call escaped, a brace missing": (
        block(r'{\"name\": \"r\", \"arguments\": {\"p\": \"a.md\"}'), "", [R], ["escaped-json missing-closers"]),
    "the whole call as a string, a brace missing": (
        block(r'"{\"name\": \"r\", \"arguments\": {\"p\": \"a.md\"}"'), "", [R], ["call-as-string missing-closers"]),
    "the whole call escaped as in a page": (
        block("{&quot;name&quot;: &quot;r&quot;, &quot;arguments&quot;: {&quot;p&quot;: &quot;a.md&quot;}}"), "", [R],
        ["escaped-json"]),
    "elements": (
        block("<function=r>\n<parameter=p>\na.md\n</parameter>\n</function>"), "", [R], ["foreign-notation"]),
    "elements with quotes and tags in a value": (
        block(f"<function=r>\n<parameter=p>\nit's \"{CALL}\n</parameter>\n</function>"), "",
        [("r", json.dumps({"p": f"it's \"{CALL}"}))], ["foreign-notation"]),
    "elements, no close tag, then a call": (
        f"<tool_call><function=r></function>\n{CALL}", "", [("r", "{}"), R], ["unclosed foreign-notation", ""]),
    "elements in a row": (
        block("<function=r></function><function=w></function>"), "", [("r", "{}"), ("w", "{}")],
        ["several-objects foreign-notation"] * 2),
    "a call of Python": (block("r(p='a.md')"), "", [R], ["foreign-notation single-quotes"]),
    "a name and the arguments": (block('r\n{"p": "a.md"}'), "", [R], ["foreign-notation"]),
    "an array": (block(f"[{BODY}, {BODY}]"), "", [R, R], ["array-of-calls"] * 2),
    "an array, no close tag": (f"<tool_call>[{BODY}]", "", [R], ["unclosed array-of-calls"]),
    "two objects": (block(f"{BODY}{BODY}"), "", [R, R], ["several-objects"] * 2),
    "two objects and a comma": (block(f"{BODY},\n{BODY}"), "", [R, R], ["several-objects"] * 2),
    "a second object that is cut off": (f"<tool_call>{BODY}\n{{\"name\": \"w", "\n{\"name\": \"w", [R], ["unclosed"]),
    "braces too many": (block(BODY + "}}"), "", [R], ["extra-closers"]),
    "a remark before the close tag": (
        block(BODY + "\nThat reads it."), "\nThat reads it.\n", [R], ["trailing-text"]),
    "a remark in a doubled block": (
        f"<tool_call>{block(BODY + ' That reads it.')}</tool_call>", " That reads it.\n", [R],
        ["doubled-opener trailing-text"]),
    "a remark that begins with a letter of its own": (
        block(BODY + "\nX marks it."), "\nX marks it.\n", [R], ["trailing-text"]),
    "signs before the close tag": (block(BODY + " =>\\n"), "", [R], ["trailing-text"]),
    "a close tag in another spelling before it": (block(BODY + "</argu.ments"), "", [R], ["other-close-tag"]),
    "a semicolon": (block(BODY + ";"), "", [R], ["trailing-text"]),
    "braces in braces": (block("{" + BODY + "}"), "", [R], ["doubled-braces"]),
    "trailing commas": (
        block('{"name": "r", "arguments": {"p": [1, 2,],},}'), "", [("r", '{"p": [1, 2]}')], ["trailing-comma"]),
    "a missing comma": (arguments('{"p": 1 "q": 2}'), "", [("r", '{"p": 1 , "q": 2}')], ["missing-comma"]),
    "a missing brace": (block('{"name": "r", "arguments": {"p": 1}'), "", [("r", '{"p": 1}')], ["missing-closers"]),
    "comments": (
        arguments('{"p": 1, // one\n"q": /* two */ 2}'), "", [("r", '{"p": 1, \n"q":  2}')], ["comments"]),
    "Python literals": (
        arguments('{"p": [True, False, None]}'), "", [("r", '{"p": [true, false, null]}')], ["python-literals"]),
    "single quotes": (
        block("{'name': 'r', 'arguments': {'p': 'say \"it\\'s\"'}}"), "",
        [("r", r'''{"p": "say \"it's\""}''')], ["single-quotes"]),
    "single quotes, and a close tag in a string": (
        block("{'name': 'r', 'arguments': {\"p\": \"</tool_call>\"}}"), "", [("r", '{"p": "</tool_call>"}')],
        ["single-quotes"]),
    "curly quotes": (
        block("{“name”: “r”, “arguments”: {“p”: “say \"hi\"”}}"), "",
        [("r", r'{"p": "say \"hi\""}')], ["curly-quotes"]),
    "triple quotes": (
        arguments('{"p": """say\n"hi" """}'), "", [("r", r'{"p": "say\n\"hi\" "}')],
        ["triple-quotes control-characters"]),
    "numbers": (
        arguments('{"p": [.5, 5., +1, 0x1F, 1_000]}'), "", [("r", '{"p": [0.5, 5.0, 1, 31, 1000]}')],
        ["number-spelling"]),
    "other spaces": (
        block('\ufeff{"name":\u00a0"r", "arguments": {"p": "a.md"}}'), "", [R], ["other-spaces"]),
    "unquoted keys": (block('{name: "r", arguments: {p: 1}}'), "", [("r", '{"p": 1}')], ["unquoted-keys"]),
    "raw control characters": (
        arguments('{"p": "a\n\tb\r\n\x01"}'), "", [("r", r'{"p": "a\n\tb\r\n\u0001"}')], ["control-characters"]),
    "raw line ends in encoded arguments": (
        arguments(r'"{\"p\": \"a\nb\"}"'), "", [("r", r'{"p": "a\nb"}')], ["control-characters"]),
    "invalid escapes": (
        arguments(r'{"p": "\d+ \$x \' \u12"}'), "", [("r", r'''{"p": "\\d+ \\$x \\' \\u12"}''')], ["invalid-escapes"]),
    "an invalid escape in a key": (
        arguments(r'{"file\_path": 1, "a\-b": 2}'), "", [("r", '{"file_path": 1, "a-b": 2}')], ["invalid-escapes"]),
    "quotes in a string": (
        arguments('{"p": "say "hi" now"}'), "", [("r", r'{"p": "say \"hi\" now"}')], ["inner-quotes"]),
    "encoded arguments without escapes": (
        arguments('"{"p": "a.md"}"'), "", [R], ["unescaped-object"]),
    "a wrapper": (block(f'{{"tool_calls": [{BODY}]}}'), "", [R], ["wrapper-object array-of-calls"]),
    "calls in parallel": (
        block('{"name": "multi_tool_use.parallel", "arguments": {"tool_uses": [{"recipient_name": "functions.r", '
              '"parameters": {"p": "a.md"}}, {"recipient_name": "w", "parameters": {}}]}}'), "",
        [("functions.r", R[1]), ("w", "{}")], ["wrapper-object alias-keys"] * 2),
    "calls in parallel, all in other words": (
        block('{"key": "k", "recipient_name": "multi_tool_use.parallel", "parameters": {"tool_uses": '
              '[{"name": "r", "arguments": {"p": "a.md"}}]}}'), "", [R], ["alias-keys wrapper-object"]),
    "calls in parallel, as in Python": (
        block('multi_tool_use.parallel({"tool_uses": [{"name": "r", "arguments": {"p": "a.md"}}]})'), "", [R],
        ["foreign-notation wrapper-object"]),
    "a nested function": (
        block('{"id": "c1", "type": "function", "function": ' + BODY + "}"), "", [R], ["nested-call"]),
    "parameters": (block('{"name": "r", "parameters": {"p": "a.md"}}'), "", [R], ["alias-keys"]),
    "args": (block('{"tool": "r", "args": {"p": "a.md"}}'), "", [R], ["alias-keys"]),
    "input": (block('{"function": "r", "input": {"p": "a.md"}}'), "", [R], ["alias-keys"]),
    "keys in title case": (block('{"Name": "r", "Arguments": {"p": "a.md"}}'), "", [R], ["alias-keys"]),
    "no arguments": (block('{"name": "r"}'), "", [("r", "{}")], ["missing-arguments"]),
    "no arguments but an id": (block('{"name": "r", "id": "c"}'), "", [("r", "{}")], ["missing-arguments"]),
    "null": (arguments("null"), "", [("r", "{}")], ["null-arguments"]),
    "an empty string": (arguments('""'), "", [("r", "{}")], ["empty-arguments"]),
    "encoded twice": (
        arguments(r'"\"{\\\"p\\\": 1}\""'), "", [("r", '{"p": 1}')], ["double-encoded"]),
    "the end of encoded arguments swapped": (
        block(r'{"name": "r", "arguments": "{\"p\": 1}}"'), "", [("r", '{"p": 1}')],
        ["missing-closers extra-closers"]),
    "a repair leaves the rest as it is": (
        arguments('{ "n" : 1.10,"s":"\\u00e9" , }'), "", [("r", '{ "n" : 1.10,"s":"\\u00e9"  }')],
        ["trailing-comma"]),
}  # fmt: skip

# What looks like a call and has no reading, or two: the text stays, and it is reported.
MALFORMED = {
    "an empty object": block("{}"),
    "an empty array": block("[]"),
    "no name": block('{"arguments": {}}'),
    "a name that is no string": block('{"name": ["r"], "arguments": {}}'),
    "an empty name": block('{"name": " ", "arguments": {}}'),
    "arguments that are a list": arguments("[1]"),
    "arguments that are a number": arguments("1"),
    "arguments that are prose": arguments('"read a.md"'),
    "arguments that hold more": arguments(r'"{\"p\": 1} and so on"'),
    "a key twice": block('{"name": "r", "name": "w", "arguments": {}}'),
    "a key twice in the arguments": arguments('{"path": "safe.md", "path": "evil.md"}'),
    "a key twice in the arguments, once escaped": arguments(r'{"path": "safe.md", "p\u0061th": "evil.md"}'),
    "a key twice deep in the arguments": arguments('{"a": [{"n": 1, "n": 2}]}'),
    "a key twice in arguments in a string": arguments(r'"{\"n\": 1, \"n\": 2}"'),
    "a key twice, and a repair": arguments("{'n': 1, 'n': 2,}"),
    "half a surrogate pair": arguments(r'{"p": "\ud83d"}'),
    "the other half of a surrogate pair": arguments(r'{"p": "\uDE00\ud83d"}'),
    "half a surrogate pair in a key": arguments(r'{"\ud83d": 1}'),
    "half a surrogate pair in a string": arguments(r'"{\"p\": \"\ud83d\"}"'),
    "arguments twice": block('{"name": "r", "arguments": {}, "parameters": {"p": 1}}'),
    "members but no arguments": block('{"name": "r", "p": "a.md"}'),
    "nested too deep": arguments('{"a": ' + "[" * 64 + "]" * 64 + "}"),
    "one bad call of two": block(f'[{BODY}, {{"name": 7}}]'),
    "NaN": arguments('{"n": NaN}'),
    "a bare word": arguments('{"p": a.md}'),
    "a number that may be octal": arguments('{"p": 007}'),
    "strings in a sum": arguments('{"p": "a" + "b"}'),
    "strings in a row": arguments('{"p": "a" "b"}'),
    "a quote in a comment": arguments('{"p": "say "#1" now"\n}'),
    "curly quotes in curly quotes": arguments("{“p”: “say “hi” now”}"),
    "another name in the tag": f'<tool_call name="w">{BODY}</tool_call>',
    "a function that does not end": block("<function=r>\n<parameter=p>\na.md"),
    "a call of Python without keywords": block('r({"p": 1}, 2)'),
    "prose that looks like a call of Python": "the <tool_call> foo() then",
    "a call of Python that is not closed": "<tool_call>r(p='a.md')",
    "elements that are not closed, and prose": "<tool_call><function=r></function> is how",
    "a call beside a name": block(f"w {BODY}"),
    "two commas": arguments('{"p": 1,, "q": 2}'),
    "a bracket of the wrong kind": arguments('{"p": [1, 2}'),
    "cut in a string": "<tool_call>" + BODY[:-6],
    "cut after a value": "<tool_call>" + BODY[:-2],
    "cut before the last brace": "<tool_call>" + BODY[:-1],
    "cut in an array of calls": f"<tool_call>[{BODY}, ",
    "a quote that does not end": block('{"name": "r", "arguments": {"p": "a.md}}'),
    "an odd quote in a string": arguments('{"p": "say "hi now"}'),
    "quotes that may end a string": arguments('{"p": "say "a", "q": "b" now"}'),
    "a path with single backslashes": arguments(r'{"p": "C:\dir\new"}'),
    "a bracket that may belong elsewhere": block('{"name": "r", "arguments": {}, "p": 1}}'),
    "no calls in parallel": block('{"name": "multi_tool_use.parallel", "arguments": {"tool_uses": []}}'),
    "half a call in parallel": block(
        '{"name": "multi_tool_use.parallel", "arguments": {"tool_uses": [{"parameters": {"p": "a.md"}}]}}'
    ),
    "calls in parallel under no word for them": block(
        f'{{"name": "multi_tool_use.parallel", "arguments": {{"uses": [{BODY}]}}}}'
    ),
    "one call in parallel": block(f'{{"name": "multi_tool_use.parallel", "arguments": {{"tool_uses": {BODY}}}}}'),
    "calls in parallel, and more": block(
        f'{{"name": "multi_tool_use.parallel", "arguments": {{"tool_uses": [{BODY}], "p": 1}}}}'
    ),
    "calls in parallel, and a member": block(
        f'{{"name": "multi_tool_use.parallel", "arguments": {{"tool_uses": [{BODY}]}}, "p": 1}}'
    ),
    "an invalid escape in a key that may be anything": arguments(r'{"\path": 1}'),
    "an escaped close tag in a call that is escaped": (
        r"<tool_call>{\"name\": \"r\", \"arguments\": {\"p\": \"x<\/tool_call> y}}</tool_call>"
    ),
    "a pair that is not whole": block(
        "w<arg_key>path</arg_key><arg_value>a.md</arg_value><arg_key>content</arg_key>hello world</arg_value>"
    ),
    "a word between two pairs": block(
        "w<arg_key>a</arg_key><arg_value>1</arg_value>x<arg_key>b</arg_key><arg_value>2</arg_value>"
    ),
    "a parameter whose tag is broken": block(
        "<function=w><parameter=a>1</parameter><para.meter=b>2</parameter></function>"
    ),
    "no arguments, and a member": block('{"name": "r", "arguments": null, "p": "a.md"}'),
    "empty arguments, and a member": block('{"name": "r", "arguments": "", "p": "a.md"}'),
    "no arguments, and some behind the object": block('{"name": "r"}, "arguments": {"p": "a.md"}}'),
    "no arguments, and an object of them": block('{"name": "r"}\n{"arguments": {"p": "a.md"}}'),
    "no arguments, and a parameter": block('{"name": "r"}\n<parameter=p>a.md</parameter>'),
    "no arguments, and an object under their name": block('{"name": "r"}\narguments: {"p": "a.md"}'),
    "no arguments, and a keyword": block('{"name": "r"}\np=a.md'),
    "no arguments, and words": block('{"name": "r"}\nThat reads it.'),
    "no arguments, and another call": block('{"name": "r"}' + BODY),
    "no arguments, not closed, and a member": '<tool_call>{"name": "r"}, "arguments": {"p": "a.md"}}',
    "no arguments, not closed, and an object of them": '<tool_call>{"name": "r"}\n{"arguments": {"p": "a.md"}}',
    "no arguments, not closed, and a line": '<tool_call>{"name": "r"}\nI look.',
    "a member behind the call": block(BODY + ', "q": 2'),
    "a member behind a call that is not closed": f'<tool_call>{BODY}, "q": 2}}',
    "a keyword behind a call that is not closed": f"<tool_call>{BODY}\nq=2",
    "a parameter behind a call that is not closed": f"<tool_call>{BODY}\n<parameter=q>2</parameter>",
    "a brace that may have come too early": arguments('{"o": {"a": 1}, "b": 2}}'),
    "a brace that may have come before the id": block('{"name": "r", "arguments": {"p": 1}, "id": "x"}}'),
    "a missing brace that may have come earlier": block('{"name": "r", "arguments": {"o": {"a": 1, "b": 2}}'),
    "a bracket in a comment": arguments('{"o": {"p": 1 # }\n}'),
    "a name in the tag and alone in the object": '<tool_call name="r">{"name": "r"} so</tool_call>',
    "encoded arguments without escapes that nothing ends": block('{"name": "r", "arguments": "{"p": 1}x}'),
    "JSON in a string of the arguments, not escaped": arguments('{"p": "{"name": "x", "arguments": {}}"}'),
}


def every_size(text: str) -> list[Answer]:
    return [answer_of(read(cut(text, size))) for size in (1, 2, 3, 7, 16, 0)]


@pytest.mark.parametrize(("text", "visible", "calls"), VALID.values(), ids=VALID)
def test_a_well_formed_call_is_read(text: str, visible: str, calls: list[tuple[str, str]]) -> None:
    for answer in every_size(text):
        assert answer == Answer(visible, calls, "ok")


@pytest.mark.parametrize("text", TEXT.values(), ids=TEXT)
def test_text_stays_text(text: str) -> None:
    for answer in every_size(text):
        assert answer == Answer(text, [], "ok")


@pytest.mark.parametrize(("text", "visible", "calls", "rules"), REPAIRED.values(), ids=REPAIRED)
def test_a_call_with_one_reading_is_repaired(
    text: str, visible: str, calls: list[tuple[str, str]], rules: list[str]
) -> None:
    for answer in every_size(text):
        assert answer == Answer(visible, calls, "repaired")
    assert [" ".join(call.repairs) for call in completed(read([text]))] == rules


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_block_without_one_reading_stays_in_the_text(text: str) -> None:
    for answer in every_size(f"So: {text}"):
        assert answer == Answer(f"So: {text}", [], "malformed")


@pytest.mark.parametrize("rest", [" and so on.", ".", ", or `x`"])
def test_a_call_without_arguments_in_a_sentence_is_text(rest: str) -> None:
    begun = '<tool_call>{"name": "r"}'
    for size in (1, 2, 3, 7, 0):
        events = read(cut(f"As in {begun}{rest} {CALL}", size))
        assert answer_of(events) == Answer(f"As in {begun}{rest} ", [R], "malformed")
        [mention] = [event for event in events if isinstance(event, CallMalformed)]
        assert (mention.raw, mention.meant) == (begun, False)


@pytest.mark.parametrize("spare", ["}", "]", ")}"])
def test_a_bracket_too_many_changes_nothing_where_it_could_stand_nowhere_else(spare: str) -> None:
    nested = '{"o": {"a": [1, {"b": 2}], "c": {}}}'
    text = block(f'{{"key": "k", "name": "r", "arguments": {nested}}}{spare}')
    assert answer_of(read([text])).calls == [("r", nested)]


@pytest.mark.parametrize("text", [text for text in MALFORMED.values() if text.endswith("</tool_call>")])
def test_a_call_after_a_malformed_one_is_read(text: str) -> None:
    for answer in every_size(f"{text}\n{CALL}"):
        assert answer == Answer(f"{text}\n", [R], "malformed")


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


def test_a_call_is_told_while_it_is_written() -> None:
    parser = SentinelParser()
    steps: list[tuple[str, list[object]]] = [
        ("Hi. <tool_call>{", ["Hi. "]),
        ('"name": "r"', [CallStarted(0, "r", None)]),
        (', "arguments": ', []),
        ('{"p', ['{"p']),
        ('": "a', ['": "a']),
        ("\\", []),
        ("n.md", ["\\n.md"]),
        ('"', []),
        (",", ['"']),
        (' "n": 1', [', "n": ']),
        ("0", []),
        ("}", ["10}"]),
        ("}", []),
    ]
    for text, events in steps:
        assert parser.receive_text(text) == events
    assert [type(event) for event in parser.receive_text("</tool_call>")] == [CallCompleted]
    assert parser.receive_eof() == []


def test_encoded_arguments_are_told_while_they_are_written() -> None:
    parser = SentinelParser()
    steps: list[tuple[str, list[object]]] = [
        ('<tool_call>{"name": "r", "x": "', [CallStarted(0, "r", None)]),
        ("words", []),
        ('", "arguments": "{', ["{"]),
        (r"\"p\": 1", ['"p": ']),
        (r", \"q\": [", ['1, "q": [']),
        ("12, ", ["12"]),
        ('3]}"', [", 3]}"]),
    ]
    for text, events in steps:
        assert parser.receive_text(text) == events


def test_behind_a_call_that_is_not_closed_text_is_not_held_for_long() -> None:
    parser = SentinelParser()
    said = received(parser.receive_text(f"<tool_call>{BODY}\n" + "I look. " * 200))
    assert said.endswith("I look. " * 100)


@pytest.mark.parametrize("size", [1, 7, 0])
def test_what_was_only_held_is_told_at_the_end(size: int) -> None:
    text = '<tool_call>{"key": 5, "name": "r"'
    assert read(cut(text, size)) == [
        CallStarted(0, "r", None, (("key", "5"),)),
        CallMalformed("the call is cut off", text, 0),
    ]


def test_a_call_that_is_cut_off_is_never_finished() -> None:
    text = '<tool_call>{"name": "w", "arguments": {"p": "half a sen'
    assert merged(read(cut(text, 3))) == [
        CallStarted(0, "w", None),
        '{"p": "half a sen',
        CallMalformed("the call is cut off", text, 0),
    ]


def test_a_repair_continues_what_was_told() -> None:
    text = arguments('{"p": "a",}')
    assert merged(read(cut(text, 1))) == [
        CallStarted(0, "r", None),
        '{"p": "a"}',
        *completed(read([text])),
    ]


@pytest.mark.parametrize(
    ("members", "call_id"),
    [('"id": "c1"', "c1"), ('"call_id": "c2"', "c2"), ('"id": "c1", "call_id": "c2"', "c2"), ('"id": 3', None)],
)
def test_an_id_is_kept_if_it_is_a_string(members: str, call_id: str | None) -> None:
    for text in (f'{{{members}, "name": "r", "arguments": {{}}}}', f'{{"name": "r", "arguments": {{}}, {members}}}'):
        [call] = completed(read([block(text)]))
        assert call.id == call_id


@pytest.mark.parametrize(
    "tags", [("<TOOL_CALL>", "</tool_call>"), ("<tool_call>", "</tool_call >"), ("<tool_call>", "")]
)
def test_a_call_with_other_tags_has_its_id_and_members(tags: tuple[str, str]) -> None:
    text = tags[0] + '{"id": "c1", "name": "r", "x": 1, "arguments": {}}' + tags[1]
    [call] = completed(read([text]))
    assert (call.id, call.extra, call.raw) == ("c1", (("x", "1"),), text)


def test_other_members_are_kept_as_they_were_written() -> None:
    [call] = completed(read([block('{"key": "n1", "name": "r", "arguments": {}, "x": [1,  2]}')]))
    assert call.extra == (("key", '"n1"'), ("x", "[1,  2]"))


def test_calls_in_parallel_have_the_members_of_what_holds_them() -> None:
    text = (
        '{"key": "k", "name": "multi_tool_use.parallel", "arguments": {"tool_uses": [%s, {"key": "l", "name": "w"}]}}'
    )
    assert [call.extra for call in completed(read([block(text % BODY)]))] == [(("key", '"k"'),), (("key", '"l"'),)]


def test_of_several_calls_the_first_carries_the_block() -> None:
    text = block(f"[{BODY}, {BODY}]")
    assert [call.raw for call in completed(read([text]))] == [text, ""]


def test_white_space_before_a_call_comes_with_it() -> None:
    text = f" \n{CALL}\n\n{block(f'[{BODY}, {BODY}]')}\t{CALL} so {CALL}\n"
    for size in (1, 7, 0):
        assert [call.before for call in completed(read(cut(text, size)))] == [" \n", "\n\n", "", "\t", ""]


def test_white_space_before_a_malformed_block_is_kept() -> None:
    text = f"{CALL}\n\n{block('{}')}\n{CALL}"
    assert answer_of(read(cut(text, 1))).text == f"\n\n{block('{}')}\n"


def test_a_call_that_is_too_long_comes_back_as_text() -> None:
    text = arguments('{"p": "' + "x" * 200 + '"}')
    for size in (1, 7, 0):
        events = read(cut(text + CALL, size), SentinelParser(max_call_chars=100))
        assert answer_of(events) == Answer(text, [R], "malformed")


@pytest.mark.parametrize("unit", ["xx", r"x\n", r"\u00e9"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_it_is_too_long_at_the_same_character_however_it_is_cut(unit: str, size: int) -> None:
    begun = ['<tool_call>{"name": "r", "arguments": {"p": "', "plain ", "words "]
    text = unit * 60
    whole = merged(read(["".join(begun) + text], SentinelParser(max_call_chars=100)))
    assert any(isinstance(event, CallMalformed) for event in whole)
    for at in range(6):
        pieces = [*begun, *cut(text[:at], 6), *cut(text[at:], size)]
        assert merged(read(pieces, SentinelParser(max_call_chars=100))) == whole


def test_after_a_broken_string_nothing_is_repaired() -> None:
    """What follows may stand inside of that string: only a call that is well-formed is read there."""
    text = block('{"name": "r", "arguments": {"p": "a.md}}')
    assert answer_of(read([f"{text}\n{block(BODY + '}')}"])).calls == []
    assert answer_of(read([f"{text}\n{CALL}"])).calls == [R]


def test_openers_of_results_can_be_chosen() -> None:
    for size in (1, 7, 0):
        parser = SentinelParser(result_openers=("[user]",))
        answer = answer_of(read(cut(f"{CALL}\n[tool:x]\n[User] hi", size), parser))
        assert answer == Answer("\n[tool:x]\n", [R], "repaired")


@pytest.mark.parametrize("opener", ["", "<", "(result", "<tool", "<tool_call>x", "<TOOL_CALL>"])
def test_an_opener_of_results_is_none_of_calls(opener: str) -> None:
    with pytest.raises(ValueError, match="opener"):
        SentinelParser(result_openers=(opener,))


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
