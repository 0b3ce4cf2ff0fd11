"""The trace context of a request, carried through to the log and to a model's server.

A context from outside is taken only if it has the standard form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar

from msgspec import Struct

# W3C Trace Context, version 00 and those to come; and OpenAI's header for a name that the client chooses.
TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]{0,200})?")
CLIENT_ID = re.compile(r"[\x21-\x7e]{1,512}")
PARENT, CLIENT_REQUEST = "traceparent", "x-client-request-id"


class Trace(Struct, frozen=True):
    """`""` for what did not come."""

    parent: str = ""
    client_request: str = ""

    @property
    def id(self) -> str:
        found = TRACEPARENT.fullmatch(self.parent)
        return found["trace"] if found else ""

    def headers(self) -> dict[str, str]:
        """For whom is asked next."""
        both = {PARENT: self.parent, CLIENT_REQUEST: self.client_request}
        return {name: value for name, value in both.items() if value}


def trace_of(headers: Mapping[str, str]) -> Trace:
    parent, client_request = headers.get(PARENT, ""), headers.get(CLIENT_REQUEST, "")
    if not parent and not client_request:
        return NO_TRACE
    return Trace(
        parent if TRACEPARENT.fullmatch(parent) else "", client_request if CLIENT_ID.fullmatch(client_request) else ""
    )


NO_TRACE = Trace()

# That of the request which is being served.
CURRENT: ContextVar[Trace] = ContextVar("trace", default=NO_TRACE)
