from __future__ import annotations

import tracemalloc

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.rpc.connection import (
    ErrorResponse,
    LineSkipped,
    LineSplitter,
    Notification,
    Request,
    Response,
    RpcConnection,
    RpcEvent,
)

LINES: list[tuple[bytes, RpcEvent]] = [
    (b'{"method":"m","params":{"a":1}}', Notification("m", {"a": 1})),
    (b'{"method":"m"}', Notification("m", {})),
    (b'{"method":"m","params":[1]}', Notification("m", {})),
    (b'{"id":0,"method":"ask","params":{}}', Request(0, "ask", {})),
    (b'{"id":"s","method":"ask"}', Request("s", "ask", {})),
    (b'{"id":1,"result":{"x":null}}', Response(1, {"x": None})),
    (b'{"id":1,"result":null}', Response(1, {})),
    (b'{"id":1,"error":{"code":-32600,"message":"no","data":{"k":1}}}', ErrorResponse(1, -32600, "no", {"k": 1})),
    (b'{"error":{}}', ErrorResponse(None, 0, "no message", None)),
    (b'{"jsonrpc":"2.0","id":2,"result":{}}', Response(2, {})),
    (b"not json", LineSkipped("not JSON", 8)),
    (b'{"method":"\xff"}', LineSkipped("not JSON", 14)),
    (b'{"method":"m","params":{"delta":"Hi \\ud83d"}}', Notification("m", {"delta": "Hi \N{REPLACEMENT CHARACTER}"})),
    (b'{"method":"\\ud83d",}', LineSkipped("not JSON", 20)),
    (b"[1,2]", LineSkipped("not a message")),
    (b'{"id":null,"result":{}}', LineSkipped("not a message")),
    (b'{"method":"crlf"}\r', Notification("crlf", {})),
]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places})
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]


@given(st.lists(st.sampled_from(LINES)), st.lists(st.integers(0)))
def test_lines_are_read_however_they_are_cut(lines: list[tuple[bytes, RpcEvent]], places: list[int]) -> None:
    data = b"".join(line + b"\n" for line, _ in lines)
    connection = RpcConnection()
    events = [event for piece in cut(data, places) for event in connection.receive_data(piece)]
    assert events == [event for _, event in lines]


@given(
    st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.lists(st.integers(0))
)
def test_an_overlong_line_is_skipped_alone(lines: list[bytes], places: list[int]) -> None:
    splitter = LineSplitter(max_line=6)
    data = b"".join(line + b"\n" for line in lines)
    read = [line for piece in cut(data, places) for line in splitter.split(piece)]
    assert read == [line if len(line) <= 6 else LineSkipped("overlong", len(line)) for line in lines]


@pytest.mark.parametrize("pieces", [[b"abcdef\n"], [b"abc", b"def\n"], [b"abcdef", b"\n"]])
def test_a_line_may_have_just_so_many_bytes(pieces: list[bytes]) -> None:
    splitter = LineSplitter(max_line=6)
    assert [line for piece in pieces for line in splitter.split(piece)] == [b"abcdef"]


def test_of_an_overlong_line_nothing_is_kept() -> None:
    splitter = LineSplitter(max_line=10)
    tracemalloc.start()
    for _ in range(100):
        assert list(splitter.split(bytes(100_000))) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    assert list(splitter.split(b"\n{}\n")) == [LineSkipped("overlong", 10_000_000), b"{}"]


def test_a_long_line_in_small_reads_takes_linear_time() -> None:
    """Searching what was searched before would be 16 GB here, and the test's time limit would end it."""
    splitter = LineSplitter()
    for _ in range(8192):
        assert not list(splitter.split(b"x" * 512))
    [line] = splitter.split(b"\n")
    assert line == b"x" * 2**22


def test_requests_are_numbered_by_the_sender_alone() -> None:
    connection = RpcConnection()
    assert connection.send_request("a", {"x": "ä"}) == (1, '{"id":1,"method":"a","params":{"x":"ä"}}\n'.encode())
    connection.receive_data(b'{"id":1,"method":"theirs"}\n')
    traced = b'{"id":2,"method":"a","trace":{"traceparent":"00-1-2-01"},"params":{}}\n'
    assert connection.send_request("a", {}, "00-1-2-01") == (2, traced)
    assert connection.send_request("b") == (3, b'{"id":3,"method":"b"}\n')


def test_each_kind_of_message_is_one_line_without_jsonrpc() -> None:
    connection = RpcConnection()
    lines = [
        connection.send_notification("n"),
        connection.send_response(0, {"decision": "decline"}),
        connection.send_error(0, -32601, "no\nsuch thing"),
    ]
    assert [orjson.loads(line) for line in lines] == [
        {"method": "n"},
        {"id": 0, "result": {"decision": "decline"}},
        {"id": 0, "error": {"code": -32601, "message": "no\nsuch thing"}},
    ]
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines)


@given(st.binary())
def test_no_bytes_raise(data: bytes) -> None:
    RpcConnection().receive_data(data + b"\n")


def test_a_lone_surrogate_is_the_callers_mistake() -> None:
    with pytest.raises(TypeError):
        RpcConnection().send_request("m", {"text": "\ud800"})
