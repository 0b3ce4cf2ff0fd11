"""The frames that only a WebSocket has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponsesServerEvent
from pydantic import TypeAdapter

from proxy.errors import ApiError, RequestError
from proxy.wire.responses.frames import error_frame, in_stream, steer_failed

EVENT: TypeAdapter[Any] = TypeAdapter(ResponsesServerEvent)


@given(st.text(), st.integers(400, 599), st.none() | st.text(min_size=1), st.none() | st.floats(0, 1e6))
def test_every_error_has_a_status_and_a_code(message: str, status: int, code: str | None, retry: float | None) -> None:
    frame = error_frame(ApiError(message, status=status, code=code, retry_after=retry))
    EVENT.validate_python(frame)
    error = frame["error"]
    assert isinstance(error, dict)
    assert (frame["status"], error["code"]) == (status, code or "server_error")
    assert ("headers" in frame) == (retry is not None)


def test_only_what_has_a_lane_names_it() -> None:
    assert in_stream({"type": "x"}, None) == {"type": "x"}
    assert in_stream({"type": "x"}, "a") == {"type": "x", "stream_id": "a"}


def test_steering_gives_its_input_back() -> None:
    frame = steer_failed({"type": "response.steer", "previous_response_id": "resp_1", "input": [{"role": "user"}]})
    assert frame == {
        "type": "response.steer.failed",
        "sequence_number": 0,
        "error": {
            "type": "invalid_request_error",
            "code": "steering_not_supported",
            "message": "A running response cannot be steered here: "
            "send the input with 'response.create' when it is over.",
        },
        "steer": {"previous_response_id": "resp_1", "input": [{"role": "user"}]},
    }
    with pytest.raises(RequestError):
        steer_failed({"type": "response.steer", "previous_response_id": "resp_1"})
