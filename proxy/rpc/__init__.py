"""JSON-RPC as app-servers speak it: one JSON object a line, no `jsonrpc` member. No method name is known here.

    RpcClient  <->  RpcConnection (pure: bytes <-> events)  <->  Transport (stdio, websocket)

connection     lines and messages, without I/O
client         requests with deadlines, over any transport: how many at a time, and a count of what is passed over
errors         why one got no result
transport      what the client needs of whatever carries its lines
stdio          a child process's stdin and stdout, and the child's whole life
stderr         its stderr: always drained, without secrets
child_records  children that a killed tagcall left behind
group          a child and whatever it started, with process groups and without
processes      processes as the system sees them
websocket      ws:// and unix sockets; not loaded unless it is imported itself
"""

from .child_records import ChildRecords
from .client import RequestLimit, RpcClient, SkipCounter
from .connection import Notification, RpcEvent, RpcObject
from .errors import RpcAnswerError, RpcBusyError, RpcClosedError, RpcDeadlineError, RpcError, UnknownMethodError
from .stdio import ChildTransport, Launch
from .transport import Transport

__all__ = [
    "ChildRecords",
    "ChildTransport",
    "Launch",
    "Notification",
    "RequestLimit",
    "RpcAnswerError",
    "RpcBusyError",
    "RpcClient",
    "RpcClosedError",
    "RpcDeadlineError",
    "RpcError",
    "RpcEvent",
    "RpcObject",
    "SkipCounter",
    "Transport",
    "UnknownMethodError",
]
