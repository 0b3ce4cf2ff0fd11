"""Errors as Ollama writes them: a sentence. The same stands as a line in a stream that has begun."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import orjson

from ...errors import ApiError
from ..sse import as_one_line
from ..wire_format import WireFormat


def encode_lines(events: Iterable[Mapping[str, object]]) -> list[bytes]:
    """A line of JSON each, and no blank one: the Python client takes every line for JSON."""
    return [as_one_line(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)) for event in events]


def error_body(error: ApiError, _request_id: str = "") -> Mapping[str, object]:
    return {"error": error.message}


# A silence is broken by a line that says nothing, which the builder makes.
OLLAMA = WireFormat(encode_lines, error_body, content_type="application/x-ndjson", joins=False, pulse=b"", end=b"")
