"""JSON-RPC lines to events and back, without I/O.

Framing: one JSON object a line, LF at its end, no `"jsonrpc"` member in either direction. Both sides number
their requests from 0 or 1 on their own, so an id means nothing without its direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from msgspec import Struct

from ..wire.json_body import loads

# Bytes. The longest line seen of a real program is 60 MB: a prompt's echo.
MAX_LINE = 64 * 2**20

RpcObject = dict[str, Any]
RequestId = int | str


class Request(Struct, frozen=True):
    """The other side asks and waits for an answer under this id."""

    id: RequestId
    method: str
    params: RpcObject


class Notification(Struct, frozen=True):
    method: str
    params: RpcObject


class Response(Struct, frozen=True):
    """`result` is empty when the other side answered with something else than an object."""

    id: RequestId
    result: RpcObject


class ErrorResponse(Struct, frozen=True):
    id: RequestId | None
    code: int
    message: str
    data: object


class LineSkipped(Struct, frozen=True):
    """A line that carries no message. `size` is its length in bytes without the LF, None if it is JSON."""

    reason: str
    size: int | None = None


RpcEvent = Request | Notification | Response | ErrorResponse | LineSkipped

# A line's JSON, or that there is none.
Message = Any

# Makes fewer of the messages that were read together. It does not raise.
Condense = Callable[[list[Message]], list[Message]]


# For each line, so without a frame of ours. Of one that was skipped it says that it is no JSON.
_loads: Callable[[Any], Message] = orjson.loads


def keep_all(messages: list[Message]) -> list[Message]:
    return messages


class RpcConnection:
    """One side of one connection. What is received never raises; what is sent must be JSON."""

    def __init__(self, condense: Condense = keep_all) -> None:
        self._lines = LineSplitter()
        self._condense = condense
        self._last_id = 0

    def send_request(self, method: str, params: RpcObject | None = None, traceparent: str = "") -> tuple[int, bytes]:
        """The new request's id, and its line. `traceparent` names the trace that it belongs to, if any."""
        self._last_id += 1
        message: RpcObject = {"id": self._last_id, "method": method}
        if traceparent:
            message["trace"] = {"traceparent": traceparent}
        return self._last_id, _line(message, params)

    def send_notification(self, method: str, params: RpcObject | None = None) -> bytes:
        return _line({"method": method}, params)

    def send_response(self, id: RequestId, result: object) -> bytes:
        return orjson.dumps({"id": id, "result": result}, option=orjson.OPT_APPEND_NEWLINE)

    def send_error(self, id: RequestId, code: int, message: str) -> bytes:
        error = {"code": code, "message": message}
        return orjson.dumps({"id": id, "error": error}, option=orjson.OPT_APPEND_NEWLINE)

    def receive_data(self, data: bytes) -> list[RpcEvent]:
        """All events whose lines end within `data`."""
        lines = [line for line in self._lines.split(data) if line]
        try:
            messages = [*map(_loads, lines)]
        except orjson.JSONDecodeError:
            messages = [*map(_message, lines)]
        return [*map(_event, self._condense(messages) if len(messages) > 1 else messages)]


class LineSplitter:
    """Bytes to lines, linear in the bytes whatever the cut: only new bytes are ever searched."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._begun: list[bytes] = []
        self._size = 0

    def split(self, data: bytes) -> list[bytes | LineSkipped]:
        """The lines that `data` completes. Of an overlong one only the length is kept."""
        whole = data.split(b"\n")
        begun = whole.pop()
        lines: list[bytes | LineSkipped] = [*whole]
        if self._size and whole:
            self._begin(whole[0])
            lines[0] = self._end()
        if len(data) > self._max_line:
            lines = [self._bounded(line) for line in lines]
        if begun:
            self._begin(begun)
        return lines

    def _bounded(self, line: bytes | LineSkipped) -> bytes | LineSkipped:
        if isinstance(line, LineSkipped) or len(line) <= self._max_line:
            return line
        return LineSkipped("overlong", len(line))

    def _begin(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_line:
            self._begun.clear()
        else:
            self._begun.append(piece)

    def _end(self) -> bytes | LineSkipped:
        size, self._size = self._size, 0
        line = b"".join(self._begun)
        self._begun.clear()
        return line if size <= self._max_line else LineSkipped("overlong", size)


def _line(message: RpcObject, params: RpcObject | None) -> bytes:
    if params is not None:
        message["params"] = params
    return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)


def _message(line: bytes | LineSkipped) -> Message:
    if isinstance(line, LineSkipped):
        return line
    try:
        return loads(line)
    except orjson.JSONDecodeError:
        return LineSkipped("not JSON", len(line))


def _event(message: Message) -> RpcEvent:
    # Nearly every line is a notification, and to match a pattern of members takes its time.
    if isinstance(message, dict) and "id" not in message and isinstance(method := message.get("method"), str):
        params = message.get("params")
        return Notification(method, params if isinstance(params, dict) else {})
    match message:
        case {"method": str(method), "id": int() | str() as id}:
            return Request(id, method, _params(message))
        case {"method": str(method)}:
            return Notification(method, _params(message))
        case {"error": dict(error)}:
            return _error(message.get("id"), error)
        case {"id": int() | str() as id, "result": result}:
            return Response(id, result if isinstance(result, dict) else {})
        case LineSkipped():
            return message
        case _:
            return LineSkipped("not a message")


def _params(message: RpcObject) -> RpcObject:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _error(id: object, error: RpcObject) -> ErrorResponse:
    code = error.get("code")
    return ErrorResponse(
        id=id if isinstance(id, int | str) else None,
        code=code if isinstance(code, int) else 0,
        message=str(error.get("message") or "no message"),
        data=error.get("data"),
    )
