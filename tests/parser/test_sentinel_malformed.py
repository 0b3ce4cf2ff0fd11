"""What looks like a call and is none. Every answer is read at several sizes of delta."""

from __future__ import annotations

import pytest

from parser import CallMalformed, SentinelParser
from tests.parser.blocks import BODY, CALL, R, arguments, block, every_size
from tests.parser.reading import Answer, answer_of, cut, merged, read

# What looks like a call and has no reading, or two: the text stays, and it is reported.
MALFORMED = {
    "an empty block": block(""),
    "nothing at all": "<tool_call></tool_call>",
    "an empty block in two tags": "<tool_call><tool_call>\n</tool_call>",
    "an empty block behind a sentence": "I look it up. <tool_call></tool_call>",
    "a code span": block(f"`{BODY}`"),
    "a name alone": block("read_note"),
    "no JSON but YAML": block("name: r\narguments:\n  p: a.md"),
    "a word on a line": "I look it up.\n<tool_call>null</tool_call> Done.",
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
    "a word with a colon in quotes in a string": arguments('{"p": "s.split("data:")", "q": 1}'),
    "a word with a colon in quotes in the last string": arguments('{"p": "s.split(" data: ")"}'),
    "a word with a colon in quotes among keys without": block('{name: "r", arguments: {p: "s.split("data:")"}}'),
    "a key with a colon in quotes in a string": arguments("""{"p": "s.split("'data':")"}"""),
    "a block in a string of Python": block("""w(text='as in <tool_call>{"name": "x", "arguments": {}}', n=1)"""),
    "a path without a drive": arguments(r'{"p": "notes\daily\today.md"}'),
    "a path without a drive, and blanks": arguments(r'{"p": "My notes\daily\to do.md"}'),
    "a path of a server": arguments(r'{"p": "\\nas\share\new"}'),
    "a pattern of which half is escapes": arguments(r'{"p": "\bword\d+"}'),
    "escapes of characters, of which JSON knows half": arguments(r"""{"p": "'\0\r\n\x85'"}"""),
    "a pattern with an escape of JSON beside it": arguments(r'{"p": "\t\d+"}'),
    "TeX of which half is escapes": arguments(r'{"p": "$\alpha + \frac{1}{2}$"}'),
    "TeX that begins like a tab": arguments(r'{"p": "$\alpha \times 2$"}'),
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


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_block_without_one_reading_stays_in_the_text(text: str) -> None:
    for answer in every_size(f"So: {text}"):
        assert answer == Answer(f"So: {text}", [], "malformed")


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ('<tool_call>{"name": "r"}', " and so on."),
        ('<tool_call>{"name": "r"}', "."),
        ('<tool_call>{"name": "r"}', ", or `x`"),
        ("<tool_call> {then d", "escribe it} in your docs."),
        ("<tool_call>{name,", " arguments}."),
        ("<tool_call> {...", "}: so."),
    ],
)
def test_what_stands_in_brackets_behind_a_tag_in_a_sentence_is_a_mention(begun: str, rest: str) -> None:
    for size in (1, 2, 3, 7, 0):
        events = read(cut(f"As in {begun}{rest} {CALL}", size))
        assert answer_of(events) == Answer(f"As in {begun}{rest} ", [R], "malformed")
        [mention] = [event for event in events if isinstance(event, CallMalformed)]
        assert (mention.raw, mention.meant) == (begun, False)


# Blocks that nobody can read or run, each with a placeholder: for the name or for all, and for something else.
NAMELESS = [
    '{"name": "...", "arguments": {...}}',
    '{"name": "...", "arguments": {}}',
    '{"name": "<name>", "arguments": {"path": "<path>"}}',
    '{"key": "k", "name": "<tool name>", "arguments": {"<parameter>": <value>}}',
    '{"arguments": {"path": "a"}, "key": "k", "name": "{{ .Name }}"}',
    '{"name": <name>, "arguments": {{ .X }}}',
    "{'name': '...', 'args': {'path': '...'}}",
    "{...}",
    "{{ .ToolCall }}",
    '\n{"name": "...", "arguments": {...}}\n',
]
NAMED = [
    '{"name": "read_note", "arguments": {...}}',
    '{"name": "read_note", "arguments": {"path": "a.md", ...}}',
    '{"name": "read_note", "arguments": {"name": ...}}',
    '{"name": "read_note", "arguments": "{...}"}',
    '[{"name": "r", "arguments": {}}, ...]',
    "read_note(path=...)",
]
FORMS = NAMELESS + NAMED
IN_FRONT = ["So: ", "One.\n- A call is ", "> Write `x`, then ", f"{CALL} So: ", "<think>a</think> Ja: ", "\u5199 "]


@pytest.mark.parametrize("body", FORMS)
@pytest.mark.parametrize("before", IN_FRONT)
def test_a_form_of_placeholders_in_a_sentence_is_a_mention(before: str, body: str) -> None:
    form = f"<tool_call>{body}</tool_call>"
    whole = merged(read([f"{before}{form}, as the docs say."]))
    assert isinstance(mention := whole[-2], CallMalformed)
    assert (mention.raw, mention.meant, whole[-1]) == (form, False, ", as the docs say.")
    for size in (1, 2, 3, 7):
        assert merged(read(cut(f"{before}{form}, as the docs say.", size))) == whole


ON_ITS_OWN = ["", "So:\n", "So:\n- ", "1. ", "> ", f"So: {CALL}\n", "So: <tool_call>{]}</tool_call>\n"]


@pytest.mark.parametrize("body", NAMED)
@pytest.mark.parametrize("before", ON_ITS_OWN)
def test_on_a_line_of_its_own_it_is_as_any_other_block(before: str, body: str) -> None:
    for size in (1, 3, 0):
        events = read(cut(f"{before}<tool_call>{body}</tool_call> is the form.", size))
        assert all(event.meant for event in events if isinstance(event, CallMalformed))


