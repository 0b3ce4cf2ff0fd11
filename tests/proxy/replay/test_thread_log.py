"""What a thread holds after each line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.conversation import ThreadMessage
from proxy.replay.thread_log import ThreadLog, counted_on, item_fault
from tests.proxy.replay.child import Message, answered, asked, counted, injected, item, said, shown

KEY = "0abcdefghi"
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}


def held(*lines: Message, key: str | None = None) -> list[ThreadMessage]:
    log = ThreadLog(key)
    for line in lines:
        log.take(line["msg"])
    return log.messages


def assistant(text: str) -> ThreadMessage:
    return ThreadMessage("assistant", (text,))


def test_what_was_injected_asked_and_answered_is_held_in_order() -> None:
    assert held(
        injected(item("user", "a", "b"), item("developer", "c"), item("assistant", "d")),
        asked("e"),
        *answered(["f", "g"]),
        injected(item("user", "h")),
    ) == [
        ThreadMessage("user", ("a", "b")),
        ThreadMessage("developer", ("c",)),
        assistant("d"),
        *shown("e"),
        assistant("fg"),
        *shown("h"),
    ]


def test_images_are_left_out_and_a_turn_without_input_says_nothing() -> None:
    look, empty = item("user", "look"), asked("")
    look["content"].append(IMAGE)
    empty["msg"]["params"]["input"] = []
    assert held(injected(look, {"type": "reasoning", "summary": []}), empty) == [*shown("look")]


def test_the_key_of_the_calls_is_masked_wherever_it_stands() -> None:
    call = f'<tool_call>{{"key": "{KEY}", "name": "a"}}</tool_call>'
    masked = call.replace(KEY, "[call key]")
    lines = [injected(item("assistant", call)), asked(call), *answered([call[:25], call[25:]])]
    assert held(*lines, key=KEY) == [assistant(masked), *shown(masked), assistant(masked)]


def test_a_message_that_was_cut_off_is_not_kept() -> None:
    *whole, end = answered(["Once", " upon"])
    interrupted = said(0.0, "turn/completed", turn={"id": "U", "status": "interrupted"})
    assert held(*whole[:-1], interrupted) == []
    assert held(*whole, interrupted) == [assistant("Once upon")]
    assert held(*whole[:-1], end) == [assistant("Once upon")]


def test_what_the_model_begins_again_is_not_kept() -> None:
    begun, *cut = answered(["Onc"])[:-2]
    again = said(0.0, "error", willRetry=True, error={"message": "Reconnecting... 1/5"})
    piece = said(0.0, "item/agentMessage/delta", turnId="U", itemId="I2", delta="Once")
    end = answered([])[-1]
    assert held(begun, *cut, again, piece, end) == [assistant("Once")]


def test_tokens_are_the_newest_total() -> None:
    log = ThreadLog()
    for line in (counted(10, 10), counted(7, 17)):
        log.take(line["msg"])
    assert log.tokens == {"totalTokens": 17, "inputTokens": 17}


@given(st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["method", "params", "input", "items", "item", "content", "type"]), inner
)))  # fmt: skip
def test_any_line_is_taken(line: object) -> None:
    ThreadLog().take(line)
    if isinstance(line, dict):
        assert counted_on(line, {"inputTokens": 1}) == line


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (item("user", "a"), None),
        ({"type": "message", "role": "user", "content": [IMAGE]}, None),
        ({"type": "reasoning"}, None),
        (1, "invalid type, expected internally tagged enum ResponseItem"),
        ({}, "missing field `type`"),
        ({"type": "message"}, "missing field `role`"),
        ({"type": "message", "role": "user"}, "missing field `content`"),
        ({"type": "message", "role": "user", "content": [{"type": "input_text"}]}, "missing field `text`"),
        ({"type": "message", "role": "user", "content": [{"type": "input_image"}]}, "missing field `image_url`"),
        (
            {"type": "message", "role": "user", "content": [{"type": "text", "text": "a"}]},
            "expected one of `input_text`, `input_image`, `input_audio`, `output_text`",
        ),
    ],
)
def test_what_cannot_be_injected_is_told(value: object, fault: str | None) -> None:
    assert item_fault(value) == fault
