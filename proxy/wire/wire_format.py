"""How an API writes what leaves: its streams, and its errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from ..errors import ApiError
from .sse import DONE, EVENT_STREAM, KEEP_ALIVE, Encode, encode_typed


def openai_error(error: ApiError, request_id: str) -> Mapping[str, object]:
    """OpenAI's error body. It has no place for the request's id, which is in a header."""
    return {"error": error.error_object()}


class WireFormat(Struct, frozen=True):
    """How one API writes. `encode` makes bytes of events, which are of `content_type`."""

    encode: Encode
    error_body: Callable[[ApiError, str], Mapping[str, object]] = openai_error
    """The body of an error, for the request with this id: whatever goes wrong on a path of the API, and wherever."""
    content_type: str = EVENT_STREAM
    joins: bool = True
    """What arrived together leaves in one write."""
    pulse: bytes = KEEP_ALIVE
    """What breaks a silence where the builder of the answer has nothing to say."""
    end: bytes = DONE
    """What stands behind the last event; may be nothing."""
    comments: bool = False
    """Its readers know lines that are no events, so they may be warned by them."""
    impatient: bool = False
    """Its clients want a sign of life after two seconds already."""
    id_header: str = "x-request-id"
    """The header in which clients look for the id of their request."""


# What stands on every path that no other API claims.
OPENAI = WireFormat(encode_typed, comments=True)
