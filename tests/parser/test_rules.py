from __future__ import annotations

import re
from pathlib import Path

from parser import Coercion, Tier
from parser.rules import Rule, Stage

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "sentinel.md").read_text("utf-8")


def test_every_rule_is_documented_in_its_stage_and_in_order() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert listed == [rule.value for rule in Rule]


def test_the_rules_stand_by_stage() -> None:
    stages = [rule.stage for rule in Rule]
    assert stages == sorted(stages, key=list(Stage).index)


def test_every_coercion_is_documented() -> None:
    listed = re.findall(r"^\| `([a-z]+_[a-z]+)` \|", PAGE, re.MULTILINE)
    assert listed == [coercion.value for coercion in Coercion]


def test_every_tier_is_documented() -> None:
    assert re.findall(r"^\| ([A-Z]) \|", PAGE, re.MULTILINE) == [tier.value for tier in Tier]
