"""JSON-RPC as app-servers speak it: one JSON object a line, no `jsonrpc` member. No method name is known here.

    RpcClient  <->  RpcConnection (pure: bytes <-> events)  <->  Transport (stdio, websocket)

connection   lines and messages, without I/O
client       requests with deadlines, over any transport
stdio        a child process's stdin and stdout, and the child's whole life
websocket    ws:// and unix sockets
"""

from .client import RpcAnswerError, RpcClient, RpcClosedError, RpcDeadlineError, RpcError, Transport, UnknownMethodError
from .connection import JsonObject
from .stdio import ChildTransport, Launch
from .websocket import WebSocketTransport

__all__ = [
    "ChildTransport",
    "JsonObject",
    "Launch",
    "RpcAnswerError",
    "RpcClient",
    "RpcClosedError",
    "RpcDeadlineError",
    "RpcError",
    "Transport",
    "UnknownMethodError",
    "WebSocketTransport",
]
