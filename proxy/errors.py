"""What can go wrong, each error with the answer the client gets for it.

TagcallError
├── ApiError            has an HTTP status and an OpenAI error object
│   ├── RequestError    the client's request cannot be served: 4xx, before any backend work
│   ├── BackendError    the backend failed, refused or vanished
│   │   └── ModelError  the model did not do what was asked of it, also when asked again
│   └── StoreError      what is stored cannot be reached
└── UsageError          the person at the terminal must change something: one sentence, exit 2
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Self, TypedDict

# OpenAI's words, by which clients are seen to know that a conversation is too long, whatever the code says.
TOO_LONG = "Your input exceeds the context window of this model. Please adjust your input and try again."

# Characters of a sentence: behind these it is a page of somebody's proxy, or a trace, which nobody reads to its end.
LONGEST_SENTENCE = 2_000

# The header of an answer that a balancer may pass on, for another server can serve the request.
ELSEWHERE = "x-tagcall-elsewhere"


class ErrorObject(TypedDict):
    """The object under `error` in an OpenAI error body."""

    message: str
    type: str
    param: str | None
    code: str | None


# How the system's errors begin where several became one: a name with several addresses has one for each.
_NUMBERED = re.compile(r"\[Errno (\d+)\]")


class TagcallError(Exception):
    """The root of this package's errors. Its text is `fault: remedy.`, or the fault alone, which is a sentence then.

    `remedy` is what a person does about it, as the end of a sentence and without a stop.
    """

    def __init__(self, fault: str, remedy: str | None = None) -> None:
        self.fault = fault
        self.remedy = remedy
        super().__init__(advised(fault, remedy))


class UsageError(TagcallError):
    """Something a person has to change; the message is one sentence that says what."""


def advised(fault: str, remedy: str | None) -> str:
    """One sentence of what is wrong and what to do about it."""
    return fault if remedy is None else f"{fault}: {remedy}."


def reason_of(error: Exception) -> str:
    """Why, for a sentence that names the file or the address itself: of the system's errors its own words alone."""
    if not isinstance(error, OSError):
        return str(error)
    if (error.errno or 0) > 0:  # those of name servers are below
        return os.strerror(error.errno or 0)
    if (numbered := _NUMBERED.search(str(error))) is not None:
        return os.strerror(int(numbered[1]))
    return (error.strerror or str(error)).partition(" (")[0]


class ApiError(TagcallError):
    """An error that knows its HTTP answer.

    `retry_after` is in seconds. `retryable` False tells SDKs with `x-should-retry: false` that a
    repeated request cannot heal this. `elsewhere`: nothing was begun, and another server may well serve the request.
    `message` has the remedy, too.
    """

    default_status = 500
    default_type = "server_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        type: str | None = None,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
        retryable: bool = True,
        elsewhere: bool = False,
        remedy: str | None = None,
    ) -> None:
        if len(message) > LONGEST_SENTENCE:
            message = f"{message[:LONGEST_SENTENCE]}…"
        # Bytes of a header that are no UTF-8 are half surrogate pairs here, and these can be written nowhere.
        message = message.encode(errors="replace").decode()
        super().__init__(message, remedy)
        self.message = advised(message, remedy)
        self.status = self.default_status if status is None else status
        self.type = self.default_type if type is None else type
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self.retryable = retryable
        self.elsewhere = elsewhere

    def __copy__(self) -> Self:
        """The same error, to be told in other words. Python would call its class with `args`, which not all take."""
        copied = type(self).__new__(type(self), *self.args)
        vars(copied).update(vars(self))
        return copied

    def without_trace(self) -> Self:
        """The error as a value that is kept.

        Its trace has each frame that it came through, with the prompt and all else that was at hand there, and with
        the error itself in one of them: a cycle that Python would take its time to find.
        """
        self.__traceback__ = self.__cause__ = self.__context__ = None
        return self

    def error_object(self) -> ErrorObject:
        return {"message": self.message, "type": self.type, "param": self.param, "code": self.code}

    def headers(self) -> Mapping[str, str]:
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            headers["retry-after"] = str(max(1, round(self.retry_after)))
        if not self.retryable:
            headers["x-should-retry"] = "false"
        if self.elsewhere:
            headers[ELSEWHERE] = "yes"
        return headers


class RequestError(ApiError):
    """The request cannot be served as it is."""

    default_status = 400
    default_type = "invalid_request_error"


class BackendError(ApiError):
    """The backend failed, refused or vanished."""

    default_status = 502


class ModelError(BackendError):
    """The model did not do what was asked of it. A 4xx: clients repeat every 5xx, and this one costs two answers."""

    default_status = 422

    def __init__(self, message: str, *, code: str, param: str | None = None) -> None:
        super().__init__(message, code=code, param=param, retryable=False)


class StoreError(ApiError):
    """The store cannot be read or written; what it holds is unknown, not absent."""

    default_status = 503

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"Stored responses cannot be reached now ({why}).", code="store_unavailable", retry_after=5)
