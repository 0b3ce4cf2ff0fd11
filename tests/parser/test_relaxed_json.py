from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.relaxed_json import ENDS_ELEMENT, ENDS_KEY, ENDS_MEMBER, Rewritten, UnreadableError, rewrite
from parser.rules import Rule


@pytest.mark.parametrize("text", [":", " \n:", "\u00a0:"])
def test_a_key_ends_before_a_colon(text: str) -> None:
    assert ENDS_KEY.match(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "}",
        " ]",
        ', "a": 1',
        ",}",
        ", a: 1",
        ", 'a': 1",
        ", \u201ca\u201d: 1",
        '\n"a": 1',
        " // x",
        ", # x",
        " /* x */",
    ],
)
def test_the_value_of_a_member_ends_before_what_may_follow_it(text: str) -> None:
    assert ENDS_MEMBER.match(text)


@pytest.mark.parametrize("text", [" now", ", now", ', "a"', "s", '"', ": 1", ".", ", 5"])
def test_it_does_not_end_before_the_rest_of_a_sentence(text: str) -> None:
    assert not ENDS_MEMBER.match(text)


@pytest.mark.parametrize("text", ["]", ', "a"', ", -1", ", .5", ", [", ", true", ", None", ",]", ", \u201ca\u201d"])
def test_an_element_ends_before_the_next_one(text: str) -> None:
    assert ENDS_ELEMENT.match(text)


@pytest.mark.parametrize("text", [" now", ", now", ", Trueman", ":"])
def test_an_element_does_not_end_before_the_rest_of_a_sentence(text: str) -> None:
    assert not ENDS_ELEMENT.match(text)


@pytest.mark.parametrize("word", ["0", "-0", "12", "-1.50", "1E+5", "1e400", "9" * 5000, "true", "false", "null"])
def test_json_stays_as_it_is(word: str) -> None:
    assert rewrite(word) == Rewritten(word, len(word), ())


@pytest.mark.parametrize(
    ("word", "written"), [("True", "true"), ("FALSE", "false"), ("None", "null"), ("Null", "null")]
)
def test_words_of_other_languages_are_written_as_json(word: str, written: str) -> None:
    assert rewrite(word) == Rewritten(written, len(word), (Rule.PYTHON_LITERALS,))


@pytest.mark.parametrize(
    "word",
    ["", "NaN", "Infinity", "-Infinity", "undefined", "nil", "007", "00", "0o7", "0b1", "0x1F", "1_000", ".5", "5.",
     "+1", "0x", ".", "-", "+", "e5", "1e", "1.2.3", "5f", "2024-01-02", "yes", "tRUE", "+true"],
)  # fmt: skip
def test_a_scalar_with_none_or_several_readings_is_refused(word: str) -> None:
    with pytest.raises(UnreadableError):
        rewrite(word)


