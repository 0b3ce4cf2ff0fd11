"""A scripted app-server in memory that starts threads and turns; a test tells the rest."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.backends.codex import CodexBackend, SessionOptions
from proxy.errors import BackendError
from proxy.rpc import RpcObject, Transport
from tests.support.backend_events import prompt, read_turn
from tests.support.fake_app_server import FakeAppServer

AT = {"threadId": "t1", "turnId": "1"}


class Server(FakeAppServer):
    """Starts threads t1, t2, ... and a turn "1" on each; the test tells the rest."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self.patience = 10_000  # of a clock that jumps
        self.threads = 0

        def start_thread(params: RpcObject) -> RpcObject:
            self.threads += 1
            return {"thread": {"id": f"t{self.threads}", "ephemeral": True, **fields}}

        self.handlers = {
            "initialize": lambda params: {"userAgent": "tagcall/0.169.0 (x)"},
            "account/read": lambda params: {"account": None, "requiresOpenaiAuth": False},
            "model/list": lambda params: {"data": []},
            "thread/start": start_thread,
            "turn/start": lambda params: {"turn": {"id": "1"}},
            "turn/interrupt": self.interrupted,
        }

    def interrupted(self, params: RpcObject) -> None:
        """As 0.89: the turn ends, and the request is not answered."""
        self.tell("turn/completed", threadId=params["threadId"], turn={"id": params["turnId"], "status": "interrupted"})

    def say(self, text: str, thread: str = "t1") -> None:
        self.tell("item/agentMessage/delta", threadId=thread, turnId="1", itemId="m", delta=text)

    def complete(self, thread: str = "t1") -> None:
        self.tell("turn/completed", threadId=thread, turn={"id": "1", "status": "completed"})


class Servers:
    """Each connection reaches the next of these, and the last one for ever."""

    def __init__(self, *servers: Server) -> None:
        self.servers = servers
        self.connected = 0

    async def connect(self) -> Transport:
        self.connected += 1
        return self.servers[min(self.connected, len(self.servers)) - 1]


def backend(*servers: Server, models: tuple[str, ...] = (), **options: Any) -> CodexBackend:
    return CodexBackend(Servers(*servers).connect, SessionOptions(**options), models=models)


async def outcome(it: CodexBackend) -> BackendError:
    """The error that a turn ends with."""
    with pytest.raises(BackendError) as failed:
        await read_turn(it, prompt())
    return failed.value
