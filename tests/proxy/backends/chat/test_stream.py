from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.backends.chat.stream import MAX_LINE, MOST_CHOICES, MOST_UNSURE, ChatStream
from proxy.contracts import (
    BackendEvent,
    MessageEnded,
    ReasoningEnded,
    ReasoningPiece,
    TextPiece,
    TurnEnded,
    Usage,
)
from tests.support.backend_events import merged

DONE = b"data: [DONE]\n\n"
ENDED: list[BackendEvent] = [MessageEnded(), TurnEnded(None)]


def event(**members: Any) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(members)


def delta(finish: str | None = None, **members: Any) -> bytes:
    return event(choices=[{"index": 0, "delta": members, "finish_reason": finish}])


def read(data: Sequence[bytes], **how: Any) -> tuple[list[BackendEvent], str | None]:
    """All events, and the code of the failure that they end in."""
    reader = ChatStream("The server", **how)
    events: list[BackendEvent] = []
    for block in data:
        events += reader.receive(block)
        if reader.failed:
            break
    else:
        events += reader.receive_eof()
    return list(merged(events)), reader.failed.code if reader.failed else None


USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
# As llama.cpp's server, OpenRouter and vLLM write.
WHOLE = [
    b": OPENROUTER PROCESSING\n\n",
    delta(role="assistant", content=None),
    delta(reasoning_content="Let me "),
    delta(reasoning="see.", reasoning_details=[]),
    delta(content="He"),
    delta(content="llo"),
    delta(finish="stop"),
    event(choices=[], usage=USAGE),
    DONE,
]
TOLD = [
    ReasoningPiece(0, "Let me see."), ReasoningEnded(), TextPiece("Hello"), MessageEnded(),
    TurnEnded(Usage(10, 4, 5, 2)),
]  # fmt: skip


def test_a_stream_is_told_as_events() -> None:
    assert read(WHOLE) == (TOLD, None)


@given(st.lists(st.integers(1, 60), min_size=1))
def test_how_bytes_are_cut_does_not_show(sizes: list[int]) -> None:
    data = b"".join(WHOLE)
    blocks: list[bytes] = []
    while data:
        size = sizes[len(blocks) % len(sizes)]
        blocks.append(data[:size])
        data = data[size:]
    assert read(blocks) == (TOLD, None)


def test_pieces_that_came_together_leave_as_one() -> None:
    assert ChatStream("s").receive(delta(content="a") + delta(content="b")) == [TextPiece("ab")]


def test_reasoning_that_nobody_asked_for_is_told_only_to_be_counted() -> None:
    thought, *rest = TOLD
    assert isinstance(thought, ReasoningPiece)
    assert read(WHOLE, reasoning=False) == ([replace(thought, asked=False), *rest], None)


