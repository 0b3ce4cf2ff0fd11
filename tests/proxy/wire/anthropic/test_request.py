"""What a request to /v1/messages asks of the turn, and what is refused of it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from prompts import FRONTIER, AssistantText, Guidance, PastCall, Text, ToolResult, UserTurn, render_turn
from proxy.contracts import OutputFormat, Sampling
from proxy.errors import RequestError
from proxy.wire.anthropic.request import UNANSWERED, UNCOMPACTED, UNSERVED, MessagesRequest, parse_messages_request
from proxy.wire.json_body import JsonObject, JsonValue
from tests.support.parts import text

HI: list[JsonValue] = [{"role": "user", "content": "hi"}]


def parsed(**members: Any) -> MessagesRequest:
    return parse_messages_request({"model": "m", "max_tokens": 10, "messages": HI, **members})


def refusal(**members: Any) -> str:
    with pytest.raises(RequestError) as refused:
        parsed(**members)
    assert refused.value.status == 400
    return refused.value.message


def test_a_request_as_small_as_it_can_be() -> None:
    request = parsed()
    assert request.turn.transcript.entries == (UserTurn(text("hi")),)
    assert request.turn.transcript.instructions is None
    assert (request.turn.max_output_tokens, request.turn.streamed, request.stream) == (10, False, False)
    assert (request.turn.effort, request.turn.summary, request.turn.stop) == (None, None, ())
    assert (request.turn.parallel, request.turn.warnings, request.turn.wishes) == (True, (), ())
    assert not request.thoughts


@pytest.mark.parametrize("name", ["model", "max_tokens", "messages"])
def test_what_is_required_is_named(name: str) -> None:
    assert f"'{name}'" in refusal(**{name: None})


def test_what_is_counted_needs_no_limit() -> None:
    assert parse_messages_request({"model": "m", "messages": HI}, counted=True).turn.max_output_tokens is None


@pytest.mark.parametrize(
    ("system", "instructions"),
    [
        ("Be kind.", "Be kind."),
        ("", None),
        ([], None),
        ([{"type": "text", "text": "Be kind."}, {"type": "text", "text": "Be brief."}], "Be kind.\n\nBe brief."),
        ([{"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=2"}], None),
        ([{"type": "text", "text": "x-anthropic-billing-header: a"}, {"type": "text", "text": "Be kind."}], "Be kind."),
        ([{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}], "Be kind."),
    ],
)
def test_system_is_the_instructions_without_what_accounts_for_it(system: Any, instructions: str | None) -> None:
    assert parsed(system=system).turn.transcript.instructions == instructions


@pytest.mark.parametrize(
    "members",
    [
        {"context_management": {"edits": []}, "diagnostics": {}, "speed": "fast", "service_tier": "auto"},
        {"cache_control": {"type": "ephemeral"}, "container": "c", "inference_geo": "eu", "metadata": None},
        {"fallbacks": [], "safeguards": {"x": 1}, "something_of_next_week": [1], "metadata": {"user_id": "{"}},
        {"output_config": {"effort": "ultra", "task_budget": {"total": 5}}, "thinking": {"type": "between_tools"}},
        {"mcp_servers": [], "metadata": {"user_id": "[]"}},
    ],
)
def test_what_is_unknown_or_changes_nothing_is_never_refused(members: dict[str, Any]) -> None:
    turn = parsed(**members).turn
    assert (turn.transcript, turn.effort) == (parsed().turn.transcript, None)


@pytest.mark.parametrize("name", sorted(UNSERVED))
def test_what_would_change_the_answer_and_cannot_be_served_is_refused(name: str) -> None:
    with pytest.raises(RequestError) as refused:
        parsed(**{name: {"x": 1}})
    # By its code the SDKs' tool runners know to go on without a thread.
    code = "thread_unsupported_request" if name == "thread" else "unsupported_parameter"
    assert (refused.value.code, refused.value.param) == (code, name)
    with pytest.raises(RequestError) as refused:
        parsed(**{name: [{"type": "url"}]})
    assert (refused.value.message, refused.value.param) == (UNSERVED[name], name)


@pytest.mark.parametrize(
    ("members", "effort", "summary"),
    [
        ({"output_config": {"effort": "xhigh"}}, "xhigh", None),
        ({"thinking": {"type": "adaptive"}}, None, "auto"),
        ({"thinking": {"type": "adaptive", "display": "summarized"}}, None, "auto"),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, None, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, None, "auto"),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}, "low", None),
    ],
)
def test_how_hard_it_thinks_and_whether_that_is_told(
    members: dict[str, Any], effort: str | None, summary: str | None
) -> None:
    request = parsed(**members)
    assert (request.turn.effort, request.turn.summary, request.thoughts) == (effort, summary, summary is not None)


@pytest.mark.parametrize("place", ["output_config", "output_format"])
def test_a_format_is_structured_output(place: str) -> None:
    form = {"type": "json_schema", "schema": {"type": "object"}}
    request = parsed(**{place: {"format": form} if place == "output_config" else form})
    assert request.turn.output_format == OutputFormat('{"type":"object"}', strict=True)
    assert parsed(output_format={"type": "text"}).turn.output_format is None
    assert "output_format.schema" in refusal(output_format={"type": "json_schema"})


def test_stop_sequences_and_sampling_are_passed_on() -> None:
    request = parsed(stop_sequences=["</block>", ""], temperature=0.5, top_p=0.9, top_k=3, stream=True)
    assert request.turn.stop == ("</block>",)
    assert request.turn.sampling == Sampling(0.5, 0.9)
    assert set(request.turn.wishes) == {"temperature", "top_p", "top_k"}
    assert (request.stream, request.turn.streamed) == (True, True)
    assert refusal(stop_sequences=["a", 1]).startswith("Invalid type for 'stop_sequences[1]': expected a string")
    edges = parsed(temperature=2, top_p=1)
    assert edges.turn.sampling == Sampling(2, 1)
    for name, value in (("temperature", 2.5), ("temperature", -1), ("top_p", 1.5), ("top_p", -1), ("max_tokens", -1)):
        assert f"'{name}'" in refusal(**{name: value})


def test_a_session_is_a_name_of_the_conversation() -> None:
    metadata = {"user_id": orjson.dumps({"device_id": "d", "session_id": "s1"}).decode()}
    assert parsed(metadata=metadata).turn.names == {"s1"}
    body: JsonObject = {"model": "m", "max_tokens": 1, "messages": HI}
    assert parse_messages_request(body, session="s2").turn.names == {"s2"}


def test_how_much_a_model_may_read_is_no_part_of_its_name() -> None:
    request = parsed(model="claude-opus-5[1m]")
    assert (request.turn.model, request.model) == ("claude-opus-5", "claude-opus-5[1m]")


def test_a_conversation_with_a_loop_in_it() -> None:
    entries = parsed(
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "What is in a and b?"}]},
            {"role": "system", "content": "Today is Monday."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": ""},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"path": "b"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "peas"},
                    {"type": "text", "text": "Be quick."},
                    {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": "no such file"},
                ],
            },
        ]
    ).turn.transcript.entries
    assert entries == (
        UserTurn(text("What is in a and b?")),
        Guidance("Today is Monday."),
        AssistantText("I look."),
        PastCall("toolu_1", "read", '{"path":"a"}'),
        PastCall("toolu_2", "read", '{"path":"b"}'),
        ToolResult("toolu_2", text("peas")),
        ToolResult("toolu_1", text("error: no such file")),
        UserTurn(text("Be quick.")),
    )


def test_a_call_without_its_result_is_answered_all_the_same_and_told() -> None:
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]}
    request = parsed(messages=[*HI, called, {"role": "user", "content": "Well?"}])
    assert request.turn.warnings == (UNANSWERED,)
    assert request.turn.repairs == {"missing": 1}
    assert isinstance(request.turn.transcript.entries[2], ToolResult)


def test_what_a_search_found_is_shown_where_it_was_found_and_not_in_front() -> None:
    found: list[JsonValue] = [{"type": "tool_reference", "tool_name": name} for name in ("fetch", "read", "nobody")]
    messages: list[JsonValue] = [
        *HI,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [*found]}]},
    ]
    schema: JsonObject = {"type": "object"}
    read: JsonObject = {"name": "read", "input_schema": schema}
    fetch: JsonObject = {"name": "fetch", "input_schema": schema, "defer_loading": True}
    before = parsed(tools=[fetch, read]).turn
    after = parsed(tools=[fetch, read], messages=messages).turn
    assert [tool.name for tool in before.registry] == ["read"]
    assert [tool.name for tool in after.registry] == ["read", "fetch"]
    *_, result = after.transcript.entries
    assert isinstance(result, ToolResult)
    assert result.brings == ("fetch",)
    told = "".join(part.text for part in result.parts if isinstance(part, Text))
    assert '{"name":"fetch","parameters":{"type":"object"}}' in told
    assert "These tools are among yours: read" in told
    heads = [
        render_turn(turn.transcript, turn.registry, turn.choice, parallel=True, profile=FRONTIER, key="k").head
        for turn in (before, after)
    ]
    assert heads[0] == heads[1]


def test_a_tool_that_comes_later_is_shown_where_it_comes_and_not_in_front() -> None:
    schema: JsonObject = {"type": "object"}
    tools: list[JsonValue] = [
        {"name": "read", "input_schema": schema},
        {"name": "fetch", "input_schema": schema, "defer_loading": True},
    ]

    def change(kind: str, tool: JsonValue) -> JsonObject:
        return {"type": f"tool_{kind}", "tool": tool}

    changes: list[JsonValue] = [
        {"type": "text", "text": "Take care."},
        change("addition", {"type": "tool_reference", "name": "fetch"}),
        change("addition", {"type": "tool_definition", "definition": {"name": "write", "input_schema": schema}}),
        change("addition", {"type": "tool_reference", "name": "read"}),
        change("removal", {"type": "tool_reference", "name": "read"}),
        change("removal", {"type": "tool_reference", "name": "nobody"}),
    ]
    before = parsed(tools=tools).turn
    after = parsed(tools=tools, messages=[*HI, {"role": "system", "content": changes}]).turn
    assert [tool.name for tool in after.registry] == ["read", "fetch", "write"]
    *_, guidance = after.transcript.entries
    assert isinstance(guidance, Guidance)
    assert guidance.brings == ("fetch", "write")
    *lines, last = guidance.text.split("\n\n")
    assert [line.rpartition("\n")[2] for line in lines] == [
        "Take care.",
        '{"name":"fetch","parameters":{"type":"object"}}',
        '{"name":"write","parameters":{"type":"object"}}',
        "These tools are among yours: read",
    ]
    assert last == "These tools are no longer among yours, so do not call them: read"
    heads = [
        render_turn(turn.transcript, turn.registry, turn.choice, parallel=True, profile=FRONTIER, key="k").head
        for turn in (before, after)
    ]
    assert heads[0] == heads[1]


@pytest.mark.parametrize(("limit", "passed_on", "warms"), [(0, 1, True), (1, 1, False), (2, 2, False)])
def test_no_server_is_asked_for_no_tokens(limit: int, passed_on: int, warms: bool) -> None:
    request = parsed(max_tokens=limit)
    assert (request.turn.max_output_tokens, request.warms) == (passed_on, warms)
    assert "max_tokens" in refusal(max_tokens=-1)


@pytest.mark.parametrize(
    ("management", "warnings"),
    [
        ({"edits": [{"type": "clear_tool_uses_20250919"}, {"type": "compact_20260112"}]}, (UNCOMPACTED,)),
        ({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, ()),
        ({"edits": [1, {}]}, ()),
        ({"edits": "x"}, ()),
        ([], ()),
    ],
)
def test_a_server_that_compacts_nothing_says_so(management: JsonValue, warnings: tuple[str, ...]) -> None:
    assert parsed(context_management=management).turn.warnings == warnings


def test_a_verdict_is_asked_for_without_tools() -> None:
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    assert parsed(stop_sequences=["</block>"]).judges_commands
    assert not parsed(stop_sequences=["</block>"], tools=tools).judges_commands
    assert not parsed(stop_sequences=["</p>"]).judges_commands


def test_a_search_alone_is_asked_for_by_claude_code() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    tool = {"name": "read", "input_schema": {"type": "object"}}
    session = {"user_id": '{"session_id": "s"}'}
    assert parsed(tools=[search], metadata=session).searches_web
    assert not parsed(tools=[search]).searches_web
    assert not parsed(tools=[search, tool], metadata=session).searches_web
    assert not parsed(tools=[{**search, "type": "advisor_20260301"}], metadata=session).searches_web
