"""What a Realtime session is set to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import ChoiceMode, ToolChoice, Transcript
from proxy.errors import RequestError
from proxy.wire.reader import Reader
from proxy.wire.realtime.items import Items
from proxy.wire.realtime.request import SessionSettings, changed_session, parse_model, session_object, turn_of
from proxy.wire.realtime.versions import BETA, GA, Words

RATIO = {"type": "retention_ratio", "retention_ratio": 0.8}
TOOLS = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in ("f", "g")]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "name", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)
MEMBERS = (
    "instructions", "max_output_tokens", "max_response_output_tokens", "modalities", "model", "output_modalities",
    "parallel_tool_calls", "prompt", "reasoning", "tool_choice", "tools", "tracing", "truncation", "type", "voice",
)  # fmt: skip


def changed(settings: SessionSettings, words: Words = GA, **change: Any) -> SessionSettings:
    return changed_session(settings, Reader(change, "session"), words)


@pytest.mark.parametrize("words", [GA, BETA], ids=["ga", "beta"])
@given(change=st.dictionaries(st.sampled_from(MEMBERS), JSON))
def test_any_change_is_made_or_refused(words: Words, change: dict[str, Any]) -> None:
    settings = changed(SessionSettings(), tools=TOOLS, tool_choice="required")
    try:
        after = changed(settings, words, **change)
    except RequestError:
        return
    tools = list(settings.tools_echo) if change.get("tools") is None else change["tools"]
    assert session_object("sess_1", "m", after, words)["tools"] == tools
    turn_of("m", after, Items(), insists=True)


def test_a_limit_is_a_number_or_none() -> None:
    limited = changed(SessionSettings(), max_output_tokens=7)
    assert limited.max_output_tokens == 7
    assert changed(limited, max_output_tokens="inf").max_output_tokens is None
    assert changed(limited, BETA, max_response_output_tokens=9).shown_limit == 9
    for wrong in (0, "many", 1.5):
        with pytest.raises(RequestError):
            changed(limited, max_output_tokens=wrong)


def test_a_choice_may_come_before_the_tools_that_it_names() -> None:
    settings = changed(SessionSettings(), tool_choice={"type": "function", "name": "g"})
    assert settings.choice() == ToolChoice()
    assert changed(settings, tools=TOOLS).choice() == ToolChoice(ChoiceMode.REQUIRED, ("g",))


def test_a_named_tool_has_to_be_there() -> None:
    named = {"type": "function", "name": "g"}
    settings = changed(SessionSettings(), tools=TOOLS, tool_choice=named)
    assert settings.choice() == ToolChoice(ChoiceMode.REQUIRED, ("g",))
    with pytest.raises(RequestError):
        changed(settings, tools=TOOLS[:1])


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "f"}])
@pytest.mark.parametrize("insists", [True, False])
def test_a_demand_holds_until_there_are_results(choice: Any, insists: bool) -> None:
    settings, items = changed(SessionSettings(), tools=TOOLS, tool_choice=choice), Items()
    items.create(Reader({"type": "message", "role": "user", "content": "hi"}))
    assert turn_of("m", settings, items, insists=insists).choice.mode is ChoiceMode.REQUIRED
    items.create(Reader({"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}))
    items.create(Reader({"type": "function_call_output", "call_id": "call_1", "output": "x"}))
    mode = turn_of("m", settings, items, insists=insists).choice.mode
    assert mode is (ChoiceMode.REQUIRED if insists else ChoiceMode.AUTO)
    items.create(Reader({"type": "message", "role": "user", "content": "And?"}))
    assert turn_of("m", settings, items, insists=insists).choice.mode is ChoiceMode.REQUIRED


def test_long_conversations_are_cut_unless_the_client_wants_none_of_it() -> None:
    assert turn_of("m", SessionSettings(), Items(), insists=False).truncate
    assert not turn_of("m", changed(SessionSettings(), truncation="disabled"), Items(), insists=False).truncate


def test_the_model_stands_in_the_url() -> None:
    assert parse_model({"model": "gpt-5.5", "intent": "x"}) == "gpt-5.5"
    for name in (None, " "):
        with pytest.raises(RequestError) as caught:
            parse_model({"model": name})
        assert caught.value.param == "model"


@pytest.mark.parametrize(
    ("words", "change", "shown"),
    [
        (GA, {"instructions": "Be kind."}, {"instructions": "Be kind."}),
        (GA, {"tools": TOOLS}, {"tools": TOOLS}),
        (GA, {"tools": TOOLS, "tool_choice": "required"}, {"tools": TOOLS, "tool_choice": "required"}),
        (GA, {"max_output_tokens": 7}, {"max_output_tokens": 7}),
        (BETA, {"max_response_output_tokens": 7}, {"max_response_output_tokens": 7}),
        (GA, {"tracing": "auto"}, {"tracing": "auto"}),
        (GA, {"output_modalities": ["text"]}, {}),
        (BETA, {"modalities": ["text", "audio"]}, {}),
        (GA, {"parallel_tool_calls": False, "reasoning": {"effort": "low"}}, {}),
        (GA, {"truncation": "disabled"}, {"truncation": "disabled"}),
        (GA, {"truncation": RATIO}, {"truncation": RATIO}),
        (BETA, {"truncation": "disabled"}, {}),
    ],
)
def test_what_a_session_is_set_to_is_shown(words: Words, change: dict[str, Any], shown: dict[str, Any]) -> None:
    session = session_object("sess_1", "m", changed(SessionSettings(), words, **change), words)
    assert session == {**session_object("sess_1", "m", SessionSettings(), words), **shown}


def test_a_session_is_openais() -> None:
    common: dict[str, Any] = {
        "id": "sess_1",
        "object": "realtime.session",
        "model": "m",
        "instructions": "",
        "tools": [],
    }
    common |= {"tool_choice": "auto", "tracing": None}
    assert session_object("sess_1", "m", SessionSettings(), GA) == {
        **common, "type": "realtime", "truncation": "auto", "prompt": None, "include": None,
        "output_modalities": ["text"], "max_output_tokens": "inf",
    }  # fmt: skip
    assert session_object("sess_1", "m", SessionSettings(), BETA) == {
        **common, "turn_detection": None, "input_audio_transcription": None,
        "modalities": ["text"], "max_response_output_tokens": "inf",
    }  # fmt: skip


def test_what_was_set_stays_until_it_is_set_otherwise() -> None:
    settings = changed(
        SessionSettings(), tools=TOOLS, tool_choice="required", instructions="Be kind.", parallel_tool_calls=False,
        reasoning={"effort": "low"}, truncation="disabled", tracing="auto", max_output_tokens=7,
    )  # fmt: skip
    assert changed(settings) == settings
    turn = turn_of("m", settings, Items(), insists=False)
    assert (turn.model, turn.effort, turn.parallel, turn.truncate) == ("m", "low", False, False)
    assert (turn.max_output_tokens, turn.transcript.instructions) == (7, "Be kind.")
    assert turn.choice == ToolChoice(ChoiceMode.REQUIRED)
    assert [tool.name for tool in turn.registry] == ["f", "g"]
    assert turn_of("m", changed(settings, truncation="auto"), Items(), insists=False).truncate
    default = turn_of("m", SessionSettings(), Items(), insists=False)
    assert (default.effort, default.parallel, default.truncate) == (None, True, True)
    assert (default.max_output_tokens, default.transcript) == (None, Transcript(()))


@pytest.mark.parametrize(
    ("words", "change", "message", "code", "param"),
    [
        (
            GA, {"type": "transcription"},
            "This server does not hear: sessions are of type 'realtime'.", "unsupported_value", "session.type",
        ),
        (
            GA, {"prompt": {"id": "p"}},
            "Stored prompt templates are not available here: send 'instructions'.", "unsupported_parameter",
            "session.prompt",
        ),
        (
            GA, {"output_modalities": ["audio"]},
            "This server does not speak: set 'output_modalities' to ['text'].", "unsupported_value",
            "session.output_modalities",
        ),
        (
            BETA, {"modalities": ["audio"]},
            "This server does not speak: set 'modalities' to ['text'].", "unsupported_value", "session.modalities",
        ),
        (
            GA, {"max_output_tokens": "many"},
            "Invalid type for 'session.max_output_tokens': expected an integer or 'inf', but got a string instead.",
            "invalid_type", "session.max_output_tokens",
        ),
        (
            GA, {"type": "dance"},
            "Invalid value: 'dance'. Supported values are: 'realtime', 'transcription'.", "invalid_value",
            "session.type",
        ),
        (
            GA, {"truncation": "never"},
            "Invalid value: 'never'. Supported values are: 'auto', 'disabled'.", "invalid_value", "session.truncation",
        ),
        (
            GA, {"truncation": ["auto"]},
            (
                "Invalid type for 'session.truncation': expected one of 'auto', 'disabled' or an object, but got an "
                "array instead."
            ),
            "invalid_type", "session.truncation",
        ),
        (
            GA, {"truncation": {"type": "retention_ratio"}},
            "Missing required parameter: 'session.truncation.retention_ratio'.", "missing_required_parameter",
            "session.truncation.retention_ratio",
        ),
        (
            GA, {"tool_choice": 5},
            (
                "Invalid type for 'session.tool_choice': expected one of 'none', 'auto', 'required' or an object, but "
                "got an integer instead."
            ),
            "invalid_type", "session.tool_choice",
        ),
        (
            GA, {"tool_choice": "any"},
            "Invalid value: 'any'. Supported values are: 'auto', 'none', 'required'.", "invalid_value",
            "session.tool_choice",
        ),
        (
            GA, {"tool_choice": {"name": "f"}},
            "Missing required parameter: 'session.tool_choice.type'.", "missing_required_parameter",
            "session.tool_choice.type",
        ),
    ],
)  # fmt: skip
def test_what_no_session_can_be_set_to_is_refused(
    words: Words, change: dict[str, Any], message: str, code: str, param: str
) -> None:
    with pytest.raises(RequestError) as caught:
        changed(SessionSettings(), words, **change)
    assert (caught.value.message, caught.value.code, caught.value.param) == (message, code, param)
