from __future__ import annotations

import pytest

from parser.members import (
    ARGUMENTS,
    ARGUMENTS_ALIASES,
    IDS,
    LATE_ARGUMENTS_ALIASES,
    LATE_NAME_ALIASES,
    NAME,
    NAME_ALIASES,
    NESTINGS,
    NEUTRAL,
    RESERVED,
    WRAPPERS,
    folded_key,
)


def test_every_name_in_the_tables_is_folded() -> None:
    for table in (
        NAME_ALIASES,
        ARGUMENTS_ALIASES,
        LATE_NAME_ALIASES,
        LATE_ARGUMENTS_ALIASES,
        NESTINGS,
        WRAPPERS,
        NEUTRAL,
    ):
        assert {folded_key(name) for name in table} == table
    assert {folded_key(name) for name in (NAME, ARGUMENTS)} <= NAME_ALIASES | ARGUMENTS_ALIASES
    assert {folded_key(name) for name in IDS} <= NEUTRAL


def test_a_member_has_one_meaning() -> None:
    assert not NAME_ALIASES & ARGUMENTS_ALIASES
    assert not (LATE_NAME_ALIASES | LATE_ARGUMENTS_ALIASES) & (NAME_ALIASES | ARGUMENTS_ALIASES | NEUTRAL)


@pytest.mark.parametrize("key", ["tool", "Name", "ARGUMENTS", "tool_calls", "toolName", "parameters", "function"])
def test_a_name_that_means_as_much_leaves_two_readings(key: str) -> None:
    assert folded_key(key) in RESERVED


@pytest.mark.parametrize("key", [*IDS, "type", "key", "action", "thought", ""])
def test_any_other_name_may_stand_beside(key: str) -> None:
    assert folded_key(key) not in RESERVED
