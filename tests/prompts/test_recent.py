"""Values that were made lately: never another one's, and never more than fits."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from prompts.recent import Latest, RecentlyMade


@given(st.lists(st.integers(0, 12)), st.integers(0, 40))
def test_what_is_looked_up_is_what_would_be_made_and_takes_no_more_than_it_may(keys: list[int], most: int) -> None:
    recent: RecentlyMade[str] = RecentlyMade(most)
    for key in keys:
        assert recent.get(key, partial("of {}".format, key), lambda value: int(value[3:])) == f"of {key}"
        assert recent.bytes <= most


def test_what_was_made_lately_is_not_made_again() -> None:
    made: list[str] = []
    recent: RecentlyMade[str] = RecentlyMade(20)

    def value(key: str) -> str:
        def make() -> str:
            made.append(key)
            return key

        return recent.get(key, make, lambda value: 5)

    for key in "aabacada":  # `a` is looked up again and again, and stays
        value(key)
    assert made == ["a", "b", "c", "d"]
    value("b")
    assert made[4:] == ["b"]


def test_the_latest_value_is_that_of_the_very_object() -> None:
    latest: Latest[list[int], str] = Latest()
    one, other = [1], [1]
    assert latest.get(one) is None
    latest.keep(one, "one")
    assert (latest.get(one), latest.get(other)) == ("one", None)
    latest.keep(other, "other")
    assert (latest.get(one), latest.get(other)) == (None, "other")
