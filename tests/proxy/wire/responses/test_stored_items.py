"""Items as they are kept."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses import ResponseItemList

from proxy.wire.responses.pages import item_list
from proxy.wire.responses.stored_items import stored_input


def test_a_string_is_a_users_message() -> None:
    (item,) = stored_input("Hello", mint=lambda prefix: f"{prefix}_1")
    assert item == {
        "id": "msg_1", "type": "message", "role": "user", "status": "completed",
        "content": [{"type": "input_text", "text": "Hello"}],
    }  # fmt: skip


def test_what_a_client_said_of_an_item_stays() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"}
    item: Any = {
        "type": "message", "role": "user", "id": "msg_mine", "status": "incomplete", "content": [image], "phase": None,
    }  # fmt: skip
    assert stored_input([item]) == (item,)


def test_an_answer_that_comes_back_is_kept_as_it_was() -> None:
    part = {"type": "output_text", "text": "Hi", "annotations": [{"type": "x"}], "logprobs": []}
    item: Any = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [part]}
    refusal: Any = {**item, "id": "msg_2", "content": [{"type": "refusal", "refusal": "No"}]}
    assert stored_input([item, refusal]) == (item, refusal)


def test_each_kind_gets_an_id_of_its_own_prefix() -> None:
    kinds = [
        ("function_call", "fc"), ("function_call_output", "fco"), ("custom_tool_call", "ctc"), ("compaction", "cmp"),
        ("custom_tool_call_output", "ctco"), ("reasoning", "rs"), ("tool_search_call", "tsc"),
        ("tool_search_output", "tso"), ("web_search_call", "item"),
    ]  # fmt: skip
    for kind, prefix in kinds:
        (item,) = stored_input([{"type": kind, "id": None}], mint=lambda prefix: f"{prefix}_1")
        assert item["id"] == f"{prefix}_1"


def test_a_history_that_is_sent_again_has_the_same_ids() -> None:
    first: Any = [{"role": "user", "content": "Yes"}, {"role": "user", "content": "Yes"}]
    before = stored_input(first, mint=None)
    after = stored_input([*first, {"role": "user", "content": "No"}], mint=None)
    assert after[:2] == before
    assert len({item["id"] for item in after}) == 3
    assert all(str(item["id"]).startswith("msg_") for item in after)
    other: Any = [{"role": "user", "content": "No"}, *first]
    assert not {item["id"] for item in stored_input(other, mint=None)} & {item["id"] for item in after}


def test_a_reference_is_kept_as_what_it_stands_for() -> None:
    stored: Any = {"type": "function_call", "id": "fc_1", "status": "completed", "name": "f"}
    for reference in ({"type": "item_reference", "id": "fc_1"}, {"id": "fc_1"}):
        value: Any = [reference]
        assert stored_input(value, {"fc_1": stored}) == (stored,)


def test_what_asks_for_a_summary_is_no_item_of_the_conversation() -> None:
    kept = stored_input([{"role": "user", "content": "Hello"}, {"type": "compaction_trigger"}])
    assert [item["type"] for item in kept] == ["message"]


def test_empty_content_is_no_part() -> None:
    (item,) = stored_input([{"role": "assistant", "content": None}], mint=lambda prefix: f"{prefix}_1")
    assert item["content"] == []


IMAGE = "data:image/png;base64,iVBORw0KGgo="
PARTS: list[dict[str, Any]] = [
    {"type": "input_text", "text": "a"},
    {"type": "input_image", "image_url": IMAGE},
    {"type": "input_image", "image_url": IMAGE, "detail": None},
    {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
    {"type": "input_file", "filename": "a.txt", "file_data": "aGk="},
    {"type": "file", "file": {"filename": "a.txt", "file_data": "aGk="}},
]


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": PARTS},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        {"type": "function_call_output", "call_id": "call_1", "output": PARTS},
        {"type": "function_call_output", "call_id": "call_1", "output": "text"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": PARTS},
        {"type": "reasoning", "encrypted_content": "YQ=="},
        {"type": "tool_search_call", "call_id": "call_1", "arguments": {"query": "notes"}},
        {"type": "tool_search_output", "call_id": "call_1", "tools": []},
        {"type": "computer_call", "call_id": "call_1", "action": {"type": "wait"}},
        {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "call_1", "output": []},
        {"type": "computer_call_output", "call_id": "call_1", "output": {"type": "computer_screenshot"}},
    ],
    ids=lambda item: item.get("type", item.get("role")),
)
def test_a_short_form_becomes_one_that_the_official_client_has_a_type_for(item: Any) -> None:
    (stored,) = listed = stored_input([item])
    ResponseItemList.model_validate(item_list(listed), strict=True)
    assert stored_input([stored]) == listed


def test_an_image_is_kept_with_the_detail_that_was_asked_for() -> None:
    item: Any = {"role": "user", "content": PARTS}
    stored: Any = stored_input([item])[0]
    details = [part["detail"] for part in stored["content"] if part["type"] == "input_image"]
    assert details == ["auto", "auto", "low"]
