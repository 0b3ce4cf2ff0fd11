from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from parser import BARE_ANSWERS, AnswerParser, SentinelParser, Tier, Tool, ToolRegistry
from parser.rules import Rule
from tests.parser.reading import completed, cut, read

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "sentinel.md").read_text("utf-8")


def test_every_rule_is_documented_in_order() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert listed == [rule.value for rule in Rule]


def test_every_tier_is_documented() -> None:
    assert re.findall(r"^\| ([A-Z]) \|", PAGE, re.MULTILINE) == [tier.value for tier in Tier]


EXAMPLES = dict(re.findall(r"^([a-z-]+) {2,}(.*(?:[<{`]).*)$", PAGE, re.MULTILINE))
DEFAULTED = {Rule.MISSING_ARGUMENTS, Rule.NULL_ARGUMENTS, Rule.EMPTY_ARGUMENTS}


def test_every_rule_has_an_example() -> None:
    assert list(EXAMPLES) == [rule.value for rule in Rule]


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("size", [1, 3, 7, 0])
def test_the_example_of_a_rule_takes_that_rule(rule: Rule, size: int) -> None:
    text = EXAMPLES[rule.value].replace("\u21b5", "\n").replace("\u2423", "\u00a0")
    bare = rule in {Rule.BARE_ANSWER, Rule.FENCED_ANSWER, Rule.HEADED_ANSWER}
    parser = AnswerParser(ToolRegistry([Tool("read_note")]), BARE_ANSWERS) if bare else SentinelParser()
    call = next(completed(read(cut(text, size), parser)))
    assert rule.value in call.repairs
    assert call.name == "read_note"
    wanted = {} if rule in DEFAULTED else {"path": "a.md"}
    assert wanted.items() <= json.loads(call.arguments).items()


@pytest.mark.parametrize("end", ["", "\n```"])
@pytest.mark.parametrize("rule", [Rule.CALL_AS_STRING, Rule.ESCAPED_JSON, Rule.FOREIGN_NOTATION, Rule.TRAILING_COMMA])
def test_a_fence_is_told_beside_what_stands_in_it(rule: Rule, end: str) -> None:
    behind = "" if rule is Rule.CALL_AS_STRING else end  # where nothing may stand
    opened = EXAMPLES[rule.value].replace("<tool_call>", "<tool_call>```json\n")
    (call,) = completed(read([opened.replace("</tool_call>", f"{behind}</tool_call>")], SentinelParser()))
    assert call.repairs == (Rule.FENCE, rule)
    assert call.arguments == '{"path": "a.md"}'
