"""What a Realtime session is set to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import ChoiceMode, ToolChoice
from proxy.errors import RequestError
from proxy.wire.reader import Reader
from proxy.wire.realtime.items import Items
from proxy.wire.realtime.request import SessionSettings, changed_session, session_object, turn_of
from proxy.wire.realtime.versions import BETA, GA, Words

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
