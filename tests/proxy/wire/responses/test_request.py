"""What a request may say, and OpenAI's answer to what it may not."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from prompts import AssistantText, Guidance, Image, PastCall, Text, ToolResult, UserTurn
from proxy.contracts import Compaction, OutputFormat
from proxy.errors import RequestError
from proxy.wire.json_body import parse_json_object
from proxy.wire.responses.request import (
    DEFAULT_THRESHOLD,
    ResponsesRequest,
    lookups,
    parse_responses_request,
)

PNG = "data:image/png;base64,iVBORw0KGgo="
READ: dict[str, Any] = {
    "type": "function",
    "name": "read_note",
    "description": "Read a note.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
CALL = {"type": "function_call", "call_id": "call_1", "name": "read_note", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "text"}


def parse(**members: object) -> ResponsesRequest:
    return parse_responses_request(parse_json_object(orjson.dumps({"model": "m", "input": "hi", **members})))


def refusal(**members: object) -> RequestError:
    with pytest.raises(RequestError) as caught:
        parse(**members)
    return caught.value


def nested(depth: int) -> dict[str, object]:
    schema: dict[str, object] = {"type": "string"}
    for _ in range(depth):
        schema = {"a": schema}
    return schema


REFUSED: list[tuple[dict[str, Any], str | None, str | None, str]] = [
    # members, param, code, a part of the message
    ({"model": None}, "model", "missing_required_parameter", "Missing required parameter: 'model'."),
    ({"model": 7}, "model", "invalid_type", "Invalid type for 'model': expected a string, but got an integer instead."),
    ({"model": ""}, "model", "empty_string", "Invalid 'model': empty string"),
    ({"model": " "}, "model", "invalid_value", "does not match pattern"),
    ({"model": "m" * 300}, "model", "invalid_value", "does not match pattern"),
    ({"model": "a\nb"}, "model", "invalid_value", "does not match pattern"),
    ({"input": None}, "input", "missing_required_parameter", "Missing required parameter: 'input'."),
    ({"input": 7}, "input", "invalid_type", "but got an integer instead"),
    ({"input": ["hi"]}, "input[0]", "invalid_type", "expected an object, but got a string"),
    ({"input": [{"role": "user"}]}, "input[0].content", "missing_required_parameter", "'input[0].content'"),
    ({"input": [{"role": "user", "content": None}]}, "input[0].content", "missing_required_parameter", "input[0]"),
    ({"input": [{"content": "x"}]}, "input[0].type", "missing_required_parameter", "'input[0].type'"),
    ({"input": [{"type": "riddle"}]}, "input[0].type", "invalid_value", "Invalid value: 'riddle'."),
    ({"input": [{"role": "critic", "content": "x"}]}, "input[0].role", "invalid_value", "'assistant', 'developer'"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_video"}]}]},
        "input[0].content[0].type",
        "invalid_value",
        "'input_video'",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x/y.png"}]}]},
        "input[0].content[0].image_url",
        "invalid_image_url",
        "not fetched",
    ),
    ({"input": [{**CALL, "call_id": ""}]}, "input[0].call_id", "empty_string", "minimum length 1"),
    ({"input": [{**CALL, "arguments": {}}, OUTPUT]}, "input[0].arguments", "invalid_type", "expected a string"),
    ({"tools": {}}, "tools", "invalid_type", "expected an array, but got an object"),
    ({"tools": [{"name": "x"}]}, "tools[0].type", "missing_required_parameter", "tools[0].type"),
    ({"tools": [{"type": "wand"}]}, "tools[0].type", "invalid_value", "Invalid value: 'wand'."),
    ({"tools": [{"type": "function"}]}, "tools[0].name", "missing_required_parameter", "tools[0].name"),
    ({"tools": [{**READ, "name": "read note"}]}, "tools[0].name", "invalid_value", "does not match pattern"),
    ({"tools": [{**READ, "name": "x" * 129}]}, "tools[0].name", "string_above_max_length", "maximum length 128"),
    ({"tools": [READ, READ]}, "tools[1].name", "invalid_value", "declared twice"),
    ({"tools": [{**READ, "parameters": []}]}, "tools[0].parameters", "invalid_type", "expected an object"),
    ({"tools": [READ] * 10_000}, "tools", "array_above_max_length", "maximum length 128"),
    (
        {
            "tools": [
                {"type": "namespace", "name": f"n{n}", "tools": [{**READ, "name": f"t{m}"} for m in range(100)]}
                for n in range(100)
            ]
        },
        "tools",
        "array_above_max_length",
        "namespaces included",
    ),
    ({"tools": [{**READ, "parameters": nested(70)}]}, None, "invalid_value", "deeper than 64"),
    ({"tools": [{**READ, "parameters": {"x": "y" * 300_000}}]}, "tools", "invalid_value", "bytes"),
    ({"tool_choice": "sometimes"}, "tool_choice", "invalid_value", "'auto', 'none', 'required'"),
    ({"tool_choice": "required"}, "tool_choice", None, "must be specified with 'tools'"),
    ({"temperature": 3}, "temperature", "decimal_above_max_value", "<= 2"),
    ({"top_p": -0.1}, "top_p", "decimal_below_min_value", ">= 0"),
    ({"max_output_tokens": 1}, "max_output_tokens", "integer_below_min_value", "Expected a value >= 16, but got 1"),
    ({"max_tool_calls": 0}, "max_tool_calls", "integer_below_min_value", "Expected a value >= 1, but got 0"),
    ({"stream": "yes"}, "stream", "invalid_type", "expected a boolean, but got a string"),
    ({"include": ["everything"]}, "include[0]", "invalid_value", "'everything'"),
    ({"reasoning": {"effort": "heroic"}}, "reasoning.effort", "invalid_value", "'heroic'"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type", "invalid_value", "'xml'"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format.name", "missing_required_parameter", "name"),
    (
        {"text": {"format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}}},
        "text.format.name",
        "missing_required_parameter",
        "'text.format.name'",
    ),
    (
        {"text": {"format": {"type": "json_schema", "name": "x"}}},
        "text.format.schema",
        "missing_required_parameter",
        "'text.format.schema'",
    ),
    (
        {"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}},
        "text.format.name",
        "invalid_value",
        "does not match pattern",
    ),
    (
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": []}}},
        "text.format.schema",
        "invalid_type",
        "expected an object, but got an array",
    ),
    ({"text": {"verbosity": "chatty"}}, "text.verbosity", "invalid_value", "'chatty'"),
    ({"top_logprobs": 21}, "top_logprobs", "integer_above_max_value", "Expected a value <= 20, but got 21"),
    ({"service_tier": "first"}, "service_tier", "invalid_value", "'first'"),
    ({"truncation": "maybe"}, "truncation", "invalid_value", "'maybe'"),
    ({"safety_identifier": "x" * 129}, "safety_identifier", "string_above_max_length", "maximum length 128"),
    ({"prompt_cache_retention": "1h"}, "prompt_cache_retention", "invalid_value", "'1h'"),
    ({"prompt_cache_options": "x"}, "prompt_cache_options", "invalid_type", "expected an object"),
    ({"stream_options": {"include_obfuscation": 1}}, "stream_options.include_obfuscation", "invalid_type", "a boolean"),
    ({"context_management": [{}]}, "context_management[0].type", "missing_required_parameter", "[0].type"),
    ({"moderation": {"model": "x"}}, "moderation", "unsupported_parameter", "not moderated"),
    ({"metadata": {"a": 1}}, "metadata.a", "invalid_type", "metadata.a"),
    ({"metadata": {"k" * 65: "v"}}, "metadata", "string_above_max_length", "maximum length 64"),
    ({"metadata": {"k": "v" * 513}}, "metadata.k", "string_above_max_length", "maximum length 512"),
    ({"metadata": dict.fromkeys("abcdefghijklmnopq", "v")}, "metadata", "object_above_max_properties", "16"),
    ({"prompt": {"id": "p"}}, "prompt", "unsupported_parameter", "prompt templates"),
    ({"conversation": "chat_1"}, "conversation", "invalid_value", "'chat_1'. Expected an ID that begins with 'conv'."),
    ({"conversation": {"id": "x"}}, "conversation.id", "invalid_value", "'x'. Expected an ID that begins with 'conv'."),
    (
        {"previous_response_id": "resp_x", "conversation": "conv_x"},
        None,
        "mutually_exclusive_parameters",
        "only providing",
    ),
]


@pytest.mark.parametrize(("members", "param", "code", "message"), REFUSED, ids=[row[3][:40] for row in REFUSED])
def test_a_bad_request_is_refused_in_openais_words(
    members: dict[str, Any], param: str | None, code: str | None, message: str
) -> None:
    error = refusal(**members)
    assert (error.status, error.type, error.param, error.code) == (400, "invalid_request_error", param, code)
    assert message in error.message


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b'{"a":NaN}', b"[" * 2000])
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError, match="could not parse the JSON body") as caught:
        parse_json_object(body)
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, None, None)


def test_an_error_does_not_repeat_more_than_a_little_of_what_was_sent() -> None:
    error = refusal(input=[{"type": "x" * 10_000}])
    assert "x" * 200 not in error.message


def test_a_string_is_one_user_message() -> None:
    assert parse(input="hi").turn.transcript.entries == (UserTurn((Text("hi"),)),)


def test_every_kind_of_item_finds_its_place() -> None:
    request = parse(
        instructions="Be kind.",
        input=[
            {"role": "system", "content": "s"},
            {"role": "developer", "content": [{"type": "input_text", "text": "d"}]},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "u"}, {"type": "input_image", "image_url": PNG}],
            },
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"role": "assistant", "content": "", "id": None},
            {"role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
            {**CALL, "id": "fc_1", "status": "completed", "parsed_arguments": None},
            {**OUTPUT, "output": [{"type": "input_text", "text": "o"}, {"type": "input_image", "image_url": PNG}]},
        ],
    )
    assert request.turn.transcript.instructions == "Be kind."
    assert request.turn.transcript.entries == (
        Guidance("s"),
        Guidance("d"),
        UserTurn((Text("u"), Image(PNG))),
        AssistantText("a"),
        PastCall("call_1", "read_note", "{}"),
        ToolResult("call_1", (Text("o"), Image(PNG))),
    )


def test_nulls_and_unknown_members_are_accepted() -> None:
    request = parse(
        **dict.fromkeys(
            ("instructions", "tools", "tool_choice", "metadata", "include", "max_output_tokens",
             "previous_response_id", "reasoning", "store", "stream", "temperature", "text", "top_p", "truncation",
             "user", "parallel_tool_calls")
        ),
        client_metadata={"x": "y"},
        prompt_cache_key="k",
        stream_options={"include_usage": True},
    )  # fmt: skip
    assert request.echo["temperature"] == 1.0
    assert request.echo["tool_choice"] == "auto"
    assert request.echo["text"] == {"format": {"type": "text"}, "verbosity": "medium"}


def test_both_tool_shapes_are_offered_in_the_clients_order() -> None:
    nested_shape = {"type": "function", "function": {**READ, "name": "write_note", "strict": True}}
    request = parse(tools=[nested_shape, READ, {"type": "web_search"}])
    tools = list(request.turn.registry)
    assert [(tool.name, tool.strict) for tool in tools] == [("write_note", True), ("read_note", False)]
    assert tools[1].parameters == orjson.dumps(READ["parameters"]).decode()
    assert [tool.get("name") or tool["type"] for tool in request.echo["tools"]] == [
        "write_note", "read_note", "web_search",
    ]  # fmt: skip


def test_an_echoed_tool_has_every_member() -> None:
    (echo,) = parse(tools=[{"type": "function", "name": "ping"}]).echo["tools"]
    assert echo == {"type": "function", "name": "ping", "description": None, "parameters": None, "strict": False}


def test_a_follow_up_needs_no_tools() -> None:
    assert len(parse(input=[CALL, OUTPUT], tool_choice="auto").turn.registry) == 0


def test_a_schema_is_passed_on_as_json_text_and_echoed_in_full() -> None:
    schema = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "number"}}}
    request = parse(text={"format": {"type": "json_schema", "name": "note", "schema": schema, "strict": True}})
    assert request.turn.output_format == OutputFormat(orjson.dumps(schema).decode(), "note", strict=True)
    assert request.echo["text"]["format"] == {
        "type": "json_schema", "name": "note", "description": None, "schema": schema, "strict": True,
    }  # fmt: skip


def test_a_json_object_is_demanded_without_a_schema() -> None:
    assert parse(text={"format": {"type": "json_object"}}).turn.output_format == OutputFormat()
    assert parse(text={"format": {"type": "text"}}).turn.output_format is None


def test_limits_of_the_answer_and_of_the_input_reach_the_turn() -> None:
    turn = parse(max_output_tokens=16, truncation="auto").turn
    assert (turn.max_output_tokens, turn.truncate) == (16, True)
    turn = parse().turn
    assert (turn.max_output_tokens, turn.truncate) == (None, False)


def test_the_retention_of_a_cache_is_echoed_when_it_is_asked_for() -> None:
    assert "prompt_cache_retention" not in parse().echo
    assert parse(prompt_cache_retention="in-memory").echo["prompt_cache_retention"] == "in_memory"


@pytest.mark.parametrize(
    ("tier", "asked"), [("priority", "priority"), ("flex", "flex"), ("auto", None), ("default", None)]
)
def test_a_tier_and_a_verbosity_are_passed_on_where_they_are_asked_for(tier: str, asked: str | None) -> None:
    request = parse(service_tier=tier, text={"verbosity": "low"})
    assert (request.turn.tier, request.turn.verbosity) == (asked, "low")
    assert parse().turn.verbosity is None


BOUNDS: list[tuple[dict[str, object], str, str]] = [
    ({"temperature": 2.1}, "temperature", "decimal above maximum value. Expected a value <= 2"),
    ({"temperature": -1}, "temperature", "decimal below minimum value. Expected a value >= 0"),
    ({"top_p": 1.1}, "top_p", "decimal above maximum value. Expected a value <= 1"),
    ({"top_p": -1}, "top_p", "decimal below minimum value. Expected a value >= 0"),
    ({"max_output_tokens": 15}, "max_output_tokens", "integer below minimum value. Expected a value >= 16"),
    ({"truncation": "x"}, "truncation", "Supported values are: 'auto', 'disabled'."),
    ({"include": [3]}, "include[0]", "expected a string, but got an integer instead."),
    ({"include": ["x"]}, "include[0]", "Invalid value: 'x'. Supported values are: "),
    ({"stream_options": {"include_obfuscation": 1}}, "stream_options.include_obfuscation", "expected a boolean"),
    ({"context_management": [{}]}, "context_management[0].type", "Missing required parameter"),
    ({"context_management": [{"type": "x"}]}, "context_management[0].type", "Supported values are: 'compaction'."),
    (
        {"context_management": [{"type": "compaction", "compact_threshold": 999}]},
        "context_management[0].compact_threshold",
        "integer below minimum value. Expected a value >= 1000",
    ),
    ({"prompt_cache_key": "x" * 65}, "prompt_cache_key", "maximum length 64"),
    ({"prompt_cache_options": {"ttl": "1h"}}, "prompt_cache_options.ttl", "'30m', '12h'"),
    ({"prompt_cache_options": {"prewarm": True}}, "prompt_cache_options.prewarm", "over a WebSocket"),
    ({"image": {"context_compression": "x"}}, "image.context_compression", "'auto', 'enabled', 'disabled'"),
    ({"access_programs": {"cyber": "x"}}, "access_programs.cyber", "'standard', 'daybreak_blue', 'daybreak_red'"),
    ({"background_options": {"completion_window": "1h"}}, "background_options.completion_window", "'soonest', '2h'"),
    ({"tools": [{**READ, "async": "x"}]}, "tools[0].async", "expected a boolean"),
    (
        {"text": {"format": {"type": "xml"}}},
        "text.format.type",
        "Supported values are: 'text', 'json_object', 'json_schema'.",
    ),
]


@pytest.mark.parametrize(("members", "param", "told"), BOUNDS, ids=[row[1] for row in BOUNDS])
def test_a_value_out_of_bounds_is_refused_by_its_path(members: dict[str, object], param: str, told: str) -> None:
    error = refusal(**members)
    assert error.param == param
    assert told in error.message


def test_values_at_their_bounds_are_accepted() -> None:
    parse(temperature=0, top_p=0, max_output_tokens=16, safety_identifier="x" * 128)
    parse(temperature=2, top_p=1, context_management=[{"type": "compaction", "compact_threshold": 1000}])


@pytest.mark.parametrize("entry", [{"type": "compaction"}, {"type": "compaction", "compact_threshold": None}])
def test_a_compaction_may_name_no_threshold(entry: dict[str, Any]) -> None:
    assert parse(context_management=[entry]).turn.compaction == Compaction(DEFAULT_THRESHOLD)


@pytest.mark.parametrize("missing", [{"background": False}, {"service_tier": "flex"}, {"stream": True}])
def test_a_completion_window_of_hours_is_for_standard_background_responses(missing: dict[str, Any]) -> None:
    members: dict[str, Any] = {"background": True, "background_options": {"completion_window": "2h"}}
    assert parse(**members).echo["background"]
    assert not parse(background_options={"completion_window": "soonest", "continuation_id": "c"}).echo["background"]
    error = refusal(**{**members, **missing})
    assert (error.param, error.code) == ("background_options.completion_window", "invalid_value")


CHATS: list[tuple[dict[str, Any], str | None, str, str]] = [
    ({"response_format": {"type": "json_object"}}, None, "unsupported_parameter", "has moved to 'text.format'"),
    ({"messages": []}, None, "unsupported_parameter", "has moved to 'input'"),
    ({"max_completion_tokens": 5}, None, "unsupported_parameter", "has moved to 'max_output_tokens'"),
    ({"reasoning_effort": "low"}, None, "unsupported_parameter", "has moved to 'reasoning.effort'"),
    ({"max_tokens": 5}, "max_tokens", "unknown_parameter", "Unknown parameter: 'max_tokens'."),
]


@pytest.mark.parametrize(("members", "param", "code", "message"), CHATS, ids=[next(iter(row[0])) for row in CHATS])
def test_what_chat_calls_otherwise_is_refused_in_openais_words(
    members: dict[str, Any], param: str | None, code: str, message: str
) -> None:
    error = refusal(**members)
    assert (error.status, error.param, error.code) == (400, param, code)
    assert message in error.message
    assert parse(**dict.fromkeys(members)).echo == parse().echo


DEFAULTS: dict[str, Any] = {
    "background": False, "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "metadata": {},
    "model": "m", "parallel_tool_calls": True, "previous_response_id": None, "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None}, "safety_identifier": None, "store": True, "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto", "tools": [],
    "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "user": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({}, {}),
        ({"instructions": "Be kind.", "user": "u", "prompt_cache_key": "k", "safety_identifier": "s"}, None),
        ({"temperature": 0, "top_p": 0.5, "top_logprobs": 3, "max_tool_calls": 1, "max_output_tokens": 20}, None),
        ({"parallel_tool_calls": False, "store": False, "truncation": "auto", "metadata": {"a": "b"}}, None),
        ({"background": True, "previous_response_id": "resp_1"}, None),
        ({"conversation": "conv_1"}, {"conversation": {"id": "conv_1"}}),
        ({"conversation": {"id": "conv_1"}}, None),
        ({"prompt_cache_retention": "in-memory"}, {"prompt_cache_retention": "in_memory"}),
        ({"prompt_cache_options": {}}, {"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}}),
        (
            {"prompt_cache_options": {"mode": "explicit", "prewarm": False, "comparison_response_id": "resp_1"}},
            {"prompt_cache_options": {"mode": "explicit", "ttl": "30m", "comparison_response_id": "resp_1"}},
        ),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, None),
        ({"reasoning": {"generate_summary": "concise"}}, {"reasoning": {"effort": None, "summary": "concise"}}),
        (
            {"reasoning": {"context": "all_turns", "mode": "x"}},
            {"reasoning": {"effort": None, "summary": None, "context": "all_turns", "mode": "x"}},
        ),
        ({"text": {"verbosity": "low"}}, {"text": {"format": {"type": "text"}, "verbosity": "low"}}),
        ({"text": {"format": {"type": "json_object"}, "verbosity": "high"}}, None),
    ],
)
def test_what_was_asked_for_is_told_back(members: dict[str, object], told: dict[str, object] | None) -> None:
    assert parse(**members).echo == {**DEFAULTS, **(members if told is None else told)}


def test_what_was_asked_for_reaches_the_turn() -> None:
    request = parse(
        instructions="Be kind.", reasoning={"effort": "low", "summary": "auto"}, parallel_tool_calls=False,
        truncation="auto", max_output_tokens=20, prompt_cache_key="k", previous_response_id="resp_1",
        service_tier="flex", stream=True, include=["reasoning.encrypted_content"],
    )  # fmt: skip
    turn = request.turn
    assert (turn.model, turn.effort, turn.summary, turn.parallel, turn.truncate) == ("m", "low", "auto", False, True)
    assert (turn.max_output_tokens, turn.names) == (20, frozenset({"k", "resp_1"}))
    assert turn.transcript.instructions == "Be kind."
    assert (request.stream, request.service_tier, request.input) == (True, "flex", "hi")
    assert request.include == {"reasoning.encrypted_content"}
    assert parse(conversation="conv_1").turn.names == {"conv_1"}
    assert (parse().stream, parse().service_tier, parse().turn.names) == (False, "auto", frozenset())


def test_what_runs_in_the_background_has_to_be_stored() -> None:
    error = refusal(background=True, store=False)
    assert error.message == "background can only be used when `store` is true: leave 'store' out."
    assert (error.code, error.param) == ("invalid_value", "background")
    parse(background=True, store=True)
    parse(background=False, store=False)


def test_lookups_are_all_that_a_request_refers_to() -> None:
    body: Any = {
        "previous_response_id": "resp_1",
        "input": [{"id": "msg_1"}, {"type": "item_reference", "id": "msg_2"}],
    }
    found = lookups(body)
    assert (found.previous_response_id, found.conversation, found.referred) == ("resp_1", None, ("msg_1", "msg_2"))
    found = lookups({"conversation": "conv_1"})
    assert (found.previous_response_id, found.conversation, found.referred) == (None, "conv_1", ())
