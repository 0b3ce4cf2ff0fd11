"""Each row of the pairing rules, in OpenAI's words; and each kind of item that the official client may send."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from openai.types.responses.response_input_item_param import ResponseInputItemParam

from prompts import AssistantText, Entry, PastCall, Text, ToolResult, UserTurn
from proxy.errors import RequestError
from proxy.ids import shown_id
from proxy.wire.responses.compaction_items import Summary, write_summary
from proxy.wire.responses.input_items import ITEM_KINDS, SILENT_ITEMS, History
from proxy.wire.responses.request import parse_responses_request
from tests.support.parts import text_of_parts
from tests.support.published_types import type_names

CALL: dict[str, Any] = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
OUTPUT: dict[str, Any] = {"type": "function_call_output", "call_id": "call_1", "output": "text"}
CUSTOM: dict[str, Any] = {"type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "x"}
CUSTOM_OUTPUT: dict[str, Any] = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "text"}
SEARCH: dict[str, Any] = {
    "type": "tool_search_call", "call_id": "call_1", "execution": "client", "arguments": {"query": "notes"},
}  # fmt: skip
FOUND: dict[str, Any] = {
    "type": "tool_search_output", "call_id": "call_1", "execution": "client",
    "tools": [
        {"type": "function", "name": "read", "defer_loading": True},
        {"type": "namespace", "name": "mcp__notes", "tools": [{"type": "function", "name": "find"}]},
    ],
}  # fmt: skip
USER: dict[str, Any] = {"role": "user", "content": "Go on."}
PAST, RESULT = PastCall("call_1", "read", "{}"), ToolResult("call_1", (Text("text"),))
NO_RESULT = ToolResult("call_1", (Text("(no separate result)"),))
CUSTOM_PAST = PastCall("call_1", "patch", '{"input":"x"}')


def entries(*items: dict[str, Any], history: History | None = None, **members: Any) -> tuple[Entry, ...]:
    body = {"model": "m", "input": list(items), **members}
    return parse_responses_request(body, history or History()).turn.transcript.entries


def refusal(*items: dict[str, Any], history: History | None = None, **members: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        entries(*items, history=history or History(strict=True), **members)
    return caught.value


def call(number: int, **more: Any) -> dict[str, Any]:
    return {**CALL, "call_id": f"call_{number}", **more}


def output(number: int, **more: Any) -> dict[str, Any]:
    return {**OUTPUT, "call_id": f"call_{number}", **more}


def test_calls_that_another_server_named_keep_their_outputs() -> None:
    foreign = "call_1|fc_1"
    shown = shown_id(foreign)
    assert entries({**CALL, "call_id": foreign}, {**OUTPUT, "call_id": foreign}) == (
        replace(PAST, call_id=shown),
        replace(RESULT, call_id=shown),
    )


DUPLICATE = "Duplicate item found with id fc_1. Remove duplicate items from your input and try again."
REFUSED: list[tuple[list[dict[str, Any]], str]] = [
    ([OUTPUT], "No tool call found for function call output with call_id call_1."),
    ([OUTPUT, CALL], "No tool call found for function call output with call_id call_1."),
    ([CUSTOM_OUTPUT], "No tool call found for custom tool call output with call_id call_1."),
    ([CALL], "No tool output found for function call call_1."),
    ([CALL, USER], "No tool output found for function call call_1."),
    ([CALL, call(2), output(2)], "No tool output found for function call call_1."),
    ([CUSTOM], "No tool output found for custom tool call call_1."),
    ([SEARCH], "No tool output found for tool search call call_1."),
    ([FOUND], "No tool call found for tool search call output with call_id call_1."),
    ([CALL, SEARCH, FOUND], "Duplicate tool search call found with call_id call_1."),
    ([{**CALL, "id": "fc_1"}, OUTPUT, {**USER, "id": "fc_1"}], DUPLICATE),
    ([{**CALL, "id": "fc_1"}, {**CALL, "id": "fc_1"}, OUTPUT], DUPLICATE),
    ([CALL, CALL, OUTPUT], "Duplicate function call found with call_id call_1."),
    ([CALL, CUSTOM, OUTPUT], "Duplicate custom tool call found with call_id call_1."),
    ([CALL, OUTPUT, {**OUTPUT, "output": "other"}], "Duplicate function call output found with call_id call_1."),
]


@pytest.mark.parametrize(("items", "message"), REFUSED, ids=[str(index) for index in range(len(REFUSED))])
def test_calls_and_outputs_that_do_not_pair_are_refused_in_openais_words(
    items: list[dict[str, Any]], message: str
) -> None:
    error = refusal(*items)
    assert error.message == message
    assert (error.status, error.type, error.param, error.code) == (400, "invalid_request_error", "input", None)


@pytest.mark.parametrize(
    ("item", "path"),
    [
        ({**OUTPUT, "output": None}, "input[1].output"),
        ({"type": "function_call_output", "call_id": "call_1"}, "input[1].output"),
        ({"type": "function_call_output", "output": "x"}, "input[1].call_id"),
        ({"type": "custom_tool_call_output", "call_id": "call_1"}, "input[1].output"),
        ({"type": "custom_tool_call", "call_id": "c", "name": "patch"}, "input[1].input"),
        ({"type": "function_call", "call_id": "c", "name": "read"}, "input[1].arguments"),
        ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "input[1].name"),
        ({"type": "function_call", "name": "read", "arguments": "{}"}, "input[1].call_id"),
        ({"type": "item_reference"}, "input[1].id"),
    ],
)
def test_a_member_that_is_missing_is_named_by_its_path(item: dict[str, Any], path: str) -> None:
    error = refusal(CALL, item)
    assert error.message == f"Missing required parameter: '{path}'."
    assert (error.status, error.param, error.code) == (400, path, "missing_required_parameter")


ACCEPTED: list[tuple[list[dict[str, Any]], tuple[Entry, ...]]] = [
    ([CALL, OUTPUT], (PAST, RESULT)),
    ([CALL, OUTPUT, OUTPUT], (PAST, RESULT)),
    ([CALL, USER, OUTPUT], (PAST, UserTurn((Text("Go on."),)), RESULT)),
    ([{**CALL, "arguments": "not JSON"}, OUTPUT], (PastCall("call_1", "read", "not JSON"), RESULT)),
    ([{**CALL, "arguments": ""}, OUTPUT], (PAST, RESULT)),
    ([CALL, {**OUTPUT, "output": ""}], (PAST, ToolResult("call_1", ()))),
    ([CALL, {**OUTPUT, "name": "read", "namespace": None, "status": "completed"}], (PAST, RESULT)),
    ([CUSTOM, CUSTOM_OUTPUT], (CUSTOM_PAST, RESULT)),
    ([{**CUSTOM, "input": ""}, CUSTOM_OUTPUT], (PastCall("call_1", "patch", '{"input":""}'), RESULT)),
    ([CUSTOM, OUTPUT], (CUSTOM_PAST, RESULT)),
    (
        [{**CALL, "id": "fc_1"}, {"type": "reasoning", "id": "rs_1", "summary": []}, {**OUTPUT, "id": "fco_1"}],
        (PAST, RESULT),
    ),
    ([{"type": "message", "role": "assistant", "content": "", "phase": "commentary"}, CALL, OUTPUT], (PAST, RESULT)),
    (
        [{"role": "assistant", "content": "I look.", "phase": "final_answer"}],
        (AssistantText("I look.", "final_answer"),),
    ),
]


@pytest.mark.parametrize(("items", "expected"), ACCEPTED, ids=[str(index) for index in range(len(ACCEPTED))])
@pytest.mark.parametrize("tools", [None, [{"type": "function", "name": "other"}]])
def test_calls_and_outputs_that_pair_are_accepted_whatever_the_tools(
    items: list[dict[str, Any]], expected: tuple[Entry, ...], tools: Any
) -> None:
    assert entries(*items, tools=tools) == expected


NAMED = {"type": "function_call_output", "call_id": None, "name": "read", "output": "text"}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([CALL, NAMED], (PAST, RESULT)),
        ([call(2), CALL, NAMED, output(2)], None),
        ([USER, NAMED], (UserTurn((Text("Go on."),)), replace(RESULT, call_id="read"))),
        ([CALL, OUTPUT, NAMED], (PAST, RESULT, replace(RESULT, call_id="read"))),
        ([CALL, {**NAMED, "name": "other"}, OUTPUT], (PAST, replace(RESULT, call_id="other"), RESULT)),
    ],
    ids=["its call", "the newest", "for itself", "answered", "another tool"],
)
def test_an_output_that_names_its_tool_answers_the_newest_open_call_of_it_or_stands_for_itself(
    items: list[dict[str, Any]], expected: tuple[Entry, ...] | None, strict: bool
) -> None:
    found = entries(*items, history=History(strict=strict))
    assert found == (expected or (replace(PAST, call_id="call_2"), PAST, RESULT, replace(RESULT, call_id="call_2")))


def test_an_output_of_a_namespaces_tool_names_both() -> None:
    both = {"name": "find", "namespace": "mcp__notes"}
    past, result = entries({**CALL, **both}, {**NAMED, **both})
    assert (past, result) == (replace(PAST, name="mcp__notes__find"), RESULT)


def test_outputs_may_come_in_another_order_than_their_calls() -> None:
    got = entries(call(1), call(2), output(2), output(1))
    assert [entry.call_id for entry in got if isinstance(entry, ToolResult)] == ["call_2", "call_1"]


def test_a_call_that_is_resent_beside_its_stored_self_is_a_duplicate_in_strict_history() -> None:
    stored = History(items=({**CALL, "id": "fc_1"},), strict=True)
    assert entries(OUTPUT, history=stored, previous_response_id="resp_1") == (PAST, RESULT)
    error = refusal({**CALL, "id": "fc_1"}, OUTPUT, history=stored, previous_response_id="resp_1")
    assert error.message == DUPLICATE


@pytest.mark.parametrize("again", [{**CALL, "id": "fc_1"}, CALL, {**CALL, "id": "fc_2", "status": "completed"}])
def test_a_call_that_is_resent_before_its_output_counts_once_in_forgiving_history(again: dict[str, Any]) -> None:
    stored = ({**CALL, "id": "fc_1"},)
    assert entries(again, OUTPUT, history=History(stored), previous_response_id="resp_1") == (PAST, RESULT)
    # And so it does in what continues that.
    kept = History((*stored, again, OUTPUT))
    assert entries(USER, history=kept, previous_response_id="resp_2") == (PAST, RESULT, UserTurn((Text("Go on."),)))


def test_one_item_id_twice_in_one_request_is_a_duplicate_whatever_the_history() -> None:
    for history in (History(), History((USER,))):
        twice = [{**CALL, "id": "fc_1"}, {**CALL, "id": "fc_1"}, OUTPUT]
        assert refusal(*twice, history=history).message == DUPLICATE
        assert refusal({**CALL, "id": "fc_1"}, OUTPUT, {**USER, "id": "fc_1"}, history=history).message == DUPLICATE
    stored = History(({**CALL, "id": "fc_1"},))
    assert refusal({**CALL, "id": "fc_1", "name": "write"}, OUTPUT, history=stored).message == DUPLICATE


def test_a_request_that_continues_something_needs_no_input() -> None:
    stored = History(items=(USER,))
    assert entries(history=stored, input=None, previous_response_id="resp_1") == (UserTurn((Text("Go on."),)),)


@pytest.mark.parametrize("reference", [{"type": "item_reference", "id": "msg_1"}, {"id": "msg_1"}])
def test_a_reference_stands_for_its_item(reference: dict[str, Any]) -> None:
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
    assert entries(reference, history=History(referred={"msg_1": said})) == (AssistantText("Hi."),)
    error = refusal({"type": "item_reference", "id": "msg_1"})
    assert (error.status, error.message) == (404, "Item with id 'msg_1' not found.")


LED = "These tools are among yours now, and are called as the others are:"


def test_a_search_is_a_call_whose_result_is_what_it_found() -> None:
    for arguments in ({"query": "notes"}, '{"query":"notes"}'):
        past, result = entries({**SEARCH, "arguments": arguments}, FOUND)
        assert past == PastCall("call_1", "tool_search", '{"query":"notes"}')
        shown = f'{LED}\n{{"name":"read"}}\n{{"name":"mcp__notes__find"}}'
        assert result == ToolResult("call_1", (Text(shown),), ("read", "mcp__notes__find"))
    _, again = entries(SEARCH, FOUND, tools=[{"type": "function", "name": "read"}])
    assert again == ToolResult("call_1", (Text(f'{LED}\n{{"name":"mcp__notes__find"}}'),), ("mcp__notes__find",))
    offered = {**FOUND, "tools": [{"type": "function", "name": "read"}]}
    _, known = entries(SEARCH, offered, tools=[{"type": "function", "name": "read"}])
    assert known == ToolResult("call_1", (Text("These tools are among yours: read"),))
    _, nothing = entries(SEARCH, {**FOUND, "tools": []})
    assert nothing == ToolResult("call_1", (Text("No tool was found."),))


def test_a_search_that_ran_at_openai_is_no_call_and_its_tools_are_offered_all_the_same() -> None:
    hosted = {"execution": "server", "call_id": None}
    body: dict[str, Any] = {"model": "m", "input": [{**SEARCH, **hosted}, {**FOUND, **hosted}, USER]}
    turn = parse_responses_request(body).turn
    assert turn.transcript.entries == (UserTurn((Text("Go on."),)),)
    assert [tool.name for tool in turn.registry] == ["read", "mcp__notes__find"]


def test_what_a_search_found_is_offered_in_all_that_follows() -> None:
    stored = History(items=(SEARCH, FOUND, call(2), output(2)))
    tools = [{"type": "function", "name": "a"}]
    body: dict[str, Any] = {"model": "m", "input": [USER], "previous_response_id": "resp_1", "tools": tools}
    turn = parse_responses_request(body, stored).turn
    assert [tool.name for tool in turn.registry] == ["a", "read", "mcp__notes__find"]


def test_every_kind_of_item_of_the_official_client_is_known() -> None:
    assert type_names(ResponseInputItemParam) <= set(ITEM_KINDS)


MENDED: list[tuple[list[dict[str, Any]], tuple[Entry, ...], dict[str, int]]] = [
    ([OUTPUT, CALL, USER], (PAST, RESULT, UserTurn((Text("Go on."),))), {"reordered": 1}),
    ([CALL], (PAST, NO_RESULT), {"missing": 1}),
    ([CALL, USER], (PAST, NO_RESULT, UserTurn((Text("Go on."),))), {"missing": 1}),
    (
        [CALL, call(2), output(2), {"role": "assistant", "content": "So."}],
        (
            PAST,
            PastCall("call_2", "read", "{}"),
            ToolResult("call_2", (Text("text"),)),
            NO_RESULT,
            AssistantText("So."),
        ),
        {"missing": 1},
    ),
    ([CUSTOM], (CUSTOM_PAST, NO_RESULT), {"missing": 1}),
    (
        [CALL, OUTPUT, {**OUTPUT, "output": "other"}],
        (PAST, RESULT, ToolResult("call_1", (Text("other"),))),
        {"doubled": 1},
    ),
    # Clients that count the calls of each turn.
    (
        [CALL, OUTPUT, USER, {**CALL, "arguments": "[]"}, {**OUTPUT, "output": "other"}],
        (
            PAST, RESULT, UserTurn((Text("Go on."),)), PastCall("call_1", "read", "[]"),
            ToolResult("call_1", (Text("other"),)),
        ),
        {},
    ),
    ([CALL, OUTPUT, USER, CALL, OUTPUT], (PAST, RESULT, UserTurn((Text("Go on."),)), PAST, RESULT), {}),
    ([CALL, OUTPUT, CALL, USER], (PAST, RESULT, PAST, NO_RESULT, UserTurn((Text("Go on."),))), {"missing": 1}),
    ([CALL, CUSTOM, CUSTOM_OUTPUT], (PAST, CUSTOM_PAST, RESULT, NO_RESULT), {"missing": 1}),
    ([CALL, CALL, OUTPUT], (PAST, RESULT), {}),
]  # fmt: skip


@pytest.mark.parametrize(("items", "expected", "repairs"), MENDED, ids=[str(index) for index in range(len(MENDED))])
def test_outputs_that_do_not_pair_are_made_to(
    items: list[dict[str, Any]], expected: tuple[Entry, ...], repairs: dict[str, int]
) -> None:
    body: dict[str, Any] = {"model": "m", "input": items}
    turn = parse_responses_request(body).turn
    assert turn.transcript.entries == expected
    assert turn.repairs == repairs


def test_an_output_without_any_call_is_refused_all_the_same() -> None:
    with pytest.raises(RequestError, match="No tool call found for function call output with call_id call_1"):
        entries(USER, OUTPUT)


@pytest.mark.parametrize("kind", sorted(SILENT_ITEMS - {"additional_tools", "compaction_trigger"}))
def test_what_says_nothing_to_a_text_model_is_accepted(kind: str) -> None:
    assert entries({"type": kind}, USER) == (UserTurn((Text("Go on."),)),)


def test_a_compaction_is_shown_by_its_summary_if_it_is_ours() -> None:
    ours, other = write_summary(Summary("Beans are out.")), "gAAAA"
    items = [{"type": "compaction", "encrypted_content": content} for content in (ours, other, None)]
    shown, user = entries(*items, USER)
    assert isinstance(shown, UserTurn)
    assert "Beans are out." in text_of_parts(shown.parts)
    assert user == UserTurn((Text("Go on."),))


def test_what_is_wrong_with_a_stored_item_is_named_as_one() -> None:
    error = refusal(USER, history=History(({"type": "video"},)))
    assert error.param == "previous_response.items[0].type"
