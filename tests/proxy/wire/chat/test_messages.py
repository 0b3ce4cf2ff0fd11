"""What a conversation may hold, and OpenAI's answer to what does not fit together."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import AssistantText, Entry, Guidance, Image, PastCall, Text, ToolResult, UserTurn
from proxy.errors import RequestError
from proxy.ids import shown_id
from proxy.wire.chat.messages import parse_messages
from proxy.wire.json_body import parse_json_object
from proxy.wire.pairing import Paired
from proxy.wire.reader import Reader

PNG = "data:image/png;base64,iVBORw0KGgo="
USER = {"role": "user", "content": "hi"}


def asked(*ids: str, **members: object) -> dict[str, Any]:
    function = {"name": "read_note", "arguments": "{}"}
    calls = [{"id": identifier, "type": "function", "function": function} for identifier in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **members}


def told(call_id: str, content: object = "text") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def pair(*messages: object, strict: bool = False) -> Paired:
    body = parse_json_object(orjson.dumps({"messages": messages}))
    made, _ = parse_messages(Reader(body), strict=strict)
    return made


def parse(*messages: object) -> tuple[Entry, ...]:
    return pair(*messages).entries


def call(call_id: str, arguments: str = "{}") -> PastCall:
    return PastCall(call_id, "read_note", arguments)


def result(call_id: str, text: str = "text") -> ToolResult:
    return ToolResult(call_id, (Text(text),))


def test_every_kind_of_message_finds_its_place() -> None:
    assert parse(
        {"role": "system", "content": "s"},
        {"role": "developer", "content": [{"type": "text", "text": "d"}]},
        {"role": "user", "name": "Ann", "content": [
            {"type": "text", "text": "u"},
            {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
        ]},
        asked("call_1", "call_2", content="I look.", refusal=None, audio=None, function_call=None),
        told("call_2", [{"type": "text", "text": "two"}]),
        {**told("call_1", "one"), "name": "read_note"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}]},
        {"role": "assistant", "content": None, "refusal": "I will not."},
    ) == (
        Guidance("s"),
        Guidance("d"),
        UserTurn((Text("u"), Image(PNG, "low"))),
        AssistantText("I look."),
        call("call_1"),
        call("call_2"),
        result("call_2", "two"),
        result("call_1", "one"),
        AssistantText("a\nno"),
        AssistantText("I will not."),
    )  # fmt: skip


def test_the_first_chunks_of_what_a_client_kept_are_taken_back() -> None:
    """Clients send the message that they were given, with whatever else they know of it."""
    kept = {
        "role": "assistant", "content": "", "refusal": None, "annotations": [], "parsed": None, "audio": None,
        "function_call": None, "reasoning_content": "hm",
        "tool_calls": [{"index": 0, "id": "call_1", "type": "function",
                        "function": {"name": "read_note", "arguments": "", "parsed_arguments": None}}],
    }  # fmt: skip
    assert parse(USER, kept, told("call_1", None))[1:] == (call("call_1"), ToolResult("call_1", ()))


@pytest.mark.parametrize("content", [None, "", []])
def test_an_empty_assistant_message_says_nothing(content: object) -> None:
    assert parse(USER, {"role": "assistant", "content": content}) == parse(USER)
    assert parse(USER, {"role": "assistant", "content": content, "tool_calls": []}) == parse(USER)


def test_an_id_may_be_used_again_by_a_later_message() -> None:
    entries = parse(USER, asked("call_0"), told("call_0"), asked("call_0"), told("call_0"))
    assert entries[1:] == (call("call_0"), result("call_0")) * 2


def test_a_conversation_that_began_at_another_server_keeps_its_pairs() -> None:
    first, second = "call_1|fc_1", "call_1__thought__" + "+/" * 200
    entries = parse(USER, asked(first, second), told(second, "two"), told(first, "one"))
    assert entries[1:] == (
        call(shown_id(first)), call(shown_id(second)), result(shown_id(second), "two"), result(shown_id(first), "one"),
    )  # fmt: skip


def test_a_result_said_twice_in_the_same_words_counts_once() -> None:
    assert parse(asked("call_1"), told("call_1"), told("call_1")) == (call("call_1"), result("call_1"))


def test_the_older_form_of_calls_needs_no_ids() -> None:
    asks = {"role": "assistant", "content": None, "function_call": {"name": "read_note", "arguments": '{"a":1}'}}
    tells = {"role": "function", "name": "read_note", "content": "text"}
    first, then, again, last = parse(asks, tells, asks, tells)
    assert isinstance(first, PastCall)
    assert isinstance(again, PastCall)
    assert (first.name, first.arguments) == ("read_note", '{"a":1}')
    assert (then, last) == (result(first.call_id), result(again.call_id))
    assert first.call_id != again.call_id
    assert isinstance(parse(USER, tells)[1], ToolResult)


def test_a_function_call_has_the_id_that_it_was_foretold() -> None:
    asks = {"role": "assistant", "content": "I look.", "function_call": {"name": "read_note", "arguments": "{}"}}
    tells = {"role": "function", "name": "read_note", "content": "text"}
    for before in ([USER], [USER, asks, tells], [USER, tells], [USER, asks, tells, asks, tells]):
        _, messages = parse_messages(Reader(parse_json_object(orjson.dumps({"messages": before}))))
        foretold = messages.function_id
        *_, made = (entry for entry in parse(*before, asks) if isinstance(entry, PastCall))
        assert made == call(foretold)


def test_a_custom_call_is_shown_as_the_function_that_stands_for_it() -> None:
    asks = asked(tool_calls=[{"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "a\nb"}}])
    assert parse(asks, told("call_1")) == (PastCall("call_1", "patch", '{"input":"a\\nb"}'), result("call_1"))


UNANSWERED = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
REFUSED: list[tuple[list[Any], str, str | None, str]] = [
    # messages, param, code, a part of the message
    ([], "messages", "empty_array", "Invalid 'messages': empty array."),
    (["hi"], "messages[0]", "invalid_type", "expected an object, but got a string"),
    ([{"content": "hi"}], "messages[0].role", "missing_required_parameter", "'messages[0].role'"),
    ([{"role": "critic", "content": "x"}], "messages[0].role", "invalid_value", "Invalid value: 'critic'."),
    ([{"role": "user"}], "messages[0].content", "missing_required_parameter", "'messages[0].content'"),
    ([{"role": "user", "content": None}], "messages[0].content", "missing_required_parameter", "'messages[0].content'"),
    ([{"role": "user", "content": 7}], "messages[0].content", "invalid_type", "a string or an array of content parts"),
    (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}],
        "messages[0].content[0].image_url.url",
        "invalid_image_url",
        "not fetched",
    ),
    (
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}],
        "messages[0].content[0].type",
        "unsupported_value",
        "'input_audio'",
    ),
    ([USER, asked("call_1")], "messages", None, f"{UNANSWERED} 'tool_call_id'. The following tool_call_ids did not"),
    ([asked("call_1"), USER, told("call_1")], "messages.[1].role", None, UNANSWERED),
    ([asked("call_1", "call_2"), told("call_1"), USER], "messages.[2].role", None, "response messages: call_2"),
    (
        [USER, told("call_1")],
        "messages.[1].role",
        None,
        "must be a response to a preceeding message with 'tool_calls'.",
    ),
    ([asked("call_1"), told("call_1"), USER, told("call_1")], "messages.[3].role", None, "preceeding message"),
    ([asked("call_1"), told("call_2")], "messages[1].tool_call_id", None, "'tool_call_id' of 'call_2' not found"),
    ([asked("call_1"), told("call_1"), told("call_1", "x")], "messages[2].tool_call_id", None, "Duplicate value"),
    ([asked("call_1", "call_1")], "messages[0].tool_calls[1].id", None, "Duplicate value"),
    ([asked("")], "messages[0].tool_calls[0].id", "empty_string", "minimum length 1"),
    (
        [asked("call_1"), {"role": "tool", "content": "x"}],
        "messages[1].tool_call_id",
        "missing_required_parameter",
        "'messages[1].tool_call_id'",
    ),
    (
        [asked(tool_calls=[{"id": "call_1", "type": "function"}])],
        "messages[0].tool_calls[0].function",
        "missing_required_parameter",
        "function",
    ),
    (
        [asked(tool_calls=[{"id": "call_1", "type": "function", "function": {"name": "x", "arguments": {}}}])],
        "messages[0].tool_calls[0].function.arguments",
        "invalid_type",
        "expected a string, but got an object",
    ),
    (
        [{"role": "function", "content": "x"}],
        "messages[0].name",
        "missing_required_parameter",
        "'messages[0].name'",
    ),
]


@pytest.mark.parametrize(("messages", "param", "code", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused_in_openais_words(
    messages: list[Any], param: str, code: str | None, message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        pair(*messages, strict=True)
    error = caught.value
    assert (error.status, error.type, error.param, error.code) == (400, "invalid_request_error", param, code)
    assert message in error.message


NO_RESULT = "(no separate result)"
HI = UserTurn((Text("hi"),))
MENDED: list[tuple[list[Any], tuple[Entry, ...], dict[str, int]]] = [
    # messages, what is shown of them, what was done
    ([USER, asked("a")], (HI, call("a"), result("a", NO_RESULT)), {"missing": 1}),
    (
        # As Smart Composer sends them: the second result stands in the first one's message.
        [asked("a", "b"), told("a", "one\ntwo"), USER],
        (call("a"), call("b"), result("a", "one\ntwo"), result("b", NO_RESULT), HI),
        {"missing": 1},
    ),
    (
        [asked("a"), {"role": "assistant", "content": "So."}, USER],
        (call("a"), AssistantText("So."), result("a", NO_RESULT), HI),
        {"missing": 1},
    ),
    (
        [asked("a", "b"), told("b"), asked("a"), told("a", "new")],
        (call("a"), call("b"), result("b"), result("a", NO_RESULT), call("a"), result("a", "new")),
        {"missing": 1},
    ),
    ([asked("a"), USER, told("a")], (call("a"), HI, result("a")), {"reordered": 1}),
    ([told("a"), asked("a"), USER], (call("a"), result("a"), HI), {"reordered": 1}),
    ([asked("a"), told("a"), told("a", "x")], (call("a"), result("a"), result("a", "x")), {"doubled": 1}),
]


@pytest.mark.parametrize(("messages", "shown", "repairs"), MENDED, ids=range(len(MENDED)))
def test_results_that_do_not_pair_are_made_to(
    messages: list[Any], shown: tuple[Entry, ...], repairs: dict[str, int]
) -> None:
    made = pair(*messages)
    assert made.entries == shown
    assert made.repairs == repairs
    # Whatever the client says next, all of it stays as it was shown.
    later = pair(*messages, {"role": "assistant", "content": "Well."}, USER).entries
    assert [entry for entry in later if entry not in (AssistantText("Well."), HI)] == [
        entry for entry in shown if entry != HI
    ]
    with pytest.raises(RequestError):
        pair(*messages, strict=True)


@pytest.mark.parametrize("messages", [[USER, told("a")], [asked("a"), told("a"), told("b")]])
def test_a_result_without_any_call_is_refused_all_the_same(messages: list[Any]) -> None:
    with pytest.raises(RequestError):
        pair(*messages)


def test_an_error_does_not_name_ten_thousand_ids() -> None:
    with pytest.raises(RequestError) as caught:
        pair(asked(*(f"call_{n}" for n in range(1000))), strict=True)
    assert len(caught.value.message) < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "user", "tool", "call_1", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "id", "function", "custom", "name", "arguments", "image_url", "url", "input"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool", "function", "system"])},
        optional={
            "content": JSON,
            "tool_calls": st.lists(st.just(asked("call_1")["tool_calls"][0]), max_size=2) | JSON,
            "tool_call_id": st.just("call_1") | JSON,
            "function_call": JSON,
            "refusal": JSON,
            "name": JSON,
        },
    ),
    max_size=5,
)


@given(MESSAGES)
def test_whatever_is_sent_is_taken_or_refused(messages: list[Any]) -> None:
    """What is taken pairs up: each result has its call before it, save the older form's, and each call a result."""
    try:
        entries = parse(*messages)
    except RequestError:
        return
    open_calls: set[str] = set()
    for entry in entries:
        match entry:
            case PastCall(call_id=call_id):
                open_calls.add(call_id)
            case ToolResult(call_id=call_id):
                assert call_id in open_calls or call_id.startswith("function_")
            case _:
                pass
    assert open_calls <= {entry.call_id for entry in entries if isinstance(entry, ToolResult)}
