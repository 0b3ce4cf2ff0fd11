"""Calls that take a rule to be read. Every answer is read at several sizes of delta."""

from __future__ import annotations

import json

import pytest

from tests.parser.blocks import BODY, CALL, R, arguments, block, every_size
from tests.parser.reading import Answer, answer_of, completed, read

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
    "prose after a call that is not closed": (f"<tool_call>{BODY}\nI look.", "\nI look.", [R], ["unclosed"]),
    "a line and half a close tag after a call that is not closed": (
        f"<tool_call>{BODY}\n[1] y</tool", "\n[1] y</tool", [R], ["unclosed"]),
    "much prose after a call that is not closed": (
        f"<tool_call>{BODY}\n" + "I look. " * 200, "\n" + "I look. " * 200, [R], ["unclosed"]),
    "the end of the turn in place of the close tag": (
        f"<tool_call>{BODY}<|im_end|>", "", [R], ["unclosed other-close-tag"]),
    "another close tag": (f"<tool_call>{BODY}</tool>", "", [R], ["unclosed other-close-tag"]),
    "two close tags": (f"<tool_call>{BODY}</function></tool_call>", "", [R], ["other-close-tag"]),
    "tags of an empty element": (f"<tool_call/>{BODY}</tool_call/> ok", " ok", [R], ["tag-spelling"]),
    "an empty element as the close tag": (f"<tool_call>{BODY}<tool_call/> ok", " ok", [R], ["unclosed"]),
    "nothing but open tags": (
        f"<tool_call />{BODY}\n<tool_call />{BODY}", "", [R, R], ["tag-spelling unclosed"] * 2),
    "an open tag as the close tag": (f"<tool_call>{BODY}\n<tool_call>\nok", "\nok", [R], ["unclosed"]),
    "an open tag as the close tag, then a call": (
        f"<tool_call>{BODY}<tool_call>ok{CALL}", "ok", [R, R], ["unclosed", ""]),
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
    "the key in front": (block(f"7qhvxmrtbz {BODY}"), "", [R], ["key-in-front"]),
    "the key in front, with its name": (block(f'key: "7qhvxmrtbz",\n{BODY}'), "", [R], ["key-in-front"]),
    "the key in front of a fence": (
        block(f"7qhvxmrtbz\n```json\n{BODY}\n```"), "", [R], ["key-in-front fence"]),
    "the key in front of several": (
        f"<tool_call>7qhvxmrtbz:\n[{BODY}, {BODY}]", "", [R, R], ["unclosed key-in-front array-of-calls"] * 2),
    "the whole call as a string": (
        block(r'"{\"name\": \"r\", \"arguments\": {\"p\": \"a.md\"}}"'), "", [R], ["call-as-string"]),
    "the whole call escaped": (
        block(r'{\"name\": \"r\", \"arguments\": {\"p\": \"a.md\"}}'), "", [R], ["escaped-json"]),
    "the whole call escaped, with its line ends": (
        block(r'\n{\n  \"name\": \"r\", \"arguments\": {\"p\": \"a.md\"}\n}\n'), "", [R], ["escaped-json"]),
    "the whole call escaped, a brace missing": (
        block(r'{\"name\": \"r\", \"arguments\": {\"p\": \"a.md\"}'), "", [R], ["escaped-json missing-closers"]),
    "the whole call as a string, a brace missing": (
        block(r'"{\"name\": \"r\", \"arguments\": {\"p\": \"a.md\"}"'), "", [R], ["call-as-string missing-closers"]),
    "the whole call escaped as in a page": (
        block("{&quot;name&quot;: &quot;r&quot;, &quot;arguments&quot;: {&quot;p&quot;: &quot;a.md&quot;}}"), "", [R],
        ["escaped-json"]),
    "a query in a call that is escaped as in a page": (
        block("{&quot;name&quot;: &quot;r&quot;, &quot;arguments&quot;: "
              "{&quot;u&quot;: &quot;?a=1&region=eu&copy=2&amp;b=&#39;&lt;&eacute;&quot;}}"),
        "", [("r", '{"u": "?a=1&region=eu&copy=2&b=\'<é"}')], ["escaped-json"]),
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
    "a name with a colon and the arguments": (block('r: {"p": "a.md"}'), "", [R], ["foreign-notation"]),
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
    "other spaces": (
        block('\ufeff{"name":\u00a0"r", "arguments": {"p": "a.md"}}'), "", [R], ["other-spaces"]),
    "line ends that are written as in a string": (
        block(r'\n{\n "name": "r",\n "arguments": {\n  "p": "a\n}"\n }\n}'), "", [("r", r'{   "p": "a\n}"  }')],
        ["other-spaces"]),
    "such line ends behind numbers and brackets": (
        arguments(r'{"p": \n[1,\n2]\n\n}'), "", [("r", '{"p":  [1, 2] }')], ["other-spaces"]),
    "unquoted keys": (block('{name: "r", arguments: {p: 1}}'), "", [("r", '{"p": 1}')], ["unquoted-keys"]),
    "raw control characters": (
        arguments('{"p": "a\n\tb\r\n\x01"}'), "", [("r", r'{"p": "a\n\tb\r\n\u0001"}')], ["control-characters"]),
    "raw line ends in encoded arguments": (
        arguments(r'"{\"p\": \"a\nb\"}"'), "", [("r", r'{"p": "a\nb"}')], ["control-characters"]),
    "invalid escapes": (
        arguments(r'{"p": "\d+ \$x \' \u12"}'), "", [("r", r'''{"p": "\\d+ \\$x \\' \\u12"}''')], ["invalid-escapes"]),
    "lost commas before keys without quotes": (
        block('{name: "r" arguments: {p: "a.md" q: 1 "s": 2}}'), "", [("r", '{"p": "a.md" , "q": 1 , "s": 2}')],
        ["unquoted-keys missing-comma"]),
    "a quote in a string of Python": (
        block("""r(p='5" pipe', q='a')"""), "", [("r", r'{"p": "5\" pipe", "q": "a"}')],
        ["foreign-notation single-quotes"]),
    "an invalid escape beside line ends and tabs": (
        arguments(r'''{"p": "if re.match('\d', x):\n\treturn \\times"}'''), "",
        [("r", r'''{"p": "if re.match('\\d', x):\n\treturn \\times"}''')], ["invalid-escapes"]),
    "Markdown's escapes beside a line end": (
        arguments(r'{"p": "1\. snake\_case\n2\. notes"}'), "",
        [("r", r'{"p": "1\\. snake\\_case\n2\\. notes"}')], ["invalid-escapes"]),
    "TeX on lines of its own": (
        arguments(r'{"p": "$$\n\sum_i\alpha\n$$\n\- \d+ ok"}'), "",
        [("r", r'{"p": "$$\n\\sum_i\\alpha\n$$\n\\- \\d+ ok"}')], ["invalid-escapes"]),
    "a path whose letters are no escapes": (
        arguments(r'{"p": "notes\daily\2024.md"}'), "", [("r", r'{"p": "notes\\daily\\2024.md"}')],
        ["invalid-escapes"]),
    "an invalid escape in a key": (
        arguments(r'{"file\_path": 1, "a\-b": 2}'), "", [("r", '{"file_path": 1, "a-b": 2}')], ["invalid-escapes"]),
    "quotes in a string": (
        arguments('{"p": "say "hi" now"}'), "", [("r", r'{"p": "say \"hi\" now"}')], ["inner-quotes"]),
    "encoded arguments without escapes": (
        arguments('"{"p": "a.md"}"'), "", [R], ["unescaped-object"]),
    "a wrapper with the key": (
        block(f'{{"key": "k", "tool_calls": [{BODY}, {BODY}]}}'), "", [R, R], ["wrapper-object array-of-calls"] * 2),
    "a whole message": (
        block(f'{{"role": "assistant", "content": null, "tool_calls": [{BODY}]}}'), "", [R],
        ["wrapper-object array-of-calls"]),
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


@pytest.mark.parametrize(("text", "visible", "calls", "rules"), REPAIRED.values(), ids=REPAIRED)
def test_a_call_with_one_reading_is_repaired(
    text: str, visible: str, calls: list[tuple[str, str]], rules: list[str]
) -> None:
    for answer in every_size(text):
        assert answer == Answer(visible, calls, "repaired")
    assert [" ".join(call.repairs) for call in completed(read([text]))] == rules


@pytest.mark.parametrize("spare", ["}", "]", ")}"])
def test_a_bracket_too_many_changes_nothing_where_it_could_stand_nowhere_else(spare: str) -> None:
    nested = '{"o": {"a": [1, {"b": 2}], "c": {}}}'
    text = block(f'{{"key": "k", "name": "r", "arguments": {nested}}}{spare}')
    assert answer_of(read([text])).calls == [("r", nested)]
