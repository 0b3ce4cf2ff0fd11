"""What is left of an answer whose process has gone is what its builder would have ended with."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from proxy.contracts import AnswerText, Compacted, ToolCallArguments, ToolCallEnded, ToolCallStarted, TurnEvent
from proxy.wire.responses.left_output import left_output
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder
from proxy.wire.sse import encode_typed

TOOLS: Any = [{"type": "function", "name": "read_note"}, {"type": "custom", "name": "patch"}]
BEGINNINGS: list[TurnEvent] = [
    ToolCallStarted("call_1", "read_note"), ToolCallStarted("call_2", "patch"), ToolCallEnded(), AnswerText("data: "),
    AnswerText("[DONE]\n\n"), AnswerText("\u2028h\u00e9llo"), Compacted("so far", whole=True),
]  # fmt: skip


@given(events=st.lists(st.sampled_from(BEGINNINGS), max_size=8))
def test_it_is_what_a_cancelled_response_ends_with(events: list[TurnEvent]) -> None:
    builder = ResponsesBuilder(parse_responses_request({"model": "m", "input": "x", "tools": TOOLS}))
    told = builder.start()
    for event in events:
        told += builder.handle(event)
        if isinstance(event, ToolCallStarted):
            told += builder.handle(ToolCallArguments('{"input": "h\u00e9'))
    pieces = [piece for one in told for piece in encode_typed([one])]
    builder.cancel()
    assert left_output(pieces) == orjson.loads(orjson.dumps(builder.response["output"]))


def test_nothing_is_left_of_what_told_nothing() -> None:
    assert left_output([]) == []