def test_what_may_be_a_thought_waits_no_longer_than_it_may_be_an_answer() -> None:
    """A model that begins in a thought and never ends it would fill the memory, and be counted by nobody."""
    stream = ChatStream("s", inside=True, sure=False)
    for _ in range(MOST_UNSURE // 1024):
        assert stream.receive(delta(content="x" * 1024)) == []
    (piece,) = stream.receive(delta(content="x" * 1024))
    assert isinstance(piece, ReasoningPiece)
    assert len(piece.text) == MOST_UNSURE + 1024
    assert stream.receive(delta(content="y")) == [ReasoningPiece(0, "y")]


CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'

WAYS: dict[str, tuple[list[bytes], list[BackendEvent], str | None]] = {
    "no [DONE]": ([delta(content="Hi", finish="stop")], [TextPiece("Hi"), *ENDED], None),
    "no finish_reason": ([delta(content="Hi"), DONE], [TextPiece("Hi"), *ENDED], None),
    "cut": ([delta(content="Hi")], [TextPiece("Hi")], "backend_disconnected"),
    "cut in a line": ([delta(content="Hi"), b'data: {"cho'], [TextPiece("Hi")], "backend_error"),
    "nothing": ([], [], "backend_disconnected"),
    "no line end": (
        [delta(content="Hi"), delta(finish="stop").strip()], [TextPiece("Hi"), *ENDED], None,
    ),
    "carriage returns": ([delta(content="Hi", finish="stop").replace(b"\n", b"\r\n")], [TextPiece("Hi"), *ENDED], None),
    "length": (
        [delta(content="Hi", finish="length"), DONE],
        [TextPiece("Hi"), MessageEnded(), TurnEnded(None, "max_output_tokens")], None,
    ),
    "filtered": ([delta(finish="content_filter")], [TurnEnded(None, "content_filter")], None),
    "only thoughts": (
        [delta(content="<think>Hm"), delta(finish="length")],
        [ReasoningPiece(0, "Hm"), ReasoningEnded(), TurnEnded(None, "max_output_tokens")], None,
    ),
    "thoughts in the text": (
        [delta(content="<think>Hm</think>Hi", finish="stop")],
        [ReasoningPiece(0, "Hm"), ReasoningEnded(), TextPiece("Hi"), *ENDED], None,
    ),
    "a blank between the thoughts and the answer": (
        [delta(reasoning_content="Hm"), delta(content="\n\n"), delta(content="Hi", finish="stop")],
        [ReasoningPiece(0, "Hm"), ReasoningEnded(), TextPiece("Hi"), *ENDED], None,
    ),
    "thoughts that only a call ends": (
        [delta(content=f"<think>I read.\n{CALL}\n", finish="stop")],
        [ReasoningPiece(0, f"I read.\n{CALL}\n"), ReasoningEnded(), TextPiece(CALL), *ENDED], None,
    ),
    "thoughts told apart that only a call ends": (
        [delta(reasoning=f"I read.\n{CALL}"), delta(finish="stop")],
        [ReasoningPiece(0, f"I read.\n{CALL}"), ReasoningEnded(), TextPiece(CALL), *ENDED], None,
    ),
    "a call in thoughts that were cut": (
        [delta(reasoning=CALL), delta(finish="length")],
        [ReasoningPiece(0, CALL), ReasoningEnded(), TurnEnded(None, "max_output_tokens")], None,
    ),
    "a call in thoughts, and an answer": (
        [delta(reasoning=CALL), delta(content="Hi", finish="stop")],
        [ReasoningPiece(0, CALL), ReasoningEnded(), TextPiece("Hi"), *ENDED], None,
    ),
    "thoughts by another name": (
        [delta(thinking="H"), delta(reasoning_details=[{"type": "reasoning.text", "text": "m"}, {"type": "x"}]),
         delta(content="Hi", finish="stop")],
        [ReasoningPiece(0, "Hm"), ReasoningEnded(), TextPiece("Hi"), *ENDED], None,
    ),
    "thoughts as parts": (
        [delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "H"}]}]),
         delta(content=[{"type": "reasoning", "summary": [{"type": "summary_text", "text": "m"}]}]),
         delta(content=[{"type": "reasoning", "text": "."}, {"text": "Hi"}], finish="stop")],
        [ReasoningPiece(0, "Hm."), ReasoningEnded(), TextPiece("Hi"), *ENDED], None,
    ),
    "a refusal": ([delta(refusal="No.", finish="stop")], [TextPiece("No."), *ENDED], None),
    "text as parts": (
        [delta(content=[{"type": "text", "text": "Hi"}, 1, {"type": "thinking"}], finish="stop")],
        [TextPiece("Hi"), *ENDED], None,
    ),
    "no stream": (
        [event(choices=[{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}])],
        [TextPiece("Hi"), *ENDED], None,
    ),
    "a call of its own": (
        [delta(content="Hi"), delta(tool_calls=[{"index": 0, "function": {"name": "f"}}]), DONE],
        [TextPiece("Hi")], "backend_not_text_only",
    ),
    "an old call of its own": ([delta(function_call={"name": "f"})], [], "backend_not_text_only"),
    "a call that is not shown": ([delta(finish="tool_calls")], [], "backend_not_text_only"),
    "no calls": ([delta(content="Hi", tool_calls=[], finish="stop")], [TextPiece("Hi"), *ENDED], None),
    "an error": (
        [delta(content="Hi"), event(error={"code": 503, "message": "Provider overloaded"})],
        [TextPiece("Hi")], "server_is_overloaded",
    ),
    "an error of llama.cpp once": ([b'error: {"code": 500, "message": "boom"}\n\n'], [], "backend_error"),
    "an error in words": ([event(error="boom")], [], "backend_error"),
    "an error by its kind": (
        [event(object="error", message="Out of memory.", code=50002), DONE], [], "backend_error",
    ),
    "no word": ([DONE], [], "backend_disconnected"),
    "a byte order mark": ([b"\xef\xbb\xbf", delta(content="Hi", finish="stop")], [TextPiece("Hi"), *ENDED], None),
    "no list of choices": ([event(choices=5)], [], "backend_error"),
    "an error without a bottom": ([b'data: {"error": %b}\n' % (b"[" * 300 + b"]" * 300)], [], "backend_error"),
    "bytes that are no characters": (
        [delta(content="caf?").replace(b"?", b"\xe9"), delta(finish="stop")], [TextPiece("caf\ufffd"), *ENDED], None,
    ),
    "a character that is cut": (
        [delta(content="?").replace(b"?", cut) for cut in (b"\xe4\xbd", b"\xa0", rb"\ud83d", rb"\ude00")]
        + [delta(finish="stop")],
        [TextPiece("你😀"), *ENDED], None,
    ),
    "an error in another encoding": ([event(error="caf?").replace(b"?", b"\xe9")], [], "backend_error"),
    "no JSON": ([b"data: <html>\n"], [], "backend_error"),
    "no object": ([b"data: 1\n"], [], "backend_error"),
    "a strange choice": ([event(choices=[1])], [], "backend_error"),
    "reasoning that SGLang counts": (
        [delta(content="Hi", finish="stop"), event(choices=[], usage={"completion_tokens": 5, "reasoning_tokens": 2})],
        [TextPiece("Hi"), MessageEnded(), TurnEnded(Usage(0, 0, 5, 2))], None,
    ),
    "strange members": (
        [event(choices=[{"delta": {"content": 1, "reasoning": {}}}], usage={"prompt_tokens": "x"}), DONE],
        [TurnEnded(Usage())], None,
    ),
    "a reason in no words": (
        [delta(content="Hi"), event(choices=[{"delta": {}, "finish_reason": ["stop"]}]), DONE],
        [TextPiece("Hi"), *ENDED], None,
    ),
    "more tokens than there are": (
        [event(choices=[], usage={"prompt_tokens": 2**64 - 1, "completion_tokens": -1}), DONE],
        [TurnEnded(Usage(2**53 - 1))], None,
    ),
    "words behind the end": ([delta(content="Hi"), DONE, delta(content="!")], [TextPiece("Hi"), *ENDED], None),
}  # fmt: skip