@given(st.text(alphabet="0123456789._+-eExXabf", max_size=12))
def test_whatever_is_accepted_is_a_json_number(word: str) -> None:
    try:
        written = rewrite(word)
    except UnreadableError:
        return
    assert isinstance(json.loads(written.text), int | float)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_json_comes_back_character_for_character(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    rewritten = rewrite(text)
    assert (rewritten.text, rewritten.end, rewritten.rules) == (text, len(text), ())


@given(st.dictionaries(st.text(), st.text()))
def test_raw_control_characters_are_escaped(value: dict[str, str]) -> None:
    text = json.dumps(value)
    for escape, char in (("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r")):
        if "\\" + escape not in text:
            text = text.replace(escape, char)
    assert json.loads(rewrite(text).text) == value


@given(
    st.dictionaries(
        st.text(alphabet="abc_"), st.none() | st.booleans() | st.integers() | st.text(alphabet="ab'\"\\\n\0\xa0")
    )
)
def test_what_python_prints_is_read(value: dict[str, object]) -> None:
    assert json.loads(rewrite(repr(value)).text) == value


@pytest.mark.parametrize(
    ("text", "written", "rules"),
    [
        ("{“a”: „b”}", '{"a": "b"}', ["curly-quotes"]),
        ("[\u2018a\u2019, “b”]", '["a", "b"]', ["curly-quotes"]),
        ('{"a": """b "c" d"""}', r'{"a": "b \"c\" d"}', ["triple-quotes"]),
        (
            r"""{'a\x20b': 'caf\xe9', 'c': "it's\xa0"}""",
            r"""{"a\u0020b": "caf\u00e9", "c": "it's\u00a0"}""",
            ["single-quotes"],
        ),
        (r"""["\xa0", '\\xa0 \xag']""", r"""["\\xa0", "\\xa0 \\xag"]""", ["invalid-escapes", "single-quotes"]),
        ("{'a': '''it's'''}", '{"a": "it\'s"}', ["single-quotes", "triple-quotes"]),
        ("{a: 0.5, # half\n}", '{"a": 0.5 \n}', ["unquoted-keys", "comments", "trailing-comma"]),
        ("{\u00a0}", "{ }", ["other-spaces"]),
        ("[TRUE, Null]", "[true, null]", ["python-literals"]),
        ('["say "hi", he said", "b"]', r'["say \"hi\", he said", "b"]', ["inner-quotes"]),
        ('{"a": "<b class="x">"}', r'{"a": "<b class=\"x\">"}', ["inner-quotes"]),
        ('[""hi" he said"]', r'["\"hi\" he said"]', ["inner-quotes"]),
        (r'["a\n"hi" b"]', r'["a\n\"hi\" b"]', ["inner-quotes"]),
    ],
)
def test_what_has_one_reading_is_written_as_json(text: str, written: str, rules: list[str]) -> None:
    rewritten = rewrite(text)
    assert (rewritten.text, list(rewritten.rules)) == (written, rules)


@pytest.mark.parametrize(
    "text",
    [r'["a\X"hi" b"]',
     '["a" + "b"]', '["a" "b"]', '["a"\n"b"]', '["a" if x else "b"]', '{"a": "x" // "y"\n}', '["5" tall"]',
     "[“a “b” c”]",
     '["a”]', '[“a"]', '["""a]', "['it's']", "[“</tool_call>”]",
     "[“<tool_call>”]", '["""</tool_call>"""]', "[1 000]", "[a]", "[NaN]"],
)  # fmt: skip
def test_what_has_none_or_several_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        rewrite(text)


@pytest.mark.parametrize(
    ("inside", "meant"),
    [
        (r"it\'s, don\'t, I\'ll", "it's, don't, I'll"),
        (r"It\'s John's", "It's John's"),
        (r"print(\'hello\')\nand \'apple\'", "print('hello')\nand 'apple'"),
        (r"print(\'it\\\'s\')", r"print('it\'s')"),
        (r"awk \'{print $1}\' f; WHERE n = \'O\'\'Brien\'", "awk '{print $1}' f; WHERE n = 'O''Brien'"),
        (r"L\'eau d\'Evian, dell\'arte, y\'all, rock \'n\' roll", "L'eau d'Evian, dell'arte, y'all, rock 'n' roll"),
        (r"echo 'it'\''s'", r"echo 'it'\''s'"),
        (r"s = 'it\'s'", r"s = 'it\'s'"),
        (r"Bob\'s\ file", r"Bob\'s\ file"),
        (r"caf\'e", r"caf\'e"),
        (r"t\'el\'ephone, Garc\'ia", r"t\'el\'ephone, Garc\'ia"),
        (r"\'Etudes", r"\'Etudes"),
        (r"\'{E}tudes", r"\'{E}tudes"),
        (r"Fran\c{c}ois a dit l\'eau", r"Fran\c{c}ois a dit l\'eau"),
    ],
)
def test_an_escaped_apostrophe_is_one_unless_its_backslash_is_meant(inside: str, meant: str) -> None:
    assert json.loads(rewrite(f'"{inside}"').text) == meant


@given(st.text(alphabet="{}[]\",:'\\ \n/*1a“”#_.+"))
def test_what_is_read_is_json(text: str) -> None:
    try:
        rewritten = rewrite(text)
    except UnreadableError:
        return
    json.loads(rewritten.text)


@pytest.mark.parametrize("text", ['{"a": 1', "[1, 2", '{"a": {"b": 1}'])
def test_what_its_author_did_not_end_is_not_completed(text: str) -> None:
    assert rewrite(text, closed=True).rules == ("missing-closers",)
    with pytest.raises(UnreadableError):
        rewrite(text, closed=False)


@pytest.mark.parametrize("text", ['{"a": 1,', '{"a":', '{"a"', "{", "[1,", '{"a": "b', '{"a": tru', ""])
def test_what_ends_within_a_member_is_never_completed(text: str) -> None:
    with pytest.raises(UnreadableError):
        rewrite(text, closed=True)
