"""Paging: every item is on exactly one page, whatever the size of a page."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import RequestError
from proxy.wire.responses.pages import PageQuery, item_page, parse_page, query_integer


def items(count: int) -> list[Any]:
    return [{"id": f"msg_{number}"} for number in range(count)]


@given(st.integers(0, 60), st.integers(1, 25), st.booleans())
def test_pages_behind_each_other_are_the_whole_list(count: int, limit: int, descending: bool) -> None:
    all_items, seen, after = items(count), [], None
    while True:
        page: Any = item_page(all_items, PageQuery(limit, descending, after))
        seen += page["data"]
        assert len(page["data"]) <= limit
        if page["data"]:
            assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
        if not page["has_more"]:
            break
        after = page["last_id"]
    assert seen == (all_items[::-1] if descending else all_items)


@given(st.integers(1, 60), st.integers(1, 25), st.booleans())
def test_pages_before_each_other_are_the_whole_list(count: int, limit: int, descending: bool) -> None:
    all_items = items(count)
    ordered = all_items[::-1] if descending else all_items
    seen, before = [ordered[-1]], ordered[-1]["id"]
    while True:
        page: Any = item_page(all_items, PageQuery(limit, descending, before=before))
        seen = [*page["data"], *seen]
        if not page["has_more"]:
            break
        before = page["first_id"]
    assert seen == ordered


def test_between_two_items_are_those_between_them() -> None:
    page: Any = item_page(items(10), PageQuery(limit=3, descending=False, after="msg_2", before="msg_7"))
    assert [item["id"] for item in page["data"]] == ["msg_3", "msg_4", "msg_5"]
    assert page["has_more"]
    page = item_page(items(10), PageQuery(limit=3, descending=False, after="msg_5", before="msg_7"))
    assert ([item["id"] for item in page["data"]], page["has_more"]) == (["msg_6"], False)


def test_nothing_asked_for_is_the_newest_twenty() -> None:
    assert parse_page({}) == PageQuery(limit=20, descending=True, after=None, before=None)


def test_a_query_says_how_many_in_which_order_and_between_which() -> None:
    query = {"limit": "7", "order": "asc", "after": "msg_1", "before": "msg_9", "include": "other"}
    assert parse_page(query) == PageQuery(limit=7, descending=False, after="msg_1", before="msg_9")
    assert parse_page({"order": "desc"}).descending


@pytest.mark.parametrize("limit", [1, 100])
def test_a_page_has_one_to_a_hundred_items(limit: int) -> None:
    assert parse_page({"limit": str(limit)}).limit == limit


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"limit": "0"}, "limit"), ({"limit": "101"}, "limit"), ({"limit": "-1"}, "limit"), ({"limit": ""}, "limit"),
        ({"limit": "ten"}, "limit"), ({"limit": "²"}, "limit"), ({"limit": "1" * 16}, "limit"),
        ({"order": "up"}, "order"),
    ],
)  # fmt: skip
def test_a_query_that_is_none_is_refused(query: dict[str, str], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_page(query)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_a_number_is_read_within_its_bounds() -> None:
    assert query_integer({}, "after", minimum=0) is None
    assert query_integer({"after": "0", "other": "1"}, "after", minimum=0) == 0
    assert query_integer({"after": "9" * 15}, "after", minimum=0) == 10**15 - 1
    assert query_integer({"after": "-1"}, "after", minimum=-1) == -1


@pytest.mark.parametrize(
    ("page", "param"), [(PageQuery(after="msg_9"), "after"), (PageQuery(before="msg_9"), "before")]
)
def test_a_page_next_to_an_item_that_is_not_there_is_refused(page: PageQuery, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        item_page(items(3), page)
    assert caught.value.message == "No item found with id 'msg_9'"
    assert (caught.value.status, caught.value.param) == (404, param)


def test_a_page_is_openais_list() -> None:
    assert item_page([], PageQuery()) == {
        "object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False,
    }  # fmt: skip
