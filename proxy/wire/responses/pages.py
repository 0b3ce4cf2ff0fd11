"""Lists in pages: `limit`, `order`, `after` and `before`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ...contracts import WireObject
from ...errors import RequestError
from ..json_body import JsonValue
from ..parameters import INCLUDES
from ..reader import Reader, shown

# Items of a page of which no number is asked for.
DEFAULT_LIMIT = 20

# Items of a page, at most.
MAX_LIMIT = 100


class PageQuery(Struct, frozen=True):
    """`after` and `before` are ids of items; both are meant in the order that is asked for."""

    limit: int = DEFAULT_LIMIT
    descending: bool = True
    after: str | None = None
    before: str | None = None


def query_integer(query: Mapping[str, str], name: str, *, minimum: int, maximum: int | None = None) -> int | None:
    """A number in a query, or None. Raises `RequestError`."""
    text = query.get(name)
    if text is None:
        return None
    # What is no number is told as the string that it is.
    digits = text.removeprefix("-")
    value = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 16 else text
    return Reader({name: value}).integer(name, minimum=minimum, maximum=maximum)


def parse_page(query: Mapping[str, str]) -> PageQuery:
    """The page that a query asks for. Raises `RequestError`."""
    order = Reader({"order": query.get("order")}).choice("order", ("asc", "desc"))
    return PageQuery(
        limit=query_integer(query, "limit", minimum=1, maximum=MAX_LIMIT) or DEFAULT_LIMIT,
        descending=order != "asc",
        after=query.get("after"),
        before=query.get("before"),
    )


def check_include(query: Iterable[tuple[str, str]]) -> None:
    """`include` of a query, which clients write with and without brackets, held to the names that a request may list.
    All that there is stands in each answer. Raises `RequestError`.
    """
    include: list[JsonValue] = [value for name, value in query if name in {"include", "include[]"}]
    Reader({"include": include}).choices("include", INCLUDES)


def _position(items: Sequence[WireObject], identifier: str, param: str) -> int:
    for position, item in enumerate(items):
        if item.get("id") == identifier:
            return position
    raise RequestError(f"No item found with id '{shown(identifier)}'", status=404, param=param)


def item_list(items: Sequence[WireObject], *, has_more: bool = False) -> dict[str, object]:
    """Items as OpenAI's list object."""
    return {
        "object": "list",
        "data": list(items),
        # Never null: OpenAI's document has them as strings.
        "first_id": items[0]["id"] if items else "",
        "last_id": items[-1]["id"] if items else "",
        "has_more": has_more,
    }


def item_page(items: Sequence[WireObject], page: PageQuery) -> dict[str, object]:
    """One page of `items`, which are given oldest first. Raises `RequestError` for an id that is not among them."""
    ordered = list(reversed(items)) if page.descending else list(items)
    end = len(ordered) if page.before is None else _position(ordered, page.before, "before")
    start = 0 if page.after is None else _position(ordered, page.after, "after") + 1
    if page.after is None and page.before is not None:
        start = max(0, end - page.limit)
        return item_list(ordered[start:end], has_more=start > 0)
    return item_list(ordered[start:end][: page.limit], has_more=start + page.limit < end)
