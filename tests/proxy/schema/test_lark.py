"""A text keeps to a Lark grammar or not, in steps that are counted, and no grammar ends the process."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.machinery import ModuleSpec
from itertools import pairwise

import pytest

from proxy.schema import SchemaUnusable
from proxy.schema import lark as module
from proxy.schema.lark import LONGEST_GRAMMAR, LONGEST_TEXT, MOST_LEVELS, grammar_misfit, grammar_problem

SUM = """
start: term (" + " term)*
term: INT | "(" start ")"
%import common.INT
"""

# What codex declares for its patches, as far as it matters here.
PATCH = """
start: "*** Begin Patch" LF hunk+ "*** End Patch" LF?
hunk: "*** Add File: " filename LF add_line+ | "*** Update File: " filename LF change+
filename: /(.+)/
add_line: "+" /(.*)/ LF -> line
change: ("@@" | "@@ " /(.+)/ | ("+" | "-" | " ") /(.*)/) LF
%import common.LF
"""
PATCHED = "*** Begin Patch\n*** Update File: ä.md\n@@\n one\n-two\n+zwei\n*** End Patch"

JSON = """
start: value
?value: object | array | ESCAPED_STRING | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: ESCAPED_STRING ":" value
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""


@pytest.mark.parametrize(
    ("grammar", "fits", "misfits"),
    [
        (SUM, ["1", "1 + 2 + 30", "(1 + (2))"], ["", "one", "1 +", "1 + 2 ", "(1"]),
        (PATCH, [PATCHED, PATCHED + "\n"], [PATCHED[:-1], PATCHED.replace("-two", "two"), f"{PATCHED}\n\n"]),
        (JSON, ['[1, {"a": null}]', json.dumps({f"k{n}": [n, "ü"] for n in range(500)}, indent=1)], ["[1,]", "{a: 1}"]),
        ("start: /[a-z]+/ | /(a|b)*a(a|b){20}/", ["abc", "ab" * 2_000], ["abC", ""]),
    ],
)
def test_a_text_is_held_to_its_grammar_as_a_whole(grammar: str, fits: list[str], misfits: list[str]) -> None:
    assert grammar_problem(grammar) is None
    assert [grammar_misfit(grammar, text) for text in fits] == [None] * len(fits)
    assert None not in [grammar_misfit(grammar, text) for text in misfits]


def test_a_misfit_says_where_the_text_leaves_the_grammar() -> None:
    assert grammar_misfit(SUM, "1 + x") == "it does not match its Lark grammar from character 5 on"
    assert grammar_misfit('start: "ä"+ "b"', "ääc") == "it does not match its Lark grammar from character 3 on"
    assert grammar_misfit(SUM, "1 + ") == "it ends before its Lark grammar does"


@pytest.mark.parametrize(
    "grammar",
    [
        "start: r",  # a rule that is none
        "start: /(?=a)b/",  # a look ahead, which OpenAI does not take either
        'start: "a',
        "",
        "start: a0\n" + "".join(f'a{n}: a{n + 1} "b"\n' for n in range(MOST_LEVELS - 1)),  # a mistake far below
    ],
)
def test_what_is_no_grammar_holds_nothing(grammar: str) -> None:
    with pytest.raises(SchemaUnusable):
        grammar_misfit(grammar, "a" * 50)


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ('start: s\ns: s s | "a"', "a" * 3_000),  # more and more ways to read it
        ("start: x*\nx: " + " | ".join(f'"a" "b"{{{n}}}' for n in range(1, 80)), "ab" * 3_000),
        ("start: R\nR: /" + "(a|b*)" * 190 + "/", "ab" * 5_000),  # ever new states of a terminal
        (SUM, "1" * (LONGEST_TEXT + 1)),
    ],
)
def test_what_takes_too_many_steps_is_given_up(grammar: str, text: str) -> None:
    with pytest.raises(SchemaUnusable):
        grammar_misfit(grammar, text)


def test_a_grammar_that_would_go_down_too_far_is_not_tried() -> None:
    """Its levels are levels of the engine's stack, and where that ends so does the process."""
    deep = "start: r0\n" + "".join(f"r{n}: r{n + 1}\n" for n in range(MOST_LEVELS)) + f'r{MOST_LEVELS}: "a"\n'
    assert grammar_problem(deep) == f"it has more than {MOST_LEVELS} rules and groups"
    assert grammar_problem("//" + "x" * LONGEST_GRAMMAR) == f"it has more than {LONGEST_GRAMMAR} characters"


def test_the_deepest_grammar_that_is_tried_is_read() -> None:
    for open_, close in (("", ""), ("~(", ")"), ('("b" ', '"c"|"d")*')):
        names = [f"R{n}" for n in range((MOST_LEVELS - 1) // (1 + len(open_.strip()[:1])) - 1)]
        rules = [f"{name}: {open_}{below}{close}" for name, below in pairwise(names)]
        deep = "\n".join([f"start: {names[0]}", *rules, f'{names[-1]}: "a"'])
        assert grammar_problem(deep) is None
        grammar_misfit(deep, "a")


def test_without_the_extra_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(_name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(module, "find_spec", nowhere)
    problem = grammar_problem(SUM)
    assert problem is not None
    assert "extra `grammars`" in problem


def test_the_engine_is_loaded_when_a_text_is_held_to_a_grammar() -> None:
    """Not by a request that only declares one: it takes 8 MB."""
    code = """
import sys
from proxy.schema.lark import grammar_misfit, grammar_problem
for ask in (lambda: grammar_problem('start: "a"'), lambda: grammar_misfit('start: "a"', "a")):
    ask()
    print("llguidance" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
