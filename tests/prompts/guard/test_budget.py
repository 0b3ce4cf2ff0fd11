from __future__ import annotations

import pytest

from prompts.guard.budget import FOR_EACH_CHARACTER, LEAST, MOST, ReadingBudget, TooMuchToReadError


@pytest.mark.parametrize(("length", "worth"), [(0, LEAST), (1000, LEAST + 1000 * FOR_EACH_CHARACTER), (10**9, MOST)])
def test_a_request_is_worth_its_length_within_bounds(length: int, worth: int) -> None:
    budget = ReadingBudget(length)
    budget.spend(worth)
    with pytest.raises(TooMuchToReadError):
        budget.spend(1)


def test_what_is_over_stays_over() -> None:
    budget = ReadingBudget(0)
    for units in (LEAST + 1, 1, 0):
        with pytest.raises(TooMuchToReadError):
            budget.spend(units)
