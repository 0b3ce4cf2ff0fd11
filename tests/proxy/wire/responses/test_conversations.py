"""What /v1/conversations take, and what they answer."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.contracts import StoredConversation
from proxy.errors import RequestError
from proxy.wire.responses.conversations import added_items, conversation_object
from proxy.wire.responses.input_items import History

USER = {"type": "message", "role": "user", "content": "Hi."}
CALL = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "text"}


def added(*items: Any, history: History | None = None) -> list[dict[str, Any]]:
    return [dict(item) for item in added_items({"items": list(items)}, history or History())]


def refusal(*items: Any, history: History | None = None) -> tuple[str, str | None, str | None]:
    with pytest.raises(RequestError) as caught:
        added(*items, history=history)
    return caught.value.message, caught.value.code, caught.value.param


def test_items_are_kept_in_their_long_form() -> None:
    (item,) = added({"role": "user", "content": "Hi."})
    assert str(item.pop("id")).startswith("msg_")
    content = [{"type": "input_text", "text": "Hi."}]
    assert item == {"type": "message", "role": "user", "status": "completed", "content": content}


def test_a_call_may_be_added_before_its_output_and_an_output_behind_its_call() -> None:
    assert [item["type"] for item in added(CALL)] == ["function_call"]
    assert [item["type"] for item in added(OUTPUT, history=History((CALL,)))] == ["function_call_output"]
    fault = "No tool call found for function call output with call_id call_1."
    assert refusal(OUTPUT) == (fault, None, "items")


def test_twenty_items_may_be_added_at_once() -> None:
    assert len(added(*[USER] * 20)) == 20
    assert "20" in refusal(*[USER] * 21)[0]


@pytest.mark.parametrize(
    ("item", "path", "prefix"),
    [
        ({**USER, "id": "fc_1"}, "items[0].id", "msg"),
        ({"role": "user", "content": "Hi.", "id": "fc_1"}, "items[0].id", "msg"),
        ({**CALL, "id": "msg_1"}, "items[0].id", "fc"),
    ],
)
def test_an_id_begins_as_its_kind_does(item: dict[str, Any], path: str, prefix: str) -> None:
    told = f"Invalid '{path}': '{item['id']}'. Expected an ID that begins with '{prefix}'."
    assert refusal(item) == (told, "invalid_value", path)


@pytest.mark.parametrize(
    "item", [USER, {"role": "user", "content": "Hi."}, CALL, {"type": "shell_call", "call_id": "c"}]
)
def test_a_status_is_a_string(item: dict[str, Any]) -> None:
    told = "Invalid type for 'items[1].status': expected a string, but got an integer instead."
    assert refusal(USER, {**item, "status": 5}) == (told, "invalid_type", "items[1].status")
    assert added({**item, "status": None})[0]["status"] == "completed"


def test_a_status_is_one_that_an_item_of_its_kind_has() -> None:
    told = "Invalid value: 'failed'. Supported values are: 'in_progress', 'completed', 'incomplete'."
    assert refusal({**USER, "status": "failed"}) == (told, "invalid_value", "items[0].status")
    assert added({**USER, "status": "incomplete"})[0]["status"] == "incomplete"
    patch = {"type": "apply_patch_call_output", "call_id": "c", "status": "failed"}
    assert added({"type": "apply_patch_call", "call_id": "c"}, patch)[1]["status"] == "failed"


def test_an_id_that_stands_there_is_refused_and_any_other_kept() -> None:
    there = History(({**USER, "id": "msg_1"},))
    assert refusal({**USER, "id": "msg_1"}, history=there) == (
        "Item already in conversation", "item_already_in_conversation", "items",
    )  # fmt: skip
    assert [item["id"] for item in added({**USER, "id": "msg_2"}, history=there)] == ["msg_2"]
    assert [item["id"] for item in added({**CALL, "id": "fc_2"}, {**OUTPUT, "id": "any"})] == ["fc_2", "any"]


def test_what_asks_for_a_summary_is_refused() -> None:
    told = "A 'compaction_trigger' must be the last item of 'input'."
    assert refusal(USER, {"type": "compaction_trigger"}) == (told, "invalid_value", "items[1]")


def test_a_reference_brings_what_it_refers_to() -> None:
    answer = {"type": "message", "id": "other_1", "role": "assistant", "content": "Yes."}
    (item,) = added({"id": "other_1"}, history=History(referred={"other_1": answer}))
    assert (item["id"], item["role"]) == ("other_1", "assistant")


def test_a_conversation_is_told_without_its_items() -> None:
    conversation = StoredConversation("conv_1", "me", 7, {"topic": "beans"})
    assert conversation_object(conversation) == {
        "id": "conv_1",
        "object": "conversation",
        "created_at": 7,
        "metadata": {"topic": "beans"},
    }