@pytest.mark.parametrize(("data", "events", "code"), WAYS.values(), ids=WAYS)
def test_every_way_to_end(data: list[bytes], events: list[BackendEvent], code: str | None) -> None:
    assert read(data) == (events, code)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"data: <html>\n", "something that is not JSON"),
        (b"data: 1\n", "something that is not a completion"),
        (event(choices=5), "something that is not a completion"),
        (event(choices=[{"delta": {}}] * (MOST_CHOICES + 1)), "more answers than it was asked for"),
    ],
)
def test_what_is_no_stream_is_told_in_a_sentence(data: bytes, said: str) -> None:
    stream = ChatStream("the server", reasoning=True)
    stream.receive(data)
    assert stream.failed is not None
    assert stream.failed.message == f"the server sent {said}."


INSIDE: dict[str, tuple[list[bytes], list[BackendEvent], bool | None]] = {
    "a thought": (
        [delta(content="Hm.\n</think>\n\nHi", finish="stop")],
        [ReasoningPiece(0, "Hm.\n"), ReasoningEnded(), TextPiece("Hi"), *ENDED], True,
    ),
    "an answer": (
        [delta(content="Hi", finish="stop")],
        [ReasoningPiece(0, "Hi"), ReasoningEnded(), TextPiece("Hi"), *ENDED], False,
    ),
    "cut": (
        [delta(content="Hm"), delta(finish="length")],
        [ReasoningPiece(0, "Hm"), ReasoningEnded(), TurnEnded(None, "max_output_tokens")], None,
    ),
    "told apart": (
        [delta(reasoning="Hm"), delta(content="Hi", finish="stop")],
        [ReasoningPiece(0, "Hm"), ReasoningEnded(), TextPiece("Hi"), *ENDED], False,
    ),
    "only a call ends it": (
        [delta(content=f"I read.\n{CALL}", finish="stop")],
        [ReasoningPiece(0, f"I read.\n{CALL}"), ReasoningEnded(), TextPiece(CALL), *ENDED], None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "events", "told"), INSIDE.values(), ids=INSIDE)
