"""Server-sent events as OpenAI writes them: `event:` equals `data.type`, one line each, one blank line.

An event leaves in one piece; a keep-alive is a comment line, which every client skips.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import orjson

KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


def encode(events: Iterable[Mapping[str, object]]) -> bytes:
    """The bytes of typed events, in order."""
    return b"".join(b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), orjson.dumps(event)) for event in events)