@pytest.mark.parametrize("body", NAMELESS)
@pytest.mark.parametrize("before", ON_ITS_OWN)
def test_what_names_no_tool_is_a_mention_there_too(before: str, body: str) -> None:
    form = f"<tool_call>{body}</tool_call>"
    for size in (1, 3, 0):
        events = merged(read(cut(f"{before}{form} is the form.", size)))
        assert isinstance(mention := events[-2], CallMalformed)
        assert (mention.raw, mention.meant, events[-1]) == (form, False, " is the form.")


def test_each_form_in_a_sentence_is_a_mention() -> None:
    first, second = (f"<tool_call>{body}</tool_call>" for body in NAMED[:2])
    text = f"Write {first}, {second}.\n{first}"
    for size in (1, 3, 0):
        blocks = [event for event in read(cut(text, size)) if isinstance(event, CallMalformed)]
        assert [block.meant for block in blocks] == [False, False, True]


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "search", "arguments": {"query": "..."}}',
        '{"name": "search", "arguments": {"query": "<name>", "text": "{{ .X }}"}}',
        '{"name": "tool_name", "arguments": {}}',
    ],
)
def test_a_well_formed_call_whose_arguments_hold_a_placeholder_may_be_meant(body: str) -> None:
    for answer in every_size(f"So: <tool_call>{body}</tool_call>"):
        assert (answer.text, len(answer.calls), answer.status) == ("So: ", 1, "ok")


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "w", "arguments": {"p": "a, ..., "b"}}',
        '{"name": "w", "arguments": {"p": [1}}',
        '{"name": "w", "arguments"}',
        '{"name": "w", "arguments": {"p": ..., "q": "as <tool_call>"}}',
    ],
)
def test_a_broken_call_in_a_sentence_is_one_all_the_same(body: str) -> None:
    for size in (1, 3, 0):
        [broken] = [event for event in read(cut(f"So: {block(body)}", size)) if isinstance(event, CallMalformed)]
        assert broken.meant


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ('<tool_call>{"name": <name>', ', "arguments": {...}} and so on.'),
        ('<tool_call>{"name": "...", "arguments": {}}', " and so on."),
        ('<tool_call>{"name": "..."', ', "arguments": {...}} and so on.\nIt is: ..., or "more"'),
        ('<tool_call>{"name": "read_note", "arguments": {...', "}} and so on."),
    ],
)
def test_what_follows_a_form_that_nobody_closed_is_text(begun: str, rest: str) -> None:
    for size in (1, 2, 3, 7, 0):
        events = read(cut(f"As in {begun}{rest}\n{CALL}", size))
        assert answer_of(events) == Answer(f"As in {begun}{rest}\n", [R], "malformed")
        [mention] = [event for event in events if isinstance(event, CallMalformed)]
        assert (mention.raw, mention.meant) == (begun, False)


def test_a_call_in_a_string_of_a_form_that_nobody_closed_is_none() -> None:
    for answer in every_size(f'As in <tool_call>{{"name": ..., "arguments": {{"p": "{CALL}'):
        assert answer.calls == []


def test_an_answer_that_ends_with_its_open_tag_has_lost_its_call() -> None:
    for text in ("<tool_call>", "I look.\n<tool_call>\n", f"{block(BODY + ',')}\n<tool_call>"):
        for size in (1, 7, 0):
            [*_, lost] = read(cut(text, size))
            assert isinstance(lost, CallMalformed)
            assert lost.meant
    assert read(["Its tag is <tool_call>"]) == ["Its tag is ", "<tool_call>"]


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ('<tool_call> near {"p": 1}', ". And so on."),
        ("<tool_call>r(p='a.md')", "\n\nThat reads it."),
        ("<tool_call><function=r></function>", " is how"),
        ('<tool_call>r {"p": 1}\n"q": 2}', ""),
        ('<tool_call>r {"p": 1}, "q": 2} and so on.', ""),
    ],
)
def test_what_follows_a_call_in_another_notation_that_nobody_closed_is_text(begun: str, rest: str) -> None:
    for size in (1, 2, 3, 7, 0):
        events = read(cut(f"As in {begun}{rest}", size))
        assert "".join(event for event in events if isinstance(event, str)) == f"As in {rest}"
        [refused] = [event for event in events if isinstance(event, CallMalformed)]
        assert (refused.raw, refused.meant) == (begun, True)


@pytest.mark.parametrize("text", [text for text in MALFORMED.values() if text.endswith("</tool_call>")])
def test_a_call_after_a_malformed_one_is_read(text: str) -> None:
    for answer in every_size(f"{text}\n{CALL}"):
        assert answer == Answer(f"{text}\n", [R], "malformed")


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


@pytest.mark.parametrize(
    ("before", "inside", "after"),
    [
        (r'{"name": "w", "arguments": "{"p": "', r"{\"name\": \"r\", \"arguments\": {}}", '"}"}'),
        (r"{\"name\": \"w\", \"arguments\": {\"p\": \"", "r()", r"\"}}"),
        ('{"name": "w", "arguments": {"p": `', "{'name': 'r', 'arguments': {}}", "`}}"),
        ("""{"name": "w", "arguments": {"p": '''""", '[{"name": "r", "arguments": {}}]', "'''}}"),
    ],
)
def test_behind_a_broken_block_that_an_open_tag_ended_nothing_is_repaired(before: str, inside: str, after: str) -> None:
    """That tag may stand in one of its strings: in the note that is to be written, say."""
    for answer in every_size(block(before + block(inside) + after)):
        assert answer.calls == []
