"""Server-sent events as OpenAI writes them: one line of JSON each, one blank line.

An event leaves in one piece; a keep-alive is a comment line, which every client skips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import orjson

EVENT_STREAM = "text/event-stream; charset=utf-8"

# A comment line, for long silences.
KEEP_ALIVE = b": keep-alive\n\n"


def comment(text: str) -> bytes:
    """A line that no reader of events sees. `text` is one line."""
    return b": %b\n\n" % text.encode()


# The end of a stream.
DONE = b"data: [DONE]\n\n"

# The bytes of events, in order; each piece is one write.
Encode = Callable[[Iterable[Mapping[str, object]]], list[bytes]]


def named(events: Iterable[tuple[str, Mapping[str, object]]]) -> list[bytes]:
    """Events by their names, in one piece."""
    pieces = [_named(name, event) for name, event in events]
    return pieces if len(pieces) < 2 else [b"".join(pieces)]


def encode_typed(events: Iterable[Mapping[str, object]]) -> list[bytes]:
    """Events of the Responses API: `event:` equals `data.type`. What arrived together leaves together."""
    pieces = [_named(str(event["type"]), event) for event in events]
    return pieces if len(pieces) < 2 else [b"".join(pieces)]


def _named(name: str, event: Mapping[str, object]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), as_one_line(orjson.dumps(event)))


def encode_chunks(events: Iterable[Mapping[str, object]]) -> list[bytes]:
    """Chunks of Chat Completions, which have no `event:` line. Each is a write: there are clients that take one
    event from each read.
    """
    return [b"data: %b\n\n" % as_one_line(orjson.dumps(event)) for event in events]


# Other spellings, inside JSON strings, of what makes hand-made readers cut or stop: they split at each `data: `,
# stop at any `[DONE]`, and Python's `str.splitlines` knows more line ends than the format does.
_SPELLINGS = (
    (b"data: ", rb"data:\u0020"),
    (b"[DONE]", rb"\u005bDONE]"),
    ("\x85".encode(), rb"\u0085"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def as_one_line(line: bytes) -> bytes:
    """`line`, of equal value, as one line for everybody. None of these can stand outside a string."""
    if line.isascii() and b"data: " not in line and b"[DONE]" not in line:  # as most are
        return line
    for plain, escaped in _SPELLINGS:
        line = line.replace(plain, escaped)
    return line
