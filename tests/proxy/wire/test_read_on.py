"""What an earlier request began with is not read again, and nothing is read otherwise for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prompts import Beginnings, PastCall
from proxy.errors import RequestError
from proxy.wire.chat.request import parse_chat_request
from proxy.wire.ollama.request import parse_chat
from proxy.wire.responses.input_items import History
from proxy.wire.responses.request import parse_responses_request

KEPT = "proxy.wire.read_on._BEGINNINGS"
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
CALL = {"type": "function_call", "arguments": "{}"}
OUTPUT = {"type": "function_call_output"}
NAMES, TEXTS, CALL_IDS = (st.sampled_from(each) for each in ("rw", "xy", "abc"))
IDS = st.sampled_from([None, None, None, "one", "two"])
PLAIN = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.just("Go on."), "id": IDS}),
    st.builds(lambda at, name: {**CALL, "call_id": at, "name": name}, CALL_IDS, NAMES),
    st.builds(
        lambda at, said: {**OUTPUT, "call_id": at, "output": said}, st.sampled_from("abc"), st.sampled_from("xy")
    ),
)
NAMELESS = {**OUTPUT, "name": "r", "output": "x"}
OTHER = st.sampled_from([
    {**CALL, "call_id": "a", "name": "read", "namespace": "notes"},
    NAMELESS,
    {**OUTPUT, "call_id": "a", "output": [{"type": "input_text", "text": "x"}]},
    {"type": "custom_tool_call", "call_id": "b", "name": "r", "input": ""},
    {"role": "developer", "content": [PICTURE]},
    {"role": "user", "content": None},
    {"role": "user", "content": [PICTURE]},
    {"type": "reasoning", "summary": []},
    {"type": "item_reference", "id": "one"},
    {"type": "compaction", "encrypted_content": "from elsewhere"},
    {"type": "additional_tools", "tools": [{"type": "function", "name": "late"}]},
    {"type": "local_shell_call", "call_id": "a", "action": {"type": "exec", "command": ["ls"]}},
    {"type": "mcp_call", "name": "read", "server_label": "notes", "arguments": "{}"},
    {"type": "tool_search_output", "call_id": "a", "execution": "client", "tools": [{"type": "function", "name": "r"}]},
    {"type": "compaction_trigger"},
    {"type": "unknown"},
    {"type": ["message"]},
    7,
])  # fmt: skip


@st.composite
def inputs(draw: st.DrawFn) -> list[Any]:
    """Mostly of what is looked up."""
    items: list[Any] = draw(st.lists(PLAIN, max_size=10))
    for other in draw(st.lists(OTHER, max_size=2)):
        items.insert(draw(st.integers(0, len(items))), other)
    return items


OTHER_TOOLS: list[Any] = [{"type": "function", "name": "r", "parameters": {}}]
TOOLS: list[Any] = [{"type": "namespace", "name": "notes", "tools": [{"type": "function", "name": "read"}]}]


def read(items: list[Any], history: History, tools: list[Any] = TOOLS) -> object:
    """The request, or what is said of its fault."""
    try:
        parsed = parse_responses_request({"model": "m", "input": items, "tools": tools}, history)
    except RequestError as error:
        return error.message, error.code, error.param, error.status
    return parsed.turn.transcript, parsed.turn.repairs, parsed.turn.warnings, [*parsed.turn.registry]


@example(
    [{**CALL, "call_id": "a", "name": "r"}, {**OUTPUT, "call_id": "a", "output": "x"}, NAMELESS], [], [2], False, False
)
@given(inputs(), st.lists(PLAIN, max_size=3), st.lists(st.integers(0, 12), max_size=3), st.booleans(), st.booleans())
def test_a_request_is_read_as_if_nothing_had_been_seen(
    items: list[Any], stored: list[Any], cuts: list[int], strict: bool, other_tools: bool
) -> None:
    history = History(tuple(stored), {"one": ITEM} if stored else {}, strict)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KEPT, Beginnings(0))
        unseen = read(items, history)
        patch.setattr(KEPT, Beginnings(1_000_000))
        for cut in cuts:
            read(items[:cut], history, OTHER_TOOLS if other_tools else TOOLS)
        assert read(items, history) == unseen
        assert read(items, history) == unseen


FUNCTION = {"name": "r", "arguments": "{}"}
CHAT_MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": st.just("Go on.")}),
    st.builds(
        lambda at: {"role": "assistant", "tool_calls": [{"id": at, "type": "function", "function": FUNCTION}]}, CALL_IDS
    ),
    st.builds(lambda at, said: {"role": "tool", "tool_call_id": at, "content": said}, CALL_IDS, TEXTS),
    st.sampled_from([
        {"role": "assistant", "function_call": FUNCTION},
        {"role": "function", "name": "r", "content": "x"},
        {"role": "user", "name": "Ann", "content": "Go on."},
        {"role": "user", "name": 7, "content": "Go on."},
        {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": PICTURE["image_url"]}}]},
        {"role": "user"},
        {"role": "nobody"},
        7,
    ]),
)  # fmt: skip
OLLAMA_MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": st.just("Go on.")}),
    st.sampled_from([
        {"role": "assistant", "tool_calls": [{"function": {"name": "r", "arguments": {}}}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": name, "arguments": {"n": 1}}} for name in "rw"]},
        {"role": "tool", "content": "x"},
        {"role": "tool", "tool_name": "w", "content": "x"},
        {"role": "tool", "tool_call_id": "call_0_0", "content": "x"},
        {"role": "user", "images": ["aGk="]},
        {"role": "nobody"},
        7,
    ]),
)  # fmt: skip


@given(st.lists(CHAT_MESSAGES, max_size=10), st.lists(st.integers(1, 10), max_size=3), st.booleans())
def test_messages_of_chat_are_read_as_if_none_had_been_seen(messages: list[Any], cuts: list[int], strict: bool) -> None:
    def parsed(messages: list[Any]) -> object:
        request = parse_chat_request({"model": "m", "messages": messages}, strict_history=strict)
        turn = request.turn
        return turn.transcript, turn.repairs, turn.warnings, turn.wishes, request.function_id

    read_alike(parsed, messages, cuts)


@given(st.lists(OLLAMA_MESSAGES, max_size=10), st.lists(st.integers(1, 10), max_size=3))
def test_messages_of_ollama_are_read_as_if_none_had_been_seen(messages: list[Any], cuts: list[int]) -> None:
    def parsed(messages: list[Any]) -> object:
        request = parse_chat({"model": "m", "messages": messages})
        return request.turn.transcript, request.turn.repairs, request.answers

    read_alike(parsed, messages, cuts)


def read_alike(parsed: Callable[[list[Any]], object], messages: list[Any], cuts: list[int]) -> None:
    def read(messages: list[Any]) -> object:
        try:
            return parsed(messages)
        except RequestError as error:
            return error.message, error.code, error.param, error.status

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KEPT, Beginnings(0))
        unseen = read(messages)
        patch.setattr(KEPT, Beginnings(1_000_000))
        for cut in cuts:
            read(messages[:cut])
        assert read(messages) == read(messages) == unseen


ITEM: Any = {"role": "user", "content": "What stood before."}


def test_what_a_conversation_began_with_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: Beginnings[bytes, Any] = Beginnings(1_000_000)
    monkeypatch.setattr(KEPT, kept)
    items = [{"role": "user", "content": f"Question {number}?"} for number in range(20)]

    def entries(items: list[Any]) -> tuple[object, ...]:
        return parse_responses_request({"model": "m", "input": items}).turn.transcript.entries

    first, again = entries(items[:12]), entries(items)
    assert [one is other for one, other in zip(first, again, strict=False)] == [True] * 11 + [False]
    assert 0 < kept.bytes <= 1_000_000


@pytest.mark.parametrize("one", [1, True, 1.0])
@pytest.mark.parametrize("other", [1, True, 1.0])
def test_numbers_that_are_equal_are_not_the_same_words(one: object, other: object) -> None:
    """A call of a tool that ran elsewhere is shown as it was written."""

    def arguments(value: object) -> list[str]:
        call: Any = {"type": "local_shell_call", "call_id": "a", "action": {"timeout_ms": value}}
        entries = parse_responses_request({"model": "m", "input": [call, ITEM]}).turn.transcript.entries
        return [entry.arguments for entry in entries if isinstance(entry, PastCall)]

    arguments(one)
    assert arguments(other) == [orjson.dumps({"timeout_ms": other}).decode()]
