from __future__ import annotations

import json

import pytest

from tests.parser.mutations import NOTATIONS, calls_in, fates, sample

# Mutations of each notation, which has some thousands. `python -m tests.parser.mutations` tries all of them.
EACH = 250
# Of this sample so many are read as the call that they were, at least: a parser that refuses more is of less use.
RIGHT_REPAIRS = 680


@pytest.mark.parametrize("notation", NOTATIONS)
def test_every_notation_is_read_as_it_stands(notation: str) -> None:
    calls = calls_in(NOTATIONS[notation])
    assert calls
    assert {name for name, _ in calls} <= {"search", "write_note", "get_time"}
    assert all(isinstance(json.loads(arguments), dict) for _, arguments in calls)


def test_one_changed_character_never_makes_a_call_that_nobody_wrote() -> None:
    counted, wrong = fates(sample(EACH, seed=17))
    assert [(mutation.text, calls_in(mutation.text)) for mutation in wrong] == []
    assert sum(counts["same"] for counts in counted.values()) >= RIGHT_REPAIRS
