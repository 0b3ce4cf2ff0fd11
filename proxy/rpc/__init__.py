"""JSON-RPC as app-servers speak it: one JSON object a line, no `jsonrpc` member. No method name is known here.

    RpcClient  <->  RpcConnection (pure: bytes <-> events)  <->  Transport (stdio, websocket)

connection     lines and messages, without I/O
client         requests with deadlines over any transport; limits how many run, and counts skipped messages
errors         the errors of a request without a result
transport      the protocol that every carrier of lines implements
stdio          a child process's stdin and stdout, and the child's whole life
stderr         its stderr: always drained, without secrets
child_records  children that a killed tagcall left behind
group          a child and all that it started, with and without process groups
processes      the processes of the system
websocket      ws:// and unix sockets; loaded only when imported
"""

from .child_records import ChildRecords
from .client import OVERLOADED, RequestLimit, RpcClient, SkipCounter
from .connection import Message, RpcObject
from .errors import RpcAnswerError, RpcBusyError, RpcClosedError, RpcDeadlineError, RpcError, UnknownMethodError
from .stdio import ChildTransport, Launch
from .transport import Transport

__all__ = [
    "OVERLOADED",
    "ChildRecords",
    "ChildTransport",
    "Launch",
    "Message",
    "RequestLimit",
    "RpcAnswerError",
    "RpcBusyError",
    "RpcClient",
    "RpcClosedError",
    "RpcDeadlineError",
    "RpcError",
    "RpcObject",
    "SkipCounter",
    "Transport",
    "UnknownMethodError",
]
