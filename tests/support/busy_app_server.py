"""An app-server that runs many turns at once, each as its own prompt says, for tests that want a real child process.

    python busy_app_server.py LOG app-server

The prompt of a turn holds one JSON object: `mark` is its name, and its answer is the mark again and again, `pieces`
times, each padded to `size` characters and `pause` seconds behind the one before. A turn with `silent` says nothing
and never ends by itself. LOG gets a line for each turn that starts, is interrupted and ends. Stands alone: it starts
fast and imports nothing of the project.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

Message = dict[str, Any]


class Server:
    def __init__(self, log: Path, group: asyncio.TaskGroup) -> None:
        self._log = log.open("a", buffering=1)
        self._group = group
        self._turns: dict[str, tuple[str, asyncio.Task[None]]] = {}
        self._threads = 0

    def note(self, what: str, mark: str) -> None:
        self._log.write(f"{json.dumps([what, mark])}\n")

    def write(self, message: Message) -> None:
        self._out.write(json.dumps(message).encode() + b"\n")

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=2**26)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
        self._out = asyncio.StreamWriter(transport, protocol, None, loop)
        while line := await reader.readline():
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.write({"id": message["id"], "result": self.answer(message["method"], message.get("params") or {})})
        for _, task in self._turns.values():
            task.cancel()

    def answer(self, method: str, params: Message) -> Message:
        match method:
            case "initialize":
                return {"userAgent": "tagcall/0.169.0 (busy)"}
            case "account/read":
                return {"account": None, "requiresOpenaiAuth": False}
            case "thread/start":
                self._threads += 1
                return {"thread": {"id": f"t{self._threads}", "ephemeral": True}}
            case "turn/start":
                self.start(params["threadId"], "".join(part.get("text", "") for part in params["input"]))
                return {"turn": {"id": "1"}}
            case "turn/interrupt":
                self.interrupt(params["threadId"])
                return {}
            case _:
                return {"data": []}

    def start(self, thread: str, text: str) -> None:
        found = re.search(r"\{.*\}", text)
        wanted = json.loads(found[0]) if found else {"mark": "none"}
        self.note("start", wanted["mark"])
        self._turns[thread] = (wanted["mark"], self._group.create_task(self.play(thread, wanted)))

    def interrupt(self, thread: str) -> None:
        if thread in self._turns:
            mark, task = self._turns[thread]
            self.note("interrupt", mark)
            task.cancel()
            self.end(thread, "interrupted")

    def end(self, thread: str, status: str) -> None:
        mark, _ = self._turns.pop(thread)
        self.note("end", mark)
        self.tell("turn/completed", thread, turn={"id": "1", "status": status})

    def tell(self, method: str, thread: str, **params: object) -> None:
        self.write({"method": method, "params": {"threadId": thread, "turnId": "1", **params}})

    async def play(self, thread: str, wanted: Message) -> None:
        await asyncio.sleep(0)
        mark = wanted["mark"]
        self.tell("item/started", thread, item={"type": "agentMessage", "id": "m", "text": ""})
        if wanted.get("silent"):
            await asyncio.Event().wait()
        for _ in range(wanted.get("pieces", 1)):
            self.tell("item/agentMessage/delta", thread, itemId="m", delta=f"{mark} ".ljust(wanted.get("size", 0), "."))
            await self._out.drain()
            await asyncio.sleep(wanted.get("pause", 0))
        self.tell("item/completed", thread, item={"type": "agentMessage", "id": "m", "text": ""})
        self.end(thread, "completed")


async def main() -> None:
    async with asyncio.TaskGroup() as group:
        await Server(Path(sys.argv[1]), group).serve()


if __name__ == "__main__" and sys.argv[2:] == ["app-server"]:  # else it was asked for its version, or for its models
    asyncio.run(main())
