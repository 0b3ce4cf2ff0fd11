"""Errors in Anthropic's words."""

from __future__ import annotations

import pytest

from proxy.errors import TOO_LONG, BackendError, RequestError
from proxy.wire.anthropic.errors import UNTHREADED, anthropic_error, error_body


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"), (401, "authentication_error"), (402, "billing_error"),
        (403, "permission_error"), (404, "not_found_error"), (405, "invalid_request_error"),
        (413, "request_too_large"), (415, "invalid_request_error"), (421, "invalid_request_error"),
        (422, "invalid_request_error"), (429, "rate_limit_error"), (500, "api_error"), (502, "api_error"),
        (504, "timeout_error"), (529, "overloaded_error"),
    ],
)  # fmt: skip
def test_each_status_has_its_type(status: int, kind: str) -> None:
    error = RequestError("No.", status=status)
    assert error_body(error, "req_1") == {
        "type": "error", "error": {"type": kind, "message": "No."}, "request_id": "req_1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BackendError("Full.", status=503, code="server_is_overloaded", retry_after=3), 529),
        (BackendError("None.", status=400, code="model_not_found"), 404),
        (BackendError("Slow.", status=429, retry_after=3), 429),
        (BackendError("Gone."), 502),
    ],
)
def test_the_backends_errors_have_the_status_that_clients_know(error: BackendError, status: int) -> None:
    told = anthropic_error(error)
    assert (told.status, told.message, told.retry_after) == (status, error.message, error.retry_after)
    assert told is not error


def test_a_thread_that_is_not_kept_is_told_in_the_code_by_which_tool_runners_go_on_without_one() -> None:
    told = error_body(RequestError("No.", code=UNTHREADED, param="thread"), "req_1")
    assert told["error"] == {
        "type": "invalid_request_error",
        "message": "No.",
        "details": {"error_code": "thread_unsupported_request", "unsupported": ["thread"]},
    }


def test_a_conversation_that_is_too_long_is_told_in_the_words_by_which_clients_compact() -> None:
    told = anthropic_error(BackendError(TOO_LONG, status=400, code="context_length_exceeded"))
    assert told.message.startswith("prompt is too long")
    assert told.status == 400
