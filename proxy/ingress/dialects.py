"""Dialects of the Responses API, and how a request chooses one of them for POST /v1/responses."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from ..wire.reader import wrong_value
from .state import DIALECT

# The header by which a request chooses its dialect.
DIALECT_HEADER = "x-tagcall-dialect"

# As it is chosen -> how it answers, as the help of `--dialect` goes on; the first is the default.
DIALECTS: Mapping[str, str] = {"openai": "as OpenAI does", "tokligence": "as tokligence-gateway does"}


def dialect_of(request: web.Request) -> str:
    """The name that the request or else the server's owner has chosen; one of `DIALECTS` if it is good."""
    return request.headers.get(DIALECT_HEADER, request.app[DIALECT]).strip().lower()


def check_dialect(request: web.Request) -> None:
    """Raises `RequestError` when the request has chosen a dialect that there is not."""
    if (name := dialect_of(request)) not in DIALECTS:
        raise wrong_value(DIALECT_HEADER, name, tuple(DIALECTS))
