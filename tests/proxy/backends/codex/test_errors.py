from __future__ import annotations

import pytest

from proxy.backends.codex.errors import BY_KIND, Cut, rpc_failure, turn_failure
from proxy.errors import LONGEST_SENTENCE, BackendError
from proxy.rpc import RpcAnswerError, RpcClosedError, RpcDeadlineError, RpcError, RpcObject
from tests.codex_schema import protocol_of
from tests.support.codex_programs import TestProgram, installed_programs

# codexErrorInfo and message as 0.89 and 0.171 send them, status and code of the answer.
FAILURES: list[tuple[object, str, int, str]] = [
    ("contextWindowExceeded", "Codex ran out of room in the model's context window.", 400, "context_length_exceeded"),
    ("usageLimitExceeded", "You've hit your usage limit.", 429, "insufficient_quota"),
    ("rateLimitExceeded", "rate limit exceeded: Please try again in 11.054s.", 429, "rate_limit_exceeded"),
    ("serverOverloaded", "Selected model is at capacity.", 503, "server_is_overloaded"),
    ("unauthorized", "", 502, "backend_auth"),
    ("modelNotFound", "model gone", 400, "model_not_found"),
    ("badRequest", "bad", 400, "invalid_prompt"),
    ("cyberPolicy", "no", 400, "invalid_prompt"),
    ("bioPolicy", "no", 400, "invalid_prompt"),
    ("misalignmentPolicyViolation", "no", 400, "invalid_prompt"),
    ("flexUnavailable", "Flex capacity unavailable.", 429, "flex_unavailable"),
    ("policyCapacityUnavailable", "policy-restricted capacity unavailable", 503, "policy_capacity_unavailable"),
    ("inferenceHookDenied", "Your workspace does not want this.", 400, "inference_hook_denied"),
    ("badRequest", '{"detail": "The model requires a newer version of Codex."}', 400, "newer_codex_required"),
    ("other", '{"detail": "Instructions are not valid"}', 400, "invalid_prompt"),
    ("internalServerError", "We're currently experiencing high demand.", 502, "backend_error"),
    (
        {"httpConnectionFailed": {"httpStatusCode": 401}},
        "unexpected status 401 Unauthorized: no key",
        502,
        "backend_auth",
    ),
    (
        {"httpConnectionFailed": {"httpStatusCode": None}},
        "Connection failed: error sending request",
        502,
        "backend_error",
    ),
    (
        {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
        "exceeded retry limit, last status: 429 Too Many Requests",
        429,
        "rate_limit_exceeded",
    ),
    (
        "other",
        '{"error": {"message": "Bad thing", "type": "invalid_request_error", "code": null}}',
        400,
        "invalid_prompt",
    ),
    ("other", "unexpected status 401 Unauthorized: ", 502, "backend_auth"),
    (
        "other",
        'unexpected status 404 Not Found: {"error": {"message": "model gone", "code": "model_not_found"}}, url: http://127.0.0.1:1/v1/responses',
        400,
        "model_not_found",
    ),
    (
        "other",
        'unexpected status 503 Service Unavailable: {"error": {"message": "x", "code": "server_is_overloaded"}}, url: http://h/v1',
        503,
        "server_is_overloaded",
    ),
    (
        "other",
        "stream disconnected before completion: Rate limit reached for x. Please try again in 11.054s.",
        429,
        "rate_limit_exceeded",
    ),
    ("other", "Invalid prompt: your prompt was flagged.", 400, "invalid_prompt"),
    ("other", "", 502, "backend_error"),
    ("unheardOf", "Something new.", 502, "backend_error"),
    ("other", "stream disconnected before completion: idle timeout waiting for SSE", 504, "backend_timeout"),
    ("other", "stream disconnected before completion: stream closed before response.completed", 502, "backend_error"),
    ("neverHeardOf", "?", 502, "backend_error"),
    ({"neverHeardOf": None}, "?", 502, "backend_error"),
    (None, "", 502, "backend_error"),
    (17, "?", 502, "backend_error"),
]
# They say where it failed. What it means to a client is in their status and their sentence.
OF_ANY_CAUSE = {
    "activeTurnNotSteerable", "httpConnectionFailed", "internalServerError", "other", "responseStreamConnectionFailed",
    "responseStreamDisconnected", "responseTooManyFailedAttempts", "sandboxError", "threadRollbackFailed",
    "tooManyDenials",
}  # fmt: skip
SUPPORTED = [program for program in installed_programs() if program.supported]


@pytest.mark.parametrize(("info", "message", "status", "code"), FAILURES)
def test_a_failed_turn_has_its_answer(info: object, message: str, status: int, code: str) -> None:
    failure = turn_failure({"message": message, "codexErrorInfo": info})
    assert isinstance(failure, BackendError)
    assert (failure.status, failure.code) == (status, code)
    assert failure.message
    assert "url" not in failure.message


@pytest.mark.parametrize("program", SUPPORTED, ids=lambda program: program.version)
def test_every_kind_of_the_supported_programs_is_known(program: TestProgram) -> None:
    assert program.path is not None
    assert protocol_of(program.path).names["kinds of errors"] - BY_KIND.keys() - OF_ANY_CAUSE == set()


def test_a_failure_without_an_error_is_a_failure() -> None:
    failure = turn_failure(None)
    assert isinstance(failure, BackendError)
    assert failure.status == 502


def test_the_sentence_is_taken_out_of_the_upstreams_body() -> None:
    failure = turn_failure({"message": FAILURES[21][1], "codexErrorInfo": "other"})
    assert isinstance(failure, BackendError)
    assert failure.message == "model gone"


def test_when_to_try_again_is_passed_on() -> None:
    failure = turn_failure({"message": "Please try again in 11.054s.", "codexErrorInfo": "rateLimitExceeded"})
    assert isinstance(failure, BackendError)
    assert failure.headers() == {"retry-after": "11"}


@pytest.mark.parametrize(
    "message",
    [
        "Incomplete response returned, reason: content_filter",
        "stream disconnected before completion: Incomplete response returned, reason: content_filter",
    ],
)
def test_a_cut_answer_is_no_failure(message: str) -> None:
    assert turn_failure({"message": message, "codexErrorInfo": "other"}) == Cut("content_filter")


def test_a_missing_login_is_not_the_clients_fault() -> None:
    failure = turn_failure({"message": "", "codexErrorInfo": "unauthorized"})
    assert isinstance(failure, BackendError)
    assert "tagcall login" in failure.message
    assert failure.headers() == {"x-should-retry": "false"}


@pytest.mark.parametrize("status", [99, 200, 1000, "503", None])
def test_a_recorded_status_that_is_none_of_an_error_is_that_of_a_failure(status: object) -> None:
    failure = turn_failure({"message": "m", "codexErrorInfo": {"recorded": {"status": status, "code": "x"}}})
    assert isinstance(failure, BackendError)
    assert (failure.status, failure.code) == (502, "x")


@pytest.mark.parametrize("member", ["type", "code", "param", "retry_after", "retryable"])
@pytest.mark.parametrize("value", [["x"], {"a": 1}])
def test_a_recorded_member_of_another_kind_is_passed_over(member: str, value: object) -> None:
    failure = turn_failure({"message": "m", "codexErrorInfo": {"recorded": {"status": 429, member: value}}})
    assert isinstance(failure, BackendError)
    assert failure.status == 429
    assert failure.headers() == {}
    assert failure.error_object() == {"message": "m", "type": "server_error", "param": None, "code": None}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ('{"error": {"message": null}}', "The backend failed without a reason."),
        ('unexpected status 502 Bad Gateway: {"error": {"message": null}}', "The upstream answered 502."),
    ],
)
def test_an_error_that_says_nothing_is_told_in_words(message: str, said: str) -> None:
    failure = turn_failure({"message": message, "codexErrorInfo": "other"})
    assert isinstance(failure, BackendError)
    assert failure.message == said


