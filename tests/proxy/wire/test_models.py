"""The model list with the owner's names in it."""

from __future__ import annotations

import pytest

from proxy.contracts import Model
from proxy.errors import RequestError
from proxy.wire.models import find_model, model_behind, model_list, with_aliases

BIG, SMALL = Model("gpt-5.5", 7, "codex"), Model("gpt-5.5-mini", 8, "codex")


def test_an_alias_is_listed_first_and_looks_like_its_model() -> None:
    assert with_aliases([BIG, SMALL], {"notes": "gpt-5.5"}) == [Model("notes", 7, "codex"), BIG, SMALL]


def test_an_alias_for_a_model_that_is_not_listed_is_listed_all_the_same() -> None:
    assert with_aliases([], {"notes": "other"}) == [Model("notes", 0, "tagcall")]


def test_an_alias_hides_the_model_of_its_name() -> None:
    listed = with_aliases([BIG, SMALL], {"gpt-5.5": "gpt-5.5-mini"})
    assert listed == [Model("gpt-5.5", 8, "codex"), SMALL]


def test_a_model_is_found_by_its_name() -> None:
    assert find_model([BIG, SMALL], "gpt-5.5-mini") is SMALL
    with pytest.raises(RequestError) as caught:
        find_model([BIG], "gpt-6")
    assert (caught.value.status, caught.value.code, caught.value.param) == (404, "model_not_found", "model")
    assert caught.value.message == "The model 'gpt-6' does not exist or you do not have access to it."


def test_the_list_is_openais() -> None:
    assert model_list([BIG]) == {
        "object": "list",
        "data": [{"id": "gpt-5.5", "object": "model", "created": 7, "owned_by": "codex"}],
    }


PATTERNS = {"claude-opus-5": "big", "*haiku*": "small", "claude-*": "usual", "a*b*c": "abc"}


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("claude-opus-5", "big"),
        ("claude-haiku-5", "small"),
        ("claude-sonnet-5", "usual"),
        ("claude-", "usual"),
        ("claude", None),
        ("my-claude-5", None),
        ("abc", "abc"),
        ("a-b-c", "abc"),
        ("acb", None),
        ("ac", None),
        ("gpt-5.5", None),
    ],
)
def test_an_alias_may_stand_for_many_names_and_the_first_that_fits_counts(name: str, model: str | None) -> None:
    assert model_behind(name, PATTERNS) == model


def test_a_pattern_is_no_model_to_choose() -> None:
    assert with_aliases([BIG], {"claude-*": "gpt-5.5"}) == [BIG]
