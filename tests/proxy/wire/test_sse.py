"""Streams as readers find them that somebody wrote by hand."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.sse import comment, encode_chunks, encode_typed
from proxy.wire.tokligence.tokligence_builder import encode_dialect

AWKWARD = ["data: ", "data:", " ", "[DONE]", "\n", "\r\n", "\x85", "\u2028", "\u2029", "\\", '"']
TEXTS = st.lists(st.sampled_from(AWKWARD) | st.text(max_size=3)).map("".join)


def cut_at_data(piece: bytes) -> object:
    """As Smart Connections reads a line: what stands behind the first `data: ` and before the next."""
    return orjson.loads(piece.decode().split("data: ")[1])


def cut_at_line_ends(piece: bytes) -> Iterable[object]:
    """As BMO reads each network read, without keeping what was left of the one before."""
    for line in piece.decode().splitlines():
        if line and "[DONE]" not in line:
            yield orjson.loads(line.removeprefix("data: "))


@given(TEXTS)
def test_a_chunk_is_one_line_for_everybody(text: str) -> None:
    event = {"choices": [{"delta": {"content": text}}]}
    (piece,) = encode_chunks([event])
    assert cut_at_data(piece) == event
    assert list(cut_at_line_ends(piece)) == [event]


@given(TEXTS)
def test_a_typed_event_is_two_lines_for_everybody(text: str) -> None:
    event = {"type": "x", "delta": text}
    for encode in (encode_typed, encode_dialect):
        (piece,) = encode([event])
        name, data = filter(None, piece.decode().splitlines())
        assert name == "event: x"
        assert orjson.loads(data.removeprefix("data: ")) == event


def test_each_chunk_is_a_piece_of_its_own() -> None:
    assert encode_chunks([{"a": 1}, {"b": 2}]) == [b'data: {"a":1}\n\n', b'data: {"b":2}\n\n']


def test_typed_events_that_arrived_together_leave_together() -> None:
    assert encode_typed([{"type": "x"}, {"type": "y"}]) == [
        b'event: x\ndata: {"type":"x"}\n\nevent: y\ndata: {"type":"y"}\n\n'
    ]
    assert encode_typed([]) == []


def test_a_comment_is_a_line_of_its_own() -> None:
    assert comment("keep alive") == b": keep alive\n\n"
