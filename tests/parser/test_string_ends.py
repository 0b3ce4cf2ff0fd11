from __future__ import annotations

import pytest

from parser.string_ends import ENDS_ELEMENT, ENDS_KEY, ENDS_MEMBER


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
