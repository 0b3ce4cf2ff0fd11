"""Every failure of a Chat Completions server, and the answer a client gets for it.

Servers agree on little, so the sentence is looked at first, then the status. The tests of these tables quote the
servers' own words. The key is the proxy's secret: no sentence that leaves here holds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isnan
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from ...contracts import Prompt
from ...errors import TOO_LONG, BackendError
from ..answers import (
    BAD_REQUEST,
    BAD_SCHEMA,
    BY_STATUS,
    CONTEXT,
    FAILED,
    LOGIN,
    NO_MODEL,
    OVERLOAD,
    QUOTA,
    RATE,
    REFUSED,
    TIMEOUT,
    ErrorFields,
)
from .characters import read_whole
from .requests import Manner

NO_IMAGES: ErrorFields = {
    "status": 400,
    "type": "invalid_request_error",
    "code": "unsupported_value",
    "param": "input",
    "retryable": False,
}

_ADDRESS = "give --backend the whole address of a Chat Completions server, such as http://127.0.0.1:8080/v1"
# By whether the server was given none.
_GIVE_KEY = {
    True: "give it one with --backend-key-file",
    False: "put the right one into the file of --backend-key-file",
}
# Characters of a server's own sentence that are looked at, and that are repeated.
_LOOKED_AT, _REPEATED = 4000, 500
# Characters of a key that tell something of it.
_TELLING = 6
# Seconds after which a server that is still reading its model from disk is worth asking again.
_LOADING = 5.0
# Seconds. More is a mistake, or no number.
_LONGEST_WAIT = 86_400.0

_OF_SCHEMAS = re.compile(r"json.?schema|response_format|guided|grammar", re.IGNORECASE)
_OF_CONTEXT = re.compile(
    r"exceed_context_size|context_length_exceeded|context (?:size|length|window)|maximum context|prompt is too long"
    r"|too many (?:input )?tokens|context (?:the )?overflow",
    re.IGNORECASE,
)
_OF_IMAGES = re.compile(
    r"image input|mmproj|image_url|not a multimodal|\b(?:not|no) (?:\w+ ){0,4}(?:images?|vision|multimodal)\b",
    re.IGNORECASE,
)
_OF_MODELS = re.compile(
    r"\bmodel\b.{0,300}\b(?:not found|not exist|not loaded)|no models? loaded|model_not_found"
    r"|(?:unknown|invalid|no such|not a valid) model",
    re.IGNORECASE,
)
_OF_MONEY = re.compile(r"insufficient.{0,20}(?:credit|quota|balance|funds)|payment required", re.IGNORECASE)
_BY_WORDS = (
    (_OF_CONTEXT, CONTEXT),
    (_OF_IMAGES, NO_IMAGES),
    (_OF_MODELS, NO_MODEL),
    (_OF_MONEY, QUOTA),
    (re.compile(r"rate.?limit", re.IGNORECASE), RATE),
)
_BY_STATUS = {
    **BY_STATUS,
    402: QUOTA,
    404: REFUSED,
    405: REFUSED,
    408: TIMEOUT,
    409: OVERLOAD,
    502: OVERLOAD,
    529: OVERLOAD,
}


class Rejection(Struct, frozen=True):
    """What a server answered instead of an answer. `said` is its own sentence, None when it sent no JSON."""

    status: int
    said: str | None
    words: str
    """All that it says, for those who look for words in it."""
    retry_after: float | None = None


def read_rejection(status: int, body: bytes, retry_after: str | None = None) -> Rejection:
    """Reads an answer that is no stream. `retry_after` is the header."""
    try:
        value = read_whole(body)
    except ValueError:
        return Rejection(status, None, "", _seconds(retry_after))
    return replace(rejection_in(value, status), retry_after=_seconds(retry_after))


def rejection_in(value: Any, status: int | None = None) -> Rejection:  # noqa: ANN401 -- whatever a server sends
    """The rejection that a JSON value tells, which may stand in the middle of a stream and have its status in it."""
    error = value.get("error") if isinstance(value, dict) else None
    error = error or value
    fields = error if isinstance(error, dict) else {}
    said = next((text for name in ("message", "detail", "error") if isinstance(text := fields.get(name), str)), None)
    if said is None:
        said = error if isinstance(error, str) else _as_json(error)
    if status is None:
        code = fields.get("code") or fields.get("status")
        status = code if isinstance(code, int) and 400 <= code <= 599 else 500
    named = [str(word) for word in (fields.get("type"), fields.get("code")) if isinstance(word, str)]
    said = said[:_LOOKED_AT]
    return Rejection(status, said, " ".join([*named, said])[:_LOOKED_AT])


def _as_json(value: Any) -> str:  # noqa: ANN401 -- whatever a server sends
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # of what it reads it does not write all: nothing deeper than 254 levels
        return "what is nested too deeply"


def failure(rejection: Rejection, server: str, *, held: bool = False, key: str | None = None) -> BackendError:
    """The client's answer to `rejection` of `server`, which was asked with a schema if `held`."""
    if 300 <= rejection.status < 400:
        return BackendError(
            f"{server} redirects its clients to another address", remedy="give --backend that address", **REFUSED
        )
    if rejection.said is None:
        return _no_json(rejection, server, key)
    answer = _answer(rejection, held=held)
    said = rejection.said if key is None else _without(key, rejection.said)
    said = " ".join(said.split())[:_REPEATED]
    remedy: str | None = None
    match answer:
        case _ if answer is CONTEXT:
            said = f"{TOO_LONG} {server} says: {said}"
        case _ if answer is LOGIN:
            said, remedy = _wants_key(server, key, f" and says: {said.rstrip('.')}"), _GIVE_KEY[key is None]
        case _ if answer is REFUSED:
            said, remedy = f"{server} says: {said.rstrip('.')}", _ADDRESS
        case _:
            said = f"{server} says: {said}"
    wait = rejection.retry_after
    if wait is None and answer is OVERLOAD:
        wait = _LOADING
    return BackendError(said, retry_after=wait, remedy=remedy, **answer)