def test_a_long_error_is_read_in_linear_time() -> None:
    """To look for each colon to the end would take hours, and the test's time limit would end it."""
    failure = turn_failure({"message": "unexpected status 500 " * 200_000, "codexErrorInfo": "other"})
    assert isinstance(failure, BackendError)
    assert failure.status == 502


def test_a_page_in_place_of_a_sentence_is_not_told_to_its_end() -> None:
    page = "<html>" + "<p>Blocked</p>" * 10_000
    failure = turn_failure({"message": f"unexpected status 502 Bad Gateway: {page}", "codexErrorInfo": "other"})
    assert isinstance(failure, BackendError)
    assert failure.message == f"{page[:LONGEST_SENTENCE]}…"


def test_a_recorded_error_is_read_by_the_members_it_has() -> None:
    info = {"recorded": {"status": 503, "code": "server_is_overloaded", "mood": "bad"}}
    failure = turn_failure({"message": "Too busy.", "codexErrorInfo": info})
    assert isinstance(failure, BackendError)
    assert (failure.message, failure.status, failure.code) == ("Too busy.", 503, "server_is_overloaded")


TOO_LARGE: RpcObject = {"input_error_code": "input_too_large", "max_chars": 1048576, "actual_chars": 1048577}


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RpcAnswerError(-32602, "Input exceeds the maximum length.", TOO_LARGE), 400, "context_length_exceeded"),
        (RpcAnswerError(-32001, "overloaded"), 503, "server_is_overloaded"),
        (RpcAnswerError(-32600, "thread not found"), 502, "backend_error"),
        (RpcDeadlineError("no answer"), 504, "backend_timeout"),
        (RpcClosedError("exit status 1"), 502, "backend_disconnected"),
        (RpcError("?"), 502, "backend_error"),
    ],
)
def test_a_request_without_a_result_has_its_answer(error: RpcError, status: int, code: str) -> None:
    failure = rpc_failure(error, "start a turn")
    assert (failure.status, failure.code) == (status, code)
