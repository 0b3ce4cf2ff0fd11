"""The headers that let an allowed origin read our answers. Never `*`, never `null`, never credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping

# What a list of header names may be made of; anything else is not repeated.
HEADER_NAMES = re.compile(r"[\w!#$%&'*+.^`|~, -]*", re.ASCII)

# What a page may send, which of our headers it may read, and for how many seconds it need not ask again.
ALLOWED_METHODS = "GET, POST, DELETE, OPTIONS"
EXPOSED = (
    "x-request-id, request-id, openai-processing-ms, openai-version, retry-after, x-should-retry, x-tagcall-warning, "
    "x-tagcall-turn"
)
MAX_AGE = "86400"


def answer_headers(origin: str | None, *, allowed: bool) -> dict[str, str]:
    """For every answer, errors and event streams included."""
    headers = {"Vary": "Origin"}
    if origin is not None and allowed:
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Expose-Headers"] = EXPOSED
    return headers


def preflight_headers(request_headers: Mapping[str, str]) -> dict[str, str]:
    """For the answer to OPTIONS. What the client asks for is echoed: a fixed list goes stale with each SDK."""
    headers = {"Access-Control-Allow-Methods": ALLOWED_METHODS, "Access-Control-Max-Age": MAX_AGE}
    asked = request_headers.get("Access-Control-Request-Headers")
    if asked and HEADER_NAMES.fullmatch(asked):
        headers["Access-Control-Allow-Headers"] = asked
    if request_headers.get("Access-Control-Request-Private-Network") == "true":
        headers["Access-Control-Allow-Private-Network"] = "true"
    return headers
