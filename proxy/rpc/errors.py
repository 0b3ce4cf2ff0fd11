"""Why a request got no result, and why one is not served."""

from __future__ import annotations


class RpcError(Exception):
    """A request got no result.

    RpcError
    ├── RpcAnswerError    the other side answered with an error
    ├── RpcBusyError      it was not sent: too much is under way
    ├── RpcDeadlineError  it was not answered in time
    └── RpcClosedError    the connection ended
    """


class RpcAnswerError(RpcError):
    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class RpcBusyError(RpcError):
    """Too many requests wait already, or this one waited too long to be sent."""


class RpcDeadlineError(RpcError):
    """No answer in time. Whether the request was carried out is unknown."""


class RpcClosedError(RpcError):
    """The connection has ended. Whether the request was carried out is unknown."""


class UnknownMethodError(Exception):
    """Raised by the function that answers requests for a method it does not serve."""
