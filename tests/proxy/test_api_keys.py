"""The file with the keys: names, limits, and what is none."""

from __future__ import annotations

import pytest

from proxy.api_keys import ApiKey, parse_keys


def test_a_line_is_a_key_which_may_have_a_name_and_limits() -> None:
    lines = [
        "plain-key",
        "# for those who come later",
        "",
        "  ada=sk-1  ",
        "bob@home=sk-2 tokens=100000 requests=60",
        "sk-3 requests=1",
    ]
    assert parse_keys(lines) == [
        ApiKey("plain-key"),
        ApiKey("sk-1", "ada"),
        ApiKey("sk-2", "bob@home", requests=60, tokens=100_000),
        ApiKey("sk-3", requests=1),
    ]


@pytest.mark.parametrize("key", ["c2VjcmV0", "c2VjcmU=", "c2VjcmV0MQ==", ["a", "b=c"][0]])
def test_a_key_of_base64_has_no_name(key: str) -> None:
    assert parse_keys([key]) == [ApiKey(key)]


@pytest.mark.parametrize("rest", ["requests=0", "requests=-1", "tokens=", "tokens=1k", "a-second-word", "request=5"])
def test_what_stands_behind_a_key_and_is_no_limit_is_refused_without_the_key(rest: str) -> None:
    with pytest.raises(ValueError, match="line 2") as caught:
        parse_keys(["one", f"ada=secret {rest}"])
    assert "secret" not in str(caught.value)


def test_a_name_is_one_keys() -> None:
    with pytest.raises(ValueError, match="ada"):
        parse_keys(["ada=1", "ada=2"])
