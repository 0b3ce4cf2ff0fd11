"""What a request to /api/chat or /api/generate asks of the turn, and what is refused of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from prompts import ChoiceMode, Guidance, Image, Text, ToolChoice, UserTurn
from proxy.contracts import OutputFormat, Sampling
from proxy.errors import RequestError
from proxy.wire.json_body import JsonObject, JsonValue
from proxy.wire.ollama.request import OllamaRequest, parse_chat, parse_generate

HI: list[JsonValue] = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
PNG = "iVBORw0KGgo="


def chat(**members: Any) -> OllamaRequest:
    return parse_chat({"model": "m", "messages": HI, **members})


def test_a_stream_is_wanted_unless_it_is_declined() -> None:
    assert chat().turn.streamed
    assert not chat(stream=False).turn.streamed


def test_a_tag_of_the_newest_version_is_no_part_of_a_models_name() -> None:
    request = parse_chat({"model": "gpt-5.5:latest", "messages": HI})
    assert (request.turn.model, request.model) == ("gpt-5.5", "gpt-5.5:latest")


@pytest.mark.parametrize(
    ("options", "limit", "stop", "sampling"),
    [
        ({}, None, (), Sampling()),
        ({"num_predict": 7, "stop": "END", "temperature": 0.5, "seed": 1}, 7, ("END",), Sampling(0.5, None, 1)),
        ({"num_predict": -1, "stop": ["a", "", "b"], "top_p": 0.9}, None, ("a", "b"), Sampling(None, 0.9, None)),
        ({"num_ctx": 8192, "num_predict": -2, "mirostat": 1}, None, (), Sampling()),
    ],
)
def test_options_are_heeded_as_far_as_they_have_a_meaning(
    options: JsonObject, limit: int | None, stop: tuple[str, ...], sampling: Sampling
) -> None:
    turn = chat(options=options).turn
    assert (turn.max_output_tokens, turn.stop, turn.sampling) == (limit, stop, sampling)


@pytest.mark.parametrize(
    ("think", "effort", "shown"),
    [(None, None, False), (True, None, True), (False, "low", False), ("high", "high", True), ("max", "high", True)],
)
def test_thinking_is_an_effort_and_whether_it_is_shown(think: object, effort: str | None, shown: bool) -> None:
    request = chat(think=think)
    assert (request.turn.effort, request.thoughts, request.turn.summary is not None) == (effort, shown, shown)


@pytest.mark.parametrize("parse", [parse_chat, parse_generate])
def test_options_that_a_backend_may_not_heed_are_named(parse: Callable[[JsonObject], OllamaRequest]) -> None:
    options: JsonObject = {"temperature": 0.2, "top_k": 40, "seed": 1, "num_ctx": 8192, "num_predict": 9, "stop": "x"}
    asked = parse({"model": "m", "messages": HI, "prompt": "hi", "options": options, "logprobs": True})
    assert set(asked.turn.wishes) == {"temperature", "top_k", "seed", "logprobs"}
    assert not parse({"model": "m", "messages": HI, "prompt": "hi", "options": {"num_ctx": 8192}}).turn.wishes


@pytest.mark.parametrize(
    ("wanted", "form"),
    [
        (None, None),
        ("", None),
        ("json", OutputFormat()),
        ({"type": "object"}, OutputFormat('{"type":"object"}', strict=True)),
    ],
)
@pytest.mark.parametrize("parse", [parse_chat, parse_generate])
def test_a_format_is_structured_output(
    parse: Callable[[JsonObject], OllamaRequest], wanted: Any, form: OutputFormat | None
) -> None:
    assert parse({"model": "m", "messages": HI, "prompt": "hi", "format": wanted}).turn.output_format == form


@pytest.mark.parametrize(
    ("text", "names"), [('Do it.\nUse the "f" tool.', ("f",)), ('Use the "g" tool.', None), ("Do it.", None)]
)
def test_json_beside_tools_demands_a_call(text: str, names: tuple[str, ...] | None) -> None:
    turn = chat(messages=[{"role": "user", "content": text}], tools=[TOOL], format="json").turn
    assert (turn.choice, turn.output_format) == (ToolChoice(ChoiceMode.REQUIRED, names), None)


def test_images_come_as_base64_or_as_data_urls() -> None:
    turn = chat(messages=[{"role": "user", "content": "?", "images": [PNG, f"data:image/webp;base64,{PNG}"]}]).turn
    assert turn.transcript.entries == (
        UserTurn((Text("?"), Image(f"data:image/png;base64,{PNG}"), Image(f"data:image/webp;base64,{PNG}"))),
    )


def test_a_prompt_alone_is_a_message_behind_its_system_text() -> None:
    request = parse_generate({"model": "m", "prompt": "hi", "system": "Be brief.", "images": [PNG]})
    image = Image(f"data:image/png;base64,{PNG}")
    assert request.turn.transcript.entries == (Guidance("Be brief."), UserTurn((Text("hi"), image)))
    assert not request.chat


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"messages": [{"role": "robot", "content": ""}]}, "robot"),
        ({"messages": [{"role": "user", "content": "?", "images": ["https://a.example/b.png"]}]}, "Remote images"),
        ({"messages": [{"role": "user", "content": "?", "images": ["%%"]}]}, "not base64"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 1}}]}]},
            "arguments",
        ),
        ({"format": 3}, "format"),
        ({"think": 3}, "think"),
        ({"tools": [TOOL, TOOL]}, "declared twice"),
        ({"model": ""}, "model"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_name(members: JsonObject, said: str) -> None:
    with pytest.raises(RequestError, match=said) as refused:
        chat(**members)
    assert refused.value.status == 400
