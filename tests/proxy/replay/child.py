"""A replay app-server as a real child process, and fixtures for it to play."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from proxy.replay.conversation import ThreadMessage
from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
Message: TypeAlias = dict[str, Any]


def shown(text: str) -> tuple[ThreadMessage, ...]:
    """All messages of a thread that was asked this, and nothing before."""
    return (ThreadMessage("user", (text,)),)


def said(at: float, method: str, **params: object) -> Message:
    """A line of the server on the fixture's only thread."""
    return {"t": at, "dir": "server", "msg": {"method": method, "params": {"threadId": "T", **params}}}


def asked(text: str, at: float = 0.0) -> Message:
    """The client's turn/start."""
    params = {"threadId": "T", "input": [{"type": "text", "text": text}]}
    return {"t": at, "dir": "client", "msg": {"id": 3, "method": "turn/start", "params": params}}


def item(role: str, *texts: str) -> Message:
    """A message as it is injected."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


def injected(*items: Message, at: float = 0.0) -> Message:
    """The client's thread/inject_items."""
    params = {"threadId": "T", "items": list(items)}
    return {"t": at, "dir": "client", "msg": {"id": 2, "method": "thread/inject_items", "params": params}}


def counted(last: int, total: int) -> Message:
    """So many tokens of the newest answer, and of the thread."""
    usage = {"total": {"totalTokens": total, "inputTokens": total}, "last": {"totalTokens": last, "inputTokens": last}}
    return said(0.0, "thread/tokenUsage/updated", turnId="U", tokenUsage=usage)


def answered(pieces: Iterable[str], at: float = 0.0) -> list[Message]:
    """One message in those deltas, and the end of the turn."""
    pieces = list(pieces)
    item = {"type": "agentMessage", "id": "I", "text": ""}
    return [
        said(at, "turn/started", turn={"id": "U", "status": "inProgress"}),
        said(at, "item/started", turnId="U", item=item),
        *(said(at, "item/agentMessage/delta", turnId="U", itemId="I", delta=piece) for piece in pieces),
        said(at, "item/completed", turnId="U", item={**item, "text": "".join(pieces)}),
        said(at, "turn/completed", turn={"id": "U", "status": "completed", "error": None}),
    ]


def jsonl(lines: Sequence[object], **meta: object) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in [{"tagcall_fixture": 1, **meta}, *lines])


def write_fixture(folder: Path, name: str, lines: Sequence[object], **meta: object) -> None:
    (folder / name).mkdir()
    (folder / name / "backend.jsonl").write_bytes(jsonl(lines, **meta))


class ReplayChild:
    """`heard` holds every line of the child so far, in order."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.stdin, self._stdout = process.stdin, process.stdout
        self.heard: list[Message] = []
        self._ids = itertools.count()

    async def until(self, wanted: Callable[[Message], bool]) -> Message:
        """Read on, up to the first line that is wanted."""
        async with asyncio.timeout(PATIENCE):
            async for line in self._stdout:
                message: Message = json.loads(line)
                self.heard.append(message)
                if wanted(message):
                    return message
        raise AssertionError("the child fell silent")

    async def request(self, method: str, **params: object) -> Message:
        """The whole answer: `{"id", "result"}` or `{"id", "error"}`."""
        number = next(self._ids)
        self.say({"id": number, "method": method, "params": params})
        return await self.until(lambda message: message.get("id") == number and "method" not in message)

    def say(self, message: object) -> None:
        self.stdin.write(json.dumps(message).encode() + b"\n")

    async def initialize(self, **capabilities: object) -> Message:
        answer = await self.request(
            "initialize", clientInfo={"name": "test", "version": "1"}, capabilities=capabilities
        )
        self.say({"method": "initialized"})
        return answer

    async def start_turn(self, text: str, **thread: object) -> tuple[str, str]:
        """A turn on a new thread: the ids of thread and turn."""
        thread_id = await self.start_thread(**thread)
        answer = await self.request("turn/start", threadId=thread_id, input=[{"type": "text", "text": text}])
        return thread_id, answer["result"]["turn"]["id"]

    async def start_thread(self, **thread: object) -> str:
        answer = await self.request("thread/start", ephemeral=True, **thread)
        thread_id: str = answer["result"]["thread"]["id"]
        return thread_id

    async def go_on(self, thread_id: str, *texts: str, **turn: object) -> str:
        """The text of the answer to the next whole turn of that thread."""
        parts = [{"type": "text", "text": text} for text in texts]
        answer = await self.request("turn/start", threadId=thread_id, input=parts, **turn)
        end = await self.finish(thread_id)
        assert end["status"] == "completed", end
        return "".join(self.deltas(answer["result"]["turn"]["id"]))

    async def finish(self, thread_id: str) -> Message:
        """Read to the end of that thread's turn: the turn as it was completed."""
        end = await self.until(lambda message: is_end(message) and message["params"]["threadId"] == thread_id)
        turn: Message = end["params"]["turn"]
        return turn

    async def ask(self, text: str, **thread: object) -> str:
        """The text of the answer to a whole turn."""
        return await self.go_on(await self.start_thread(**thread), text)

    def deltas(self, turn_id: str) -> list[str]:
        return [
            message["params"]["delta"]
            for message in self.heard
            if message.get("method") == "item/agentMessage/delta" and message["params"]["turnId"] == turn_id
        ]


def is_end(message: Message) -> bool:
    return message.get("method") == "turn/completed"


@asynccontextmanager
async def replay_child(folder: Path, *options: str) -> AsyncIterator[ReplayChild]:
    """Started like a backend starts it; the end of its input must end it with status 0."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "proxy.replay", str(folder), *options,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, limit=1 << 24,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    child = ReplayChild(process)
    try:
        yield child
        child.stdin.close()
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
