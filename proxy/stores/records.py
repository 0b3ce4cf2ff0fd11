"""Records as bytes, and back. What is read is not trusted.

A record is its digest and its JSON text. A file can be cut or edited, and a server can return half a value. A record
that does not match its digest, or nests too deep, reads as missing.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from hashlib import blake2b
from typing import TypeAlias

import orjson

StoredJson: TypeAlias = bool | int | float | str | list["StoredJson"] | dict[str, "StoredJson"] | None

# Bytes.
DIGEST_SIZE = 16

# Bytes. An event stream repeats itself, so it is packed to a tenth; what unpacks to more was not written here.
MAX_EVENTS = 256 << 20


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_SIZE).digest()


def _sealed(content: bytes) -> bytes:
    return _digest(content) + content


def _opened(record: bytes) -> bytes | None:
    """The content of a record, or None when it is not as it was written."""
    content = record[DIGEST_SIZE:]
    return content if _digest(content) == record[:DIGEST_SIZE] else None


def encode(record: Mapping[str, object]) -> bytes:
    return _sealed(orjson.dumps(record))


def decode(record: bytes) -> dict[str, StoredJson] | None:
    """The JSON object of a record, or None when it cannot be read."""
    content = _opened(record)
    if content is None:
        return None
    try:
        value: StoredJson = orjson.loads(content)
        orjson.dumps(value)  # refuses what nests too deep to be written to a client
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    return value if isinstance(value, dict) else None


def pack(events: bytes) -> bytes:
    return _sealed(zlib.compress(events, 1))


def unpack(record: bytes) -> bytes | None:
    content = _opened(record)
    if content is None:
        return None
    unpacking = zlib.decompressobj()
    try:
        events = unpacking.decompress(content, MAX_EVENTS)
    except zlib.error:
        return None
    return events if unpacking.eof else None
