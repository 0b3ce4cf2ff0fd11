"""Responses over WebSocket: the frames that SSE does not have.

Events are the same objects as over SSE. A fault before a Response has begun is an `error` frame with the status
that HTTP would have: clients skip one without it. Source: Open Responses 2026-04-24 (WebSocket
mode), OpenAI's client 3.57.
"""

from __future__ import annotations

from ...errors import ApiError
from ..builder import WireEvent
from ..json_body import JsonObject
from ..reader import Reader

# What a client may send and is answered.
CLIENT_FRAMES = ("response.create", "response.steer")

# What needs no answer; it is codex that sends it.
SILENT_FRAMES = frozenset({"response.processed"})

# Members of `response.create` that are no parameters of the request: how it travels says what they would.
ENVELOPE = frozenset({"type", "stream_id", "stream", "stream_options"})


def error_frame(error: ApiError) -> WireEvent:
    """The `code` is always a string: who reads it matches it."""
    told = {**error.error_object(), "code": error.code or error.type}
    if headers := dict(error.headers()):
        return {"type": "error", "status": error.status, "error": {**told, "headers": headers}, "headers": headers}
    return {"type": "error", "status": error.status, "error": told}


def in_stream(event: WireEvent, stream_id: str | None) -> WireEvent:
    return event if stream_id is None else {**event, "stream_id": stream_id}


def steer_failed(message: JsonObject) -> WireEvent:
    """The answer to `response.steer`: the input goes back to its client, for it was not used. Raises `RequestError`."""
    steer = Reader(message)
    previous = steer.required_string("previous_response_id")
    told = {
        "type": "invalid_request_error",
        "code": "steering_not_supported",
        "message": "A running response cannot be steered here: send the input with 'response.create' when it is over.",
    }
    return {
        "type": "response.steer.failed",
        "sequence_number": 0,
        "error": told,
        "steer": {"previous_response_id": previous, "input": steer.require("input")},
    }
