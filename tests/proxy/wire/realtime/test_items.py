"""The items of a Realtime conversation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import AssistantText, Guidance, PastCall, Text, ToolResult, UserTurn
from proxy.errors import RequestError
from proxy.wire.json_body import JsonObject
from proxy.wire.reader import Reader
from proxy.wire.realtime import items as realtime_items
from proxy.wire.realtime.items import Items, chosen_items


def user(text: str, **members: str) -> Reader:
    return Reader({"type": "message", "role": "user", "content": text, **members}, "item")


def call(call_id: str) -> Reader:
    return Reader({"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}, "item")


def output(call_id: str, text: str = "beans") -> Reader:
    return Reader({"type": "function_call_output", "call_id": call_id, "output": text}, "item")


@given(st.lists(st.one_of(st.none(), st.just("root"), st.integers(0, 20))))
def test_an_item_stands_where_it_was_put(places: list[str | int | None]) -> None:
    items, expected = Items(), list[str]()
    for number, place in enumerate(places):
        after = expected[place % len(expected)] if isinstance(place, int) and expected else place
        after = None if isinstance(after, int) else after
        made = items.create(user("x", id=str(number)), after)
        index = len(expected) if after is None else 0 if after == "root" else expected.index(after) + 1
        expected.insert(index, str(number))
        assert items.before(made["id"]) == (expected[index - 1] if index else None)
    assert [item["id"] for item in items] == expected


def test_the_model_is_shown_what_makes_sense() -> None:
    items = Items()
    for item in (user("hi"), call("call_1"), user("meanwhile"), call("call_2"), output("call_2"), call("call_3")):
        items.create(item)
    items.create(Reader({"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be kind."}]}))
    items.create(Reader({"type": "message", "role": "assistant", "content": "Yes."}))
    gone = items.create(output("call_3"))
    items.delete(str(next(item["id"] for item in items if item.get("call_id") == "call_3")))
    assert gone in list(items)
    assert items.entries() == (
        UserTurn((Text("hi"),)),
        PastCall("call_1", "f", "{}"),
        UserTurn((Text("meanwhile"),)),
        PastCall("call_2", "f", "{}"),
        ToolResult("call_2", (Text("beans"),)),
        Guidance("Be kind."),
        AssistantText("Yes."),
    )


def test_results_end_a_conversation_until_the_user_speaks() -> None:
    items = Items()
    items.create(user("hi"))
    items.create(call("call_1"))
    ended = [items.end_with_results]
    for item in (output("call_1"), user("And?")):
        items.create(item)
        ended.append(items.end_with_results)
    assert ended == [False, True, False]


@pytest.mark.parametrize(
    "item", [user("x", id="mine"), call("call_1"), output("call_1"), output("call_9"), user("x" * 200)]
)
def test_what_is_refused_changes_nothing(monkeypatch: pytest.MonkeyPatch, item: Reader) -> None:
    items = Items()
    for made in (user("hi", id="mine"), call("call_1"), output("call_1")):
        items.create(made)
    before = list(items)
    monkeypatch.setattr(realtime_items, "MAX_CONVERSATION_BYTES", 600)
    with pytest.raises(RequestError):
        items.create(item)
    assert list(items) == before


def test_what_was_deleted_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime_items, "MAX_CONVERSATION_BYTES", 300)
    items = Items()
    for number in range(20):
        made: JsonObject = items.create(user("x" * 100))
        assert len(list(items)) == 1, number
        items.delete(str(made["id"]))


def test_a_response_may_choose_among_the_items() -> None:
    items = Items()
    known = items.create(user("known"))
    items.create(user("unwanted"))
    wanted = Reader({"input": [{"type": "item_reference", "id": known["id"]}, user("new").raw]}, "response")
    assert chosen_items(items, wanted).entries() == (UserTurn((Text("known"),)), UserTurn((Text("new"),)))
    assert len(list(items)) == 2
