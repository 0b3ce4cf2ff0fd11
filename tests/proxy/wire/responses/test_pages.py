"""Paging: every item is on exactly one page, whatever the size of a page."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.responses.pages import PageQuery, item_page


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
