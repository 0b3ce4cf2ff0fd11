"""The items of a Realtime conversation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import AssistantText, Guidance, PastCall, Text, ToolResult, UserTurn
from proxy.errors import RequestError
from proxy.ids import CALL_ID, shown_id
from proxy.wire.json_body import JsonObject, JsonValue
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


@pytest.mark.parametrize("theirs", ["call_1|fc_2", "toolu/\u00fc 1", "x" * 500, "a\nb"])
def test_an_id_of_another_server_pairs_and_is_kept(theirs: str) -> None:
    items = Items()
    assert [items.create(item)["call_id"] for item in (call(theirs), output(theirs))] == [theirs, theirs]
    past, result = items.entries()
    assert isinstance(past, PastCall)
    assert isinstance(result, ToolResult)
    assert past.call_id == result.call_id == shown_id(theirs)
    assert CALL_ID.fullmatch(past.call_id)


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


def said(*texts: str, **members: str) -> Reader:
    parts: JsonValue = [{"type": "output_text", "text": text} for text in texts]
    return Reader({"type": "message", "role": "assistant", "content": parts, **members}, "item")


@pytest.mark.parametrize(("index", "left"), [(0, ["", "two", "three"]), (1, ["one", "", "three"])])
def test_of_a_part_that_was_not_heard_the_text_goes(index: int, left: list[str]) -> None:
    items = Items()
    items.create(said("one", "two", "three", id="item_1"))
    items.truncate("item_1", index)
    content: Any = items.get("item_1")["content"]
    assert [part["text"] for part in content] == left
    assert {part["type"] for part in content} == {"output_text"}
    assert (items.get("item_1")["role"], items.before("item_1")) == ("assistant", None)


@pytest.mark.parametrize(
    ("item_id", "index", "message", "code", "param"),
    [
        ("item_9", 0, "Item with id 'item_9' not found in conversation.", "item_not_found", "item_id"),
        ("user", 0, "Only messages of the assistant can be truncated.", "invalid_value", "item_id"),
        ("call", 0, "Only messages of the assistant can be truncated.", "invalid_value", "item_id"),
        ("item_1", 1, "Item 'item_1' has no content part 1.", "invalid_value", "content_index"),
        ("item_1", -1, "Item 'item_1' has no content part -1.", "invalid_value", "content_index"),
    ],
)
def test_only_what_the_assistant_said_can_be_truncated(
    item_id: str, index: int, message: str, code: str, param: str
) -> None:
    items = Items()
    for item in (said("one", id="item_1"), user("hi", id="user"), Reader({**call("c").raw, "id": "call"}, "item")):
        items.create(item)
    before = list(items)
    with pytest.raises(RequestError) as caught:
        items.truncate(item_id, index)
    assert (caught.value.message, caught.value.code, caught.value.param) == (message, code, param)
    assert list(items) == before


def test_an_item_cannot_stand_behind_one_that_is_not_there() -> None:
    with pytest.raises(RequestError) as caught:
        Items().create(user("hi"), "item_9")
    assert caught.value.message == "Item with id 'item_9' not found in conversation."
    assert (caught.value.code, caught.value.param) == ("item_not_found", "previous_item_id")


@pytest.mark.parametrize(
    ("item", "message", "code", "param"),
    [
        ({"id": "mine", "type": "message"}, "An item with id 'mine' exists already.", "invalid_value", "item.id"),
        (call("call_1").raw, "Duplicate function call found with call_id call_1.", "invalid_value", "item.call_id"),
        (
            output("call_9").raw,
            "Tool call ID 'call_9' not found in conversation.",
            "invalid_tool_call_id",
            "item.call_id",
        ),
        (output("call_1").raw, "Tool call ID 'call_1' has its output already.", "invalid_value", "item.call_id"),
        (
            {"type": "video"},
            "Invalid value: 'video'. Supported values are: 'message', 'function_call', 'function_call_output'.",
            "invalid_value",
            "item.type",
        ),
        (
            {"type": "message", "role": "tool", "content": "x"},
            "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'user'.",
            "invalid_value",
            "item.role",
        ),
        (
            {"type": "message", "role": "user"},
            "Missing required parameter: 'item.content'.",
            "missing_required_parameter",
            "item.content",
        ),
        (
            {"type": "function_call_output", "call_id": "call_1"},
            "Missing required parameter: 'item.output'.",
            "missing_required_parameter",
            "item.output",
        ),
        (
            {"type": "function_call", "call_id": "call_2"},
            "Missing required parameter: 'item.name'.",
            "missing_required_parameter",
            "item.name",
        ),
    ],
)
def test_what_is_no_item_is_refused_in_openais_words(item: JsonObject, message: str, code: str, param: str) -> None:
    items = Items()
    for made in (user("hi", id="mine"), call("call_1"), output("call_1")):
        items.create(made)
    with pytest.raises(RequestError) as caught:
        items.create(Reader(item, "item"))
    assert (caught.value.message, caught.value.code, caught.value.param) == (message, code, param)


def test_content_that_is_none_is_refused_by_its_path() -> None:
    with pytest.raises(RequestError) as caught:
        Items().create(Reader({"type": "message", "role": "user", "content": [{"type": "video"}]}, "item"))
    assert caught.value.param == "item.content[0].type"


def test_an_item_is_kept_in_its_long_form() -> None:
    items = Items(mint=lambda prefix: f"{prefix}_1")
    head = {"id": "item_1", "object": "realtime.item", "status": "completed"}
    for role, kind in (("user", "input_text"), ("assistant", "output_text"), ("system", "input_text")):
        made = items.create(Reader({"type": "message", "role": role, "content": "hi"}, "item"))
        assert made == {**head, "type": "message", "role": role, "content": [{"type": kind, "text": "hi"}]}
        items.delete("item_1")
    made = items.create(Reader({"type": "function_call", "name": "f"}, "item"))
    assert made == {**head, "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    made = items.create(Reader({**output("call_1").raw, "id": "out"}, "item"))
    assert made == {**head, "id": "out", "type": "function_call_output", "call_id": "call_1", "output": "beans"}
    assert items.before("out") == "item_1"
    assert items.before("gone") is None


def test_a_full_conversation_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime_items, "MAX_ITEMS", 2)
    items = Items()
    items.create(user("one"))
    items.create(user("two"))
    with pytest.raises(RequestError) as caught:
        items.create(user("three"))
    told = caught.value.message.split(" items with ")
    assert told[0] == "The conversation is full: it may have 2"
    assert told[1].endswith(" MiB. Delete some.")
    assert caught.value.code == "conversation_too_large"


def test_a_reference_is_named_where_it_is_wrong() -> None:
    wanted = Reader({"input": [user("x").raw, {"type": "item_reference", "id": "gone"}]}, "response")
    with pytest.raises(RequestError, match="'gone' not found") as caught:
        chosen_items(Items(), wanted)
    assert caught.value.param == "response.input[1].id"
    with pytest.raises(RequestError) as caught:
        chosen_items(Items(), Reader({"input": [user("x").raw, {"type": "video"}]}, "response"))
    assert caught.value.param == "response.input[1].type"
