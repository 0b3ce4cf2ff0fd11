"""The answer to the client when a backend fails: the fields of each kind of error, whatever the backend.

The login at a model's server belongs to the proxy, so trouble with it is never a client's 401.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from ..errors import BackendError


class ErrorFields(TypedDict, total=False):
    """The arguments of a `BackendError` beside its message."""

    status: int
    type: str
    code: str
    param: str
    retryable: bool


CONTEXT: ErrorFields = {
    "status": 400,
    "type": "invalid_request_error",
    "code": "context_length_exceeded",
    "param": "input",
    "retryable": False,
}
BAD_SCHEMA: ErrorFields = {
    "status": 400,
    "type": "invalid_request_error",
    "code": "invalid_json_schema",
    "param": "text.format.schema",
    "retryable": False,
}
BAD_REQUEST: ErrorFields = {
    "status": 400,
    "type": "invalid_request_error",
    "code": "invalid_prompt",
    "retryable": False,
}
NO_MODEL: ErrorFields = {
    "status": 400,
    "type": "invalid_request_error",
    "code": "model_not_found",
    "param": "model",
    "retryable": False,
}
# The model's service has no room for this kind of request: it may have later, or without what was asked for besides.
NO_FLEX: ErrorFields = {"status": 429, "type": "rate_limit_error", "code": "flex_unavailable", "param": "service_tier"}
NO_CAPACITY: ErrorFields = {"status": 503, "code": "policy_capacity_unavailable"}
DENIED: ErrorFields = {
    "status": 400,
    "type": "invalid_request_error",
    "code": "inference_hook_denied",
    "retryable": False,
}
TOO_OLD: ErrorFields = {
    "status": 400,
    "type": "invalid_request_error",
    "code": "newer_codex_required",
    "param": "model",
    "retryable": False,
}
QUOTA: ErrorFields = {"status": 429, "type": "insufficient_quota", "code": "insufficient_quota", "retryable": False}
RATE: ErrorFields = {"status": 429, "type": "rate_limit_error", "code": "rate_limit_exceeded"}
LOGIN: ErrorFields = {"status": 502, "code": "backend_auth", "retryable": False}
OVERLOAD: ErrorFields = {"status": 503, "code": "server_is_overloaded"}
TIMEOUT: ErrorFields = {"status": 504, "code": "backend_timeout"}
FAILED: ErrorFields = {"status": 502, "code": "backend_error"}
REFUSED: ErrorFields = {"status": 502, "code": "backend_error", "retryable": False}
NOT_TEXT_ONLY: ErrorFields = {"status": 502, "code": "backend_not_text_only", "retryable": False}
DISCONNECTED: ErrorFields = {"status": 502, "code": "backend_disconnected"}

BY_STATUS: Mapping[int, ErrorFields] = {
    400: BAD_REQUEST,
    401: LOGIN,
    403: LOGIN,
    404: NO_MODEL,
    413: CONTEXT,
    422: BAD_REQUEST,
    429: RATE,
    503: OVERLOAD,
    504: TIMEOUT,
}


def unavailable(problem: str, retry_after: float | None = None, remedy: str | None = None) -> BackendError:
    """The answer to work for which there is no backend now. `problem` is a sentence, or has a remedy."""
    return BackendError(
        problem,
        status=503,
        code="backend_unavailable",
        retry_after=retry_after,
        elsewhere=True,
        remedy=remedy,
    )


def shutting_down() -> BackendError:
    """The answer to work that the end of the proxy has ended, or that comes too late."""
    return unavailable("The proxy is shutting down.")
