"""JSON-RPC as app-servers speak it: one JSON object a line, no `jsonrpc` member. No method name is known here.

    RpcClient  <->  RpcConnection (pure: bytes <-> events)  <->  Transport (stdio, websocket)

connection     lines and messages, without I/O
client         requests with deadlines, over any transport
gate           how many of them at a time
errors         why one got no result
transport      what the client needs of whatever carries its lines
stdio          a child process's stdin and stdout, and the child's whole life
stderr         its stderr: always drained, without secrets
child_records  children that a killed tagcall left behind
processes      processes as the system sees them
websocket      ws:// and unix sockets; not loaded unless it is imported itself
tally          counts what is passed over
"""

from .child_records import ChildRecords
from .client import RpcClient
from .connection import Event, JsonObject, Notification
from .errors import RpcAnswerError, RpcBusyError, RpcClosedError, RpcDeadlineError, RpcError, UnknownMethodError
from .gate import Gate
from .stdio import ChildTransport, Launch
from .tally import Tally
from .transport import Transport

__all__ = [
    "ChildRecords",
    "ChildTransport",
    "Event",
    "Gate",
    "JsonObject",
    "Launch",
    "Notification",
    "RpcAnswerError",
    "RpcBusyError",
    "RpcClient",
    "RpcClosedError",
    "RpcDeadlineError",
    "RpcError",
    "Tally",
    "Transport",
    "UnknownMethodError",
]
