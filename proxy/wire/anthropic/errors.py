"""Errors as Anthropic writes them: a type for each status, and the id of the request in the body."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from ...errors import TOO_LONG, ApiError
from ..sse import encode_typed
from ..wire_format import WireFormat

# Anthropic's status of a server that has too much to do, or none to do it with.
OVERLOADED = 529

_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}

# Clients compact a conversation when they read these words.
_TOO_LONG = "prompt is too long: it exceeds the context window of this model."

# By this code the SDKs' tool runners know to go on by sending the whole conversation.
UNTHREADED = "thread_unsupported_request"

# What errors of the backend have for another status here, by their code and by their status.
_STATUS_OF_CODE: Mapping[str, int] = {"model_not_found": 404}
_STATUS_OF_STATUS: Mapping[int, int] = {503: OVERLOADED}


def anthropic_error(error: ApiError) -> ApiError:
    """`error` of a turn, with the status and in the words that clients of Anthropic know."""
    told = copy.copy(error)
    told.status = _STATUS_OF_CODE.get(error.code or "", _STATUS_OF_STATUS.get(error.status, error.status))
    told.message = error.message.replace(TOO_LONG, _TOO_LONG)
    return told


def error_body(error: ApiError, request_id: str) -> Mapping[str, object]:
    """The body of an error, and the event that ends a stream."""
    other = "api_error" if error.status >= 500 else "invalid_request_error"
    told: dict[str, object] = {"type": _TYPES.get(error.status, other), "message": error.message}
    if error.code == UNTHREADED:
        told["details"] = {"error_code": UNTHREADED, "unsupported": ["thread"]}
    return {"type": "error", "error": told, "request_id": request_id}


# Nothing stands behind the last event: there are clients that take it for one more.
ANTHROPIC = WireFormat(encode_typed, error_body, end=b"", id_header="request-id")