def _wants_key(server: str, key: str | None, said: str = "") -> str:
    return f"{server} wants a key{said}" if key is None else f"{server} refuses the key{said}"


def _answer(rejection: Rejection, *, held: bool) -> ErrorFields:
    if held and rejection.status in {400, 422, 500} and _OF_SCHEMAS.search(rejection.words):
        return BAD_SCHEMA
    # What is said of a key or of a limit may be about anything.
    if rejection.status not in {401, 403, 429}:
        for words, answer in _BY_WORDS:
            if words.search(rejection.words):
                return answer
    elif rejection.status == 429 and _OF_MONEY.search(rejection.words):
        return QUOTA
    return _BY_STATUS.get(rejection.status) or (BAD_REQUEST if 400 <= rejection.status < 500 else FAILED)


def _without(key: str, said: str) -> str:
    """`said` with the key masked, also where only its beginning stands: servers repeat so much of one they refuse."""
    masked: list[str] = []
    least, at = min(len(key), _TELLING), 0
    while (found := said.find(key[:least], at)) >= 0:
        masked += (said[at:found], "***")
        at = found + next(length for length in range(len(key), 0, -1) if said.startswith(key[:length], found))
    return "".join((*masked, said[at:]))


def _no_json(rejection: Rejection, server: str, key: str | None) -> BackendError:
    status = rejection.status
    if status in {429, 502, 503, 504}:
        return BackendError(f"{server} answers {status}.", retry_after=rejection.retry_after, **_BY_STATUS[status])
    if status in {401, 403}:
        return BackendError(_wants_key(server, key), remedy=_GIVE_KEY[key is None], **LOGIN)
    what = f"answers {status} without JSON" if status >= 400 else "answers without JSON"
    return BackendError(f"{server} {what}", remedy=_ADDRESS, **REFUSED)


def _seconds(retry_after: str | None) -> float | None:
    """The header, which is a number or a date. No more than `_LONGEST_WAIT`."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError, OverflowError):
            return None
    return None if isnan(seconds) else min(max(0.0, seconds), _LONGEST_WAIT)


def _without_effort(manner: Manner, effort: str | None) -> Manner:
    if effort is None or effort in manner.efforts:
        return manner
    return replace(manner, efforts=(*manner.efforts, effort))


# What a server would not take -> how it may take the same prompt. Each is tried once, and remembered if it helped.
_CONCESSIONS: tuple[tuple[re.Pattern[str], Callable[[Manner, Prompt], Manner]], ...] = (
    (
        re.compile(
            r"roles? must alternate|system role|unexpected role|jinja|chat.?template|raise_exception", re.IGNORECASE
        ),
        lambda manner, _: replace(manner, flat=True),
    ),
    (
        re.compile(r"reasoning.?effort|reasoning value|not support (?:thinking|reasoning)", re.IGNORECASE),
        lambda manner, prompt: _without_effort(manner, prompt.effort),
    ),
    (re.compile("grammar", re.IGNORECASE), lambda manner, _: replace(manner, grammar=False)),
)


def concession(rejection: Rejection, manner: Manner, prompt: Prompt, *, held: bool) -> Manner | None:
    """How else to ask `prompt`; None when there is nothing that this rejection is about."""
    if rejection.status not in {400, 422, 500} or _answer(rejection, held=held) in (BAD_SCHEMA, CONTEXT):
        return None
    for words, change in _CONCESSIONS:
        if words.search(rejection.words) and (other := change(manner, prompt)) != manner:
            return other
    return None
