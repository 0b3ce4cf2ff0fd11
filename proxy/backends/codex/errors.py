"""Every failure codex can report, and the answer a client gets for it.

A failed turn carries `codexErrorInfo`: a name, or an object with one name and an HTTP status. Older versions
say `other` for most, so the message is read as well. The login belongs to the proxy: what the upstream says
about it is never a client's 401.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct

from ...advice import command
from ...errors import TOO_LONG, BackendError
from ...rpc import (
    OVERLOADED,
    RpcAnswerError,
    RpcBusyError,
    RpcClosedError,
    RpcDeadlineError,
    RpcError,
    RpcObject,
)
from ..answers import (
    BAD_REQUEST,
    BAD_SCHEMA,
    BY_STATUS,
    CONTEXT,
    DENIED,
    DISCONNECTED,
    FAILED,
    LOGIN,
    NO_CAPACITY,
    NO_FLEX,
    NO_MODEL,
    OVERLOAD,
    QUOTA,
    RATE,
    REFUSED,
    TIMEOUT,
    TOO_OLD,
    ErrorFields,
)
from .versions import TAKE_A_NEWER_ONE

# Characters of one turn's text input; codex 0.110 and later refuse more.
MAX_INPUT = 1_048_576

BY_KIND: Mapping[str, ErrorFields] = {
    "contextWindowExceeded": CONTEXT,
    "usageLimitExceeded": QUOTA,
    "sessionBudgetExceeded": QUOTA,
    "rateLimitExceeded": RATE,
    "serverOverloaded": OVERLOAD,
    "unauthorized": LOGIN,
    "modelNotFound": NO_MODEL,
    "badRequest": BAD_REQUEST,
    "cyberPolicy": BAD_REQUEST,
    "bioPolicy": BAD_REQUEST,
    "misalignmentPolicyViolation": BAD_REQUEST,
    "flexUnavailable": NO_FLEX,
    "policyCapacityUnavailable": NO_CAPACITY,
    "inferenceHookDenied": DENIED,
}
# For messages under `other`, which is what 0.89 says of nearly everything.
BY_MESSAGE: tuple[tuple[re.Pattern[str], ErrorFields], ...] = (
    (re.compile(r"rate limit", re.IGNORECASE), RATE),
    (re.compile(r"idle timeout waiting for SSE"), TIMEOUT),
    (re.compile(r"(?:access|refresh) token (?:could not|is|was|has)|sign in again", re.IGNORECASE), LOGIN),
    (re.compile(r"exceeds? the context window|maximum context length"), CONTEXT),
    (re.compile(r"invalid schema for response_format", re.IGNORECASE), BAD_SCHEMA),
)
BY_UPSTREAM_CODE: Mapping[str, ErrorFields] = {
    "context_length_exceeded": CONTEXT,
    "invalid_json_schema": BAD_SCHEMA,
    "insufficient_quota": QUOTA,
    "rate_limit_exceeded": RATE,
    "model_not_found": NO_MODEL,
    "server_is_overloaded": OVERLOAD,
}

NO_REASON = "The backend failed without a reason."

# What a recorded error has beside its message, and what each may be.
RECORDED_FIELDS: Mapping[str, tuple[type, ...]] = {
    "status": (int,),
    "type": (str,),
    "code": (str,),
    "param": (str,),
    "retry_after": (int, float),
    "retryable": (bool,),
}

# How codex begins when it speaks of itself or of the connection. What it says otherwise under `other` is what the
# service said of a request it would not serve.
_OWN_WORDS = re.compile(
    r"agent loop|codex|connection|environment|error|exceeded retry|fatal|interrupted|internal|io |json|no thread"
    r"|reconnecting|refresh|request timed|sandbox|session|spawn|stream|the backend failed|thread|timeout|turn"
    r"|unexpected|unsupported",
    re.IGNORECASE,
)
_INCOMPLETE = re.compile(r"Incomplete response returned, reason: (\w+)")
_STATUS = re.compile(r"unexpected status (\d{3})[^:]{0,200}: ?(.*)", re.DOTALL)
_LAST_STATUS = re.compile(r"last status: (\d{3})")
_URL = re.compile(r",? {0,2}(?:url: {0,2}|for url {0,2})\(?\S+")
# Whatever kind and status it comes with: the service means the program that asks, not the request.
_TOO_OLD = re.compile(r"requires a newer version of Codex", re.IGNORECASE)
_TRY_AGAIN = re.compile(r"try again in (\d{1,9}(?:\.\d+)?) ?(ms|s)\b")


def not_logged_in(log_in: str | None = None) -> BackendError:
    """`log_in` is what a person does about it, None where the login is ours."""
    return BackendError("codex is not logged in", elsewhere=True, remedy=log_in or _log_in_here(), **LOGIN)


def _log_in_here() -> str:
    return f"run {command('login')}"


class Cut(Struct, frozen=True):
    """The answer was cut by the model's side, which is no error: `max_output_tokens` or `content_filter`."""

    reason: str


