"""Patterns are found or not, as in ECMA-262, in steps that grow with the text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.schema import Schema, SchemaUnusable
from proxy.schema.check_budget import MOST, CheckBudget
from proxy.schema.patterns import Patterns


def found(pattern: str, text: str) -> bool:
    return Patterns(CheckBudget(MOST)).found(pattern, text)


MAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"  # zod's
# A pattern, texts that it is found in, texts that it is not.
CASES: list[tuple[str, list[str], list[str]]] = [
    ("", ["", "a"], []),
    ("b+", ["abba"], ["", "aca"]),
    ("^a$", ["a"], ["a\n", "ba", ""]),
    ("^(ab|c)*$", ["", "abcab"], ["abca"]),
    ("a|^b|c$", ["xa", "bx", "xc"], ["xb", "cx"]),
    ("^a{2,3}$", ["aa", "aaa"], ["a", "aaaa"]),
    ("^a{2,}$", ["aa", "a" * 50], ["a"]),
    ("^a{2}?b??$", ["aa", "aab"], ["a"]),
    ("^(a?){3}$", ["", "aaa"], ["aaaa"]),
    ("^(a*)*$", ["", "aaa"], ["b"]),
    ("^.{3}$", ["abc", "日本語", "a\tb"], ["a\nb", "a\u2028b", "ab"]),
    (r"^\d+$", ["0123"], ["٣", ""]),
    (r"^\w\W\s\S\D$", ["_- -x", "a\u00e9\u00a0ab"], ["_- x1"]),
    (r"^[\w.-]+$", ["a.b-c_1"], ["a b"]),
    (r"^[\w-.]+$", ["a.b-c_1"], ["a b"]),
    (r"^[^a-c\]]$", ["d", "\n"], ["b", "]"]),
    ("^[a-]$", ["-"], ["b"]),
    ("^[]$", [], ["", "a"]),
    ("^[^]$", ["a", "\n"], [""]),
    (r"^[\b]$", ["\b"], ["b"]),
    ("^[\u0100-\u1000]$", ["\u0500"], ["a"]),
    (r"^\/\-\.\_\ \"\{$", ['/-._ "{'], []),
    (r"^\t\n\x41\u0042\u{43}\cJ\0$", ["\t\nABC\n\0"], []),
    (r"^\uD83D\uDE00[\u4e00-\u9fa5]+$", ["😀漢字"], ["漢字"]),
    (r"^\p{L}\p{Lu}\P{L}\p{gc=Number}$", ["éÄ-٣"], ["éä-1"]),
    (r"\bcat\b", ["a cat.", "cat"], ["cats", "concat"]),
    (r"\Bcat", ["concat"], ["cat"]),
    (r"\B", [""], ["a"]),
    ("a{,3}", ["a{,3}"], ["aaa"]),
    ("^{}$", ["{}"], []),
    (r"(?<year>\d{4})-(?P<month>\d\d)", ["on 2026-11"], ["2026"]),
    (r"(?i)^[a-c]+é\p{Lu}\p{Ll}$", ["aBCÉxß", "aéxK"], ["adé"]),
    (r"\A\d\Z", ["1"], ["1\n"]),
    (r"^(?=.*\d)(?=.*[a-z]).{4,}$", ["abc1"], ["abcd", "1234", "ab1"]),
    ("^(?!.*(foo|bar))", ["baz"], ["xfoo", "xbar"]),
    (r"^(\\.|[^\\])*$", [r"\n"], ["\\"]),
    ("^(?=ab|cd).", ["ab", "cd"], ["ac"]),
    ("^(?!)", [], ["", "a"]),
    (r"^\p{Script=Greek}+$", ["αβ"], ["ab"]),
    (r"\ud83d", [], ["😀"]),
    (MAIL, ["john.doe@example.co.uk"], ["a..b@example.com", ".a@b.co", "a@b"]),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "fitting", "unfitting"), CASES)
def test_a_pattern_is_found_where_it_is(pattern: str, fitting: list[str], unfitting: list[str]) -> None:
    assert [text for text in fitting if not found(pattern, text)] == []
    assert [text for text in unfitting if found(pattern, text)] == []


# Characters that mean something else elsewhere are left out: `re` is the judge.
PATTERNS = st.recursive(
    st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", r"\w", r"\d", "^", "$", r"\b", r"\B", "(?:)"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0}", "{1,2}", "{1,}", "*?"])).map(
            lambda each: f"(?:{each[0]}){each[1]}"
        ),
    ),
    max_leaves=10,
)
LOOKS = st.lists(
    st.tuples(st.sampled_from(["?=", "?!"]), PATTERNS).map(lambda look: f"({look[0]}{look[1]})"), max_size=2
)
AHEAD = st.builds(lambda looks, rest: f"^{''.join(looks)}(?:{rest})", LOOKS, PATTERNS)


@given(PATTERNS | AHEAD, st.text("abc1 ", min_size=1, max_size=8))
def test_it_is_found_where_another_engine_finds_it(pattern: str, text: str) -> None:
    other = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    assert found(pattern, text) is (other.search(text) is not None)


UNUSABLE = {
    "too long": "a" * 2_000,
    "repeats of repeats": "((a{1000}){1000}){1000}",
    "nothing that is repeated": "*a",
    "a count backwards": "a{3,2}",
    "a range backwards": "[b-a]",
    "a group that is open": "(a",
    "a group that is not": "a)",
    "a class that is open": "[a",
    "no escape": "a\\",
    "a reference to a group": r"(a)\1",
    "a reference by name": r"(?<a>b)\k<a>",
    "an escape that is none": r"\q",
    "a repeat of more than a thousand": "a{1001}",
    "repeats of nothing": "(?:){99999999}",
    "a count of nothing": "a|{2}",
    "a repeat of a repeat": "a++",
    "another engine's quotation": r"\Qa.b\E",
    "another engine's byte": r"\C",
    "a look ahead in the middle": "a(?!b)",
    "a look ahead that may stand anywhere": "(?=a)b",
    "a look ahead of one of several": "^(?=a)b|c",
    "a look ahead that is optional": "^(?=a)?b",
    "a look behind": "(?<=a)b",
    "an atomic group": "(?>a)",
}


@pytest.mark.parametrize("pattern", UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_followed_is_not_judged(pattern: str) -> None:
    for schema, value in (({"pattern": pattern}, "a"), ({"patternProperties": {pattern: True}}, {"a": 1})):
        with pytest.raises(SchemaUnusable, match="a pattern cannot be used"):
            Schema(json.dumps(schema)).misfit(value)


BACKTRACKING = "^(a|aa)+$"
LONG = "a" * 40 + "b"
SLOW_ELSEWHERE: dict[str, tuple[Any, Any]] = {
    "one": ({"pattern": "^(a+)+$"}, "a" * 5_000 + "b"),
    "many": ({"items": {"pattern": BACKTRACKING}}, [LONG] * 1_000),
    "of names": ({"propertyNames": {"pattern": BACKTRACKING}}, {LONG: 1}),
    "of properties": ({"patternProperties": {"^(a|aa)+b$": {"type": "null"}}}, {LONG: 1}),
    "of other properties": ({"additionalProperties": False, "patternProperties": {BACKTRACKING: True}}, {LONG: 1}),
    "unevaluated": ({"unevaluatedProperties": False, "patternProperties": {BACKTRACKING: True}}, {LONG: 1}),
    "in another dialect": ({"items": {"$schema": "urn:x", "pattern": BACKTRACKING}}, [LONG]),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), SLOW_ELSEWHERE.values(), ids=SLOW_ELSEWHERE)
def test_patterns_that_run_on_elsewhere_are_judged(schema: Any, value: Any) -> None:
    assert Schema(json.dumps(schema)).misfit(value) is not None


LARGE: dict[str, tuple[str, str]] = {
    "many states at once": ("[ab]*a[ab]{900}[cd]", "abbabaabab" * 50_000),
    "a long text": ("^[a-z]+$", "a" * 2_000_000),
}


@pytest.mark.parametrize(("pattern", "text"), LARGE.values(), ids=LARGE)
def test_what_takes_too_many_steps_is_not_judged(pattern: str, text: str) -> None:
    with pytest.raises(SchemaUnusable, match="too many steps"):
        Schema(json.dumps({"pattern": pattern})).misfit(text)


class Counted(CheckBudget):
    spent = 0

    def spend(self, steps: int) -> None:
        self.spent += steps


@pytest.mark.parametrize("pattern", ["^(a|aa)+$", "^(?=.*b)[ab]+c", "(a*)*b", "[ab]*a[ab]{20}c"])
def test_twice_the_text_takes_twice_the_steps(pattern: str) -> None:
    spent = []
    for length in (10_000, 20_000):
        budget = Counted(0)
        Patterns(budget).found(pattern, "a" * length)
        spent.append(budget.spent)
    assert spent[1] / spent[0] < 2.1


def test_a_check_pays_for_a_pattern_once_and_however_often_others_did() -> None:
    spent = []
    for _ in range(2):
        budget = Counted(0)
        patterns = Patterns(budget)
        patterns.found(MAIL, "")
        first = budget.spent
        patterns.found(MAIL, "")
        spent.append((first, budget.spent - first))
    assert spent[0] == spent[1]
    assert spent[0][1] < spent[0][0]


def test_half_a_character_in_the_text_is_none_that_a_pattern_names() -> None:
    assert not found("^[a-z]$", "\ud83d")
