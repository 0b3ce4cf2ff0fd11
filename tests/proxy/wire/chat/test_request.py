"""What the parameters of a request become, and OpenAI's answer to what they may not be."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from proxy.contracts import OutputFormat
from proxy.errors import RequestError
from proxy.wire.chat.request import ChatRequest, parse_chat_request
from proxy.wire.json_body import parse_json_object
from proxy.wire.parameters import WISHES

FUNCTION = {"name": "read_note"}


def parse(summary: str | None = None, **members: object) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **members}
    return parse_chat_request(parse_json_object(orjson.dumps(body)), summary=summary)


def same(one: ChatRequest, other: ChatRequest) -> bool:
    """Whether two requests without tools ask for the same."""
    assert not len(one.turn.registry) + len(other.turn.registry)
    turn = replace(one.turn, registry=other.turn.registry)
    return replace(one, turn=turn, tools=other.tools) == other


def test_nulls_and_unknown_members_are_accepted() -> None:
    request = parse(
        **dict.fromkeys(
            ("audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
             "max_completion_tokens", "max_tokens", "metadata", "modalities", "n", "parallel_tool_calls", "prediction",
             "presence_penalty", "reasoning_effort", "response_format", "seed", "service_tier", "stop", "store",
             "stream", "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user",
             "verbosity", "web_search_options", "text", "max_output_tokens", "reasoning", "input")
        ),
        something_new={"a": 1},
    )  # fmt: skip
    assert same(request, parse())


def test_what_has_no_effect_here_has_none() -> None:
    request = parse(
        logprobs=True, top_logprobs=3, logit_bias={"1": 2}, presence_penalty=1,
        frequency_penalty=1, n=1, user="u", metadata={"a": "b"}, store=True, service_tier="auto",
        prediction={"type": "content", "content": "x"}, web_search_options={}, modalities=["text"],
        safety_identifier="s",
    )  # fmt: skip
    assert same(replace(request, turn=replace(request.turn, wishes=())), parse())
    assert set(request.turn.wishes) == WISHES.keys() - {"seed", "temperature", "top_p", "verbosity"} | {"store"}
    assert parse(store=False).turn.wishes == ()


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([("user", "alice"), ("user", "bob")], True),
        ([("user", "alice"), ("user", None)], True),
        ([("system", "example_user"), ("system", "example_assistant"), ("user", None)], True),
        ([("user", "alice"), ("assistant", "critic"), ("user", "alice")], False),
        ([("system", "instructions"), ("user", None), ("assistant", None)], False),
    ],
)
def test_names_that_tell_participants_apart_are_told_to_have_no_effect(
    messages: list[tuple[str, str | None]], told: bool
) -> None:
    said: list[Any] = [{"role": role, "name": name, "content": "x"} for role, name in messages]
    assert ("name" in parse(messages=said).turn.wishes) is told


def test_how_tokens_are_chosen_is_for_the_backend() -> None:
    sampling = parse(temperature=0.1, top_p=0.5, seed=-1).turn.sampling
    assert (sampling.temperature, sampling.top_p, sampling.seed) == (0.1, 0.5, -1)


@pytest.mark.parametrize(
    ("stop", "expected"),
    [("", ()), ([], ()), ([""], ()), ("END", ("END",)), (["a", "", "b"], ("a", "b"))],
)
def test_an_empty_stop_is_none(stop: object, expected: tuple[str, ...]) -> None:
    assert parse(stop=stop).turn.stop == expected


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, None),
        ({"max_tokens": 1}, 1),
        ({"max_completion_tokens": 30}, 30),
        ({"max_tokens": 20, "max_completion_tokens": 30}, 20),
        ({"max_tokens": None, "max_completion_tokens": 30}, 30),
    ],
)
def test_both_names_of_the_token_limit_count(members: dict[str, Any], expected: int | None) -> None:
    assert parse(**members).turn.max_output_tokens == expected


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, OutputFormat()),
        (
            {"type": "json_schema", "json_schema": {"name": "note", "schema": {"type": "object"}, "strict": True}},
            OutputFormat('{"type":"object"}', "note", strict=True),
        ),
        ({"type": "json_schema", "json_schema": {"name": "note"}}, OutputFormat(None, "note")),
    ],
)
def test_each_response_format_is_understood(form: object, expected: OutputFormat | None) -> None:
    assert parse(response_format=form).turn.output_format == expected


def test_reasoning_and_parallel_calls_reach_the_turn() -> None:
    turn = parse(reasoning_effort="low", parallel_tool_calls=False, summary="auto").turn
    assert (turn.effort, turn.summary, turn.parallel) == ("low", "auto", False)
    assert parse().turn.parallel


def test_the_older_form_has_room_for_one_call() -> None:
    request = parse(functions=[FUNCTION])
    assert request.legacy
    assert not request.turn.parallel


def test_usage_is_for_streams() -> None:
    options = {"include_usage": True}
    assert parse(stream=True, stream_options=options).include_usage
    assert not parse(stream=True, stream_options={}).include_usage


REFUSED: list[tuple[dict[str, Any], str, str | None, str]] = [
    # members, param, code, a part of the message
    ({"model": None}, "model", "missing_required_parameter", "Missing required parameter: 'model'."),
    ({"messages": None}, "messages", "missing_required_parameter", "Missing required parameter: 'messages'."),
    ({"messages": "hi"}, "messages", "invalid_type", "expected an array, but got a string"),
    ({"n": 2}, "n", "unsupported_value", "Only one choice"),
    ({"n": 0}, "n", "integer_below_min_value", "Expected a value >= 1, but got 0"),
    ({"max_tokens": 0}, "max_tokens", "integer_below_min_value", "Expected a value >= 1, but got 0"),
    ({"max_completion_tokens": 0.5}, "max_completion_tokens", "invalid_type", "expected an integer"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop", "array_above_max_length", "maximum length 4"),
    ({"stop": [1]}, "stop[0]", "invalid_type", "expected a string"),
    ({"stop": 1}, "stop", "invalid_type", "a string or an array of strings"),
    ({"temperature": 3}, "temperature", "decimal_above_max_value", "<= 2"),
    ({"presence_penalty": -3}, "presence_penalty", "decimal_below_min_value", ">= -2"),
    ({"logprobs": 5}, "logprobs", "invalid_type", "expected a boolean"),
    ({"reasoning_effort": "heroic"}, "reasoning_effort", "invalid_value", "'heroic'"),
    ({"stream": "yes"}, "stream", "invalid_type", "expected a boolean"),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage", "invalid_type", ""),
    ({"stream_options": {"include_usage": True}}, "stream_options", None, "only allowed when 'stream' is enabled"),
    ({"stream": False, "stream_options": {}}, "stream_options", None, "only allowed when 'stream' is enabled"),
    ({"top_logprobs": 3}, "top_logprobs", None, "only allowed when 'logprobs' is enabled"),
    ({"top_logprobs": 3, "logprobs": False}, "top_logprobs", None, "only allowed when 'logprobs' is enabled"),
    ({"top_logprobs": 21, "logprobs": True}, "top_logprobs", "integer_above_max_value", "<= 20"),
    ({"modalities": ["smell"]}, "modalities[0]", "invalid_value", "'text', 'audio'"),
    ({"metadata": {"a": 1}}, "metadata.a", "invalid_type", "expected a string"),
    ({"web_search_options": {"search_context_size": "x"}}, "web_search_options.search_context_size", "invalid_value",
     "'low', 'medium', 'high'"),
    ({"prompt_cache_options": {"mode": "x"}}, "prompt_cache_options.mode", "invalid_value", "'implicit', 'explicit'"),
    ({"n": 129}, "n", "integer_above_max_value", "<= 128"),
    ({"text": {}}, "text", "unknown_parameter", "Unknown parameter: 'text'."),
    ({"max_output_tokens": 5}, "max_output_tokens", "unknown_parameter", "Unknown parameter"),
    ({"reasoning": {"effort": "low"}}, "reasoning", "unknown_parameter", "Unknown parameter"),
    ({"input": "hi"}, "input", "unknown_parameter", "Unknown parameter"),
    ({"logit_bias": {"a": 1}}, "logit_bias", "invalid_value", "'a' is not a token id"),
    ({"logit_bias": {"1": "x"}}, "logit_bias.1", "invalid_type", "expected a decimal"),
    ({"logit_bias": {"1": 101}}, "logit_bias.1", "decimal_above_max_value", "<= 100"),
    ({"moderation": {}}, "moderation", "unsupported_parameter", "not moderated"),
    ({"audio": {"voice": "alloy"}}, "audio", "unsupported_value", "Audio"),
    ({"modalities": ["text", "audio"]}, "modalities", "unsupported_value", "Audio"),
    ({"response_format": {}}, "response_format.type", "missing_required_parameter", "response_format.type"),
    ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value", "'json_object', 'json_schema'"),
    (
        {"response_format": {"type": "json_schema", "name": "x", "schema": {}}},
        "response_format.json_schema",
        "missing_required_parameter",
        "'response_format.json_schema'",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        "response_format.json_schema.name",
        "missing_required_parameter",
        "",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("members", "param", "code", "message"), REFUSED, ids=range(len(REFUSED)))
def test_a_bad_request_is_refused_in_openais_words(
    members: dict[str, Any], param: str, code: str | None, message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        parse(**members)
    error = caught.value
    assert (error.status, error.type, error.param, error.code) == (400, "invalid_request_error", param, code)
    assert message in error.message


def test_a_tier_and_a_verbosity_are_passed_on() -> None:
    turn = parse(service_tier="flex", verbosity="low").turn
    assert (turn.tier, turn.verbosity) == ("flex", "low")


BOUNDS: list[tuple[str, list[Any], list[Any]]] = [
    ("temperature", [0, 2], [-0.1, 2.1, "warm"]),
    ("top_p", [0, 1], [-0.1, 1.1, "x"]),
    ("presence_penalty", [-2, 2], [-2.1, 2.1, "x"]),
    ("frequency_penalty", [-2, 2], [-2.1, 2.1, "x"]),
    ("modalities", [["text"]], ["text"]),
    ("safety_identifier", ["x" * 128], ["x" * 129, 1]),
    ("prompt_cache_retention", ["24h"], ["1h"]),
    ("prediction", [{"type": "content", "content": "x"}], ["x"]),
    ("logprobs", [True, False], ["x"]),
    ("store", [True, False], ["x"]),
    ("metadata", [{}], ["x"]),
    ("logit_bias", [{"50256": -100}, {"50256": 100}], ["x"]),
    ("service_tier", ["auto"], ["x", 1]),
    ("verbosity", ["low"], ["x", 1]),
    ("n", [1], [0]),
]


@pytest.mark.parametrize(("name", "good", "bad"), BOUNDS, ids=[row[0] for row in BOUNDS])
def test_what_has_no_effect_is_held_to_its_bounds(name: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        parse(**{name: value})
    for value in bad:
        with pytest.raises(RequestError) as caught:
            parse(**{name: value})
        assert caught.value.param == name


@pytest.mark.parametrize(
    ("members", "param", "message"),
    [
        ({"n": 2}, "n", "Only one choice is made here: leave 'n' out, and ask again for another answer."),
        ({"moderation": {}}, "moderation", "Answers are not moderated here: leave 'moderation' out."),
        (
            {"modalities": ["text", "audio"]}, "modalities",
            "Audio is not available here: leave 'audio' and the modality 'audio' out.",
        ),
        ({"audio": {}}, "audio", "Audio is not available here: leave 'audio' and the modality 'audio' out."),
        ({"logit_bias": {"the": 1}}, "logit_bias", "Invalid 'logit_bias': 'the' is not a token id."),
        ({"logit_bias": {"1": 101}}, "logit_bias.1",
         "Invalid 'logit_bias.1': decimal above maximum value. Expected a value <= 100, but got 101 instead."),
        ({"logit_bias": {"1": -101}}, "logit_bias.1",
         "Invalid 'logit_bias.1': decimal below minimum value. Expected a value >= -100, but got -101 instead."),
    ],
)  # fmt: skip
def test_what_cannot_be_served_says_what_to_leave_out(members: dict[str, Any], param: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse(**members)
    assert (caught.value.param, caught.value.message) == (param, message)