def turn_failure(told: object, log_in: str | None = None) -> BackendError | Cut:
    """What `turn.error` of a failed turn means: an object with a `message`, nothing, or what nobody expects.

    `log_in` as in `not_logged_in`.
    """
    error: Mapping[str, Any] = told if isinstance(told, dict) else {"message": told}
    message = str(error.get("message") or NO_REASON)
    match error.get("codexErrorInfo"):
        case {"recorded": dict(fields)}:
            # Fixtures are edited by hand: a member of another name must not leave the turn without its end, nor a
            # status of no error, or a member of another kind, the answer without its form.
            known = {
                name: fields[name] for name, kinds in RECORDED_FIELDS.items() if isinstance(fields.get(name), kinds)
            }
            if known.get("status") not in range(400, 600):
                known["status"] = FAILED["status"]
            return BackendError(message, **known)
        case _:
            pass
    if cut := _INCOMPLETE.search(message):
        return Cut(cut[1])
    kind, status = _kind(error.get("codexErrorInfo"))
    if status is None and (found := _LAST_STATUS.search(message)):
        status = int(found[1])
    if found := _STATUS.search(message):
        status, message = status or int(found[1]), found[2]
    message, upstream_code = _unwrap(message)
    answer = (
        (TOO_OLD if _TOO_OLD.search(message) else None)
        or BY_KIND.get(kind)
        or BY_UPSTREAM_CODE.get(upstream_code or "")
        or (BY_STATUS.get(status) if status is not None else None)
        or next((answer for pattern, answer in BY_MESSAGE if pattern.search(message)), None)
        or (BAD_REQUEST if status is None and _is_refusal(kind, message, upstream_code) else FAILED)
    )
    if answer is CONTEXT:
        message = TOO_LONG
    if answer is TOO_OLD:
        said = message.rstrip(".")
        return BackendError(f"codex is too old for this model ({said})", remedy=TAKE_A_NEWER_ONE, **answer)
    if answer is LOGIN:
        said = message.rstrip(".") or f"status {status}"
        return BackendError(f"The upstream refused codex's login ({said})", remedy=log_in or _log_in_here(), **answer)
    if not message:
        message = NO_REASON if status is None else f"The upstream answered {status}."
    return BackendError(message, retry_after=_retry_after(message), **answer)


def turn_error(failure: BackendError | Cut) -> RpcObject:
    """A `turn.error` that `turn_failure` reads as this failure.

    codex's own kinds leave to its sentence what it means, and some sentences are ours: a recorded error says it all.
    """
    info: str | RpcObject
    if isinstance(failure, Cut):
        message, info = f"Incomplete response returned, reason: {failure.reason}", "other"
    else:
        message, info = failure.message, {"recorded": {name: getattr(failure, name) for name in RECORDED_FIELDS}}
    return {"message": message, "codexErrorInfo": info, "additionalDetails": None}


def _is_refusal(kind: str, message: str, upstream_code: str | None) -> bool:
    """Whether this is the service's own answer to a bad request: its body, or the sentence out of it."""
    return upstream_code is not None or (kind == "other" and not _OWN_WORDS.match(message))


def _kind(info: object) -> tuple[str, int | None]:
    """The error's name, and the HTTP status it may carry."""
    match info:
        case str(name):
            return name, None
        case dict() if info:
            name, detail = next(iter(info.items()))
            status = detail.get("httpStatusCode") if isinstance(detail, dict) else None
            return str(name), status if isinstance(status, int) else None
        case _:
            return "", None


def _unwrap(message: str) -> tuple[str, str | None]:
    """The sentence inside an error body, and its code ("" when it has none); None when it is no such body."""
    plain = _URL.sub("", message).strip()
    try:
        body = orjson.loads(plain)
        if isinstance(detail := body.get("detail"), str):  # as ChatGPT's service writes it
            return detail, ""
        error = body["error"]
        return str(error["message"] or ""), str(error.get("code") or "")
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        return plain, None


def _retry_after(message: str) -> float | None:
    found = _TRY_AGAIN.search(message)
    return None if found is None else float(found[1]) / (1000 if found[2] == "ms" else 1)


def rpc_failure(error: RpcError, while_: str) -> BackendError:
    """What a request without a result means, when codex was asked to do `while_` ("start a turn")."""
    match error:
        case RpcAnswerError(data={"input_error_code": "input_too_large"}):
            return too_long()
        case RpcAnswerError(code=code) if code == OVERLOADED:
            return BackendError("codex has too much to do.", retry_after=1, elsewhere=True, **OVERLOAD)
        case RpcAnswerError(message=message):
            return BackendError(f"codex would not {while_}: {message}", **REFUSED)
        case RpcDeadlineError():
            return BackendError(f"codex did not {while_}: {error}", **TIMEOUT)
        case RpcBusyError():
            return BackendError(f"Too many requests wait for codex to {while_}.", retry_after=1, elsewhere=True, **RATE)
        case RpcClosedError():
            # Why is for the log: a child's last words are not for clients.
            return BackendError(f"The app-server ended before it could {while_}.", **DISCONNECTED)
        case _:
            return BackendError(f"codex failed to {while_}: {error}", **FAILED)


def too_long(characters: int | None = None) -> BackendError:
    given = "" if characters is None else f", and this one has {characters:,}"
    return BackendError(f"{TOO_LONG} The backend takes {MAX_INPUT:,} characters in one request{given}.", **CONTEXT)


def rejected(message: str) -> BackendError:
    """codex takes the thread but not this turn: something in the client's request is not to its taste."""
    return BackendError(f"codex refused the request: {message}", **BAD_REQUEST)