def test_an_answer_that_begins_inside_of_a_thought(
    data: list[bytes], events: list[BackendEvent], told: bool | None
) -> None:
    assert read(data, inside=True) == (events, None)
    reader = ChatStream("The server", inside=True)
    reader.receive(b"".join(data))
    reader.receive_eof()
    assert reader.begun_in_prompt is told


def test_a_thought_that_may_be_the_answer_is_told_when_it_is_closed() -> None:
    assert read([delta(content="Hi", finish="stop")], inside=True, sure=False) == ([TextPiece("Hi"), *ENDED], None)
    for name in ("a thought", "cut", "told apart", "only a call ends it"):
        data, events, _ = INSIDE[name]
        assert read(data, inside=True, sure=False) == (events, None)
    reader = ChatStream("The server", inside=True, sure=False)
    assert reader.receive(delta(content="Hm.")) == []
    assert reader.receive(delta(content="</think>")) == [ReasoningPiece(0, "Hm.")]


def test_a_line_without_an_end_is_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.backends.chat.stream.MAX_LINE", 100)
    assert read([b"data: " + b"x" * 60, b"x" * 60]) == ([], "backend_error")


def test_a_long_event_in_small_reads_takes_linear_time() -> None:
    """Copying what was there before would be 2 TB here, and the test's time limit would end it."""
    count = MAX_LINE // 64 - 1
    reads = [b'data: {"choices": [{"delta": {"content": "', *[b"x" * 64] * count, b'"}}]}\n', DONE]
    assert read(reads) == ([TextPiece("x" * 64 * count), *ENDED], None)


def test_so_many_answers_as_nobody_asked_for_are_no_stream() -> None:
    few, many = ([{"index": index, "delta": {"content": "x"}} for index in range(count)] for count in (16, 500_000))
    assert read([event(choices=few), DONE])[0] == [TextPiece("x"), *ENDED]
    events, code = read([event(choices=many)])
    assert (events, code) == ([], "backend_error")


def test_of_two_answers_the_first_is_read() -> None:
    second = {"content": "Bonjour", "reasoning_content": "Hm.", "tool_calls": [{"index": 0}]}
    both = [
        event(choices=[{"index": index, "delta": delta, "finish_reason": reason}])
        for first, other, reason in (({"content": "Hel"}, second, None), ({"content": "lo"}, second, "stop"))
        for index, delta in enumerate((first, other))
    ]
    assert read([*both, DONE]) == ([TextPiece("Hello"), *ENDED], None)
    assert read([delta(content="Hello"), event(choices=[{"index": 1, "delta": {"content": "!"}}]), DONE])[0] == [
        TextPiece("Hello"),
        *ENDED,
    ]
