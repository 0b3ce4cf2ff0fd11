"""Shapes of members, as data."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.errors import RequestError
from proxy.wire.reader import Reader
from proxy.wire.shape import check, flag, members, number, one_of, some_of, text, whole

SHAPES = {
    "flag": flag,
    "text": text(3),
    "whole": whole(1, 5),
    "number": number(0, 2),
    "one": one_of("a", "b"),
    "some": some_of("a", "b"),
    "inner": members(one=one_of("a"), deeper=members(flag=flag)),
}


def test_what_is_absent_or_null_has_every_shape() -> None:
    check(Reader({}), SHAPES)
    check(Reader(dict.fromkeys(SHAPES)), SHAPES)


def test_what_has_its_shape_and_what_no_shape_is_known_of_is_accepted() -> None:
    inner: Any = {"one": "a", "deeper": {"flag": False, "else": 1}}
    check(
        Reader({
            "flag": True, "text": "abc", "whole": 5, "number": 0.5, "one": "b", "some": ["b", "a"], "inner": inner,
            "else": 1,
        }),
        SHAPES,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ({"flag": 1}, "flag"), ({"text": "abcd"}, "text"), ({"text": 1}, "text"), ({"whole": 0}, "whole"),
        ({"whole": 6}, "whole"), ({"whole": 1.5}, "whole"), ({"number": 2.1}, "number"), ({"one": "c"}, "one"),
        ({"some": "a"}, "some"), ({"some": ["a", "c"]}, "some[1]"), ({"some": [1]}, "some[0]"),
        ({"inner": []}, "inner"),
        ({"inner": {"one": "b"}}, "inner.one"), ({"inner": {"deeper": {"flag": 1}}}, "inner.deeper.flag"),
    ],
)  # fmt: skip
def test_what_has_it_not_is_refused_by_its_path(member: dict[str, Any], path: str) -> None:
    with pytest.raises(RequestError) as caught:
        check(Reader(member), SHAPES)
    assert caught.value.param == path


def test_the_first_fault_in_the_order_of_the_table_is_told() -> None:
    for faulty in ({"one": 1, "text": 1, "flag": 1}, {"flag": 1, "one": 1}):
        with pytest.raises(RequestError) as caught:
            check(Reader({**faulty}), SHAPES)
        assert caught.value.param == "flag"
