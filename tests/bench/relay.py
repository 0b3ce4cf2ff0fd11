"""JSON-RPC to SSE with nothing in between: what any proxy of an app-server has to do, done plainly.

    python -m tests.bench.relay PROGRAM

One child, its output read in blocks; what came together for a stream is one piece of text and one write. Requests with
one `prompt_cache_key` share a thread, which is told their newest message. Nothing is checked, parsed, stored or logged,
and nothing here survives a fault.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Awaitable
from typing import Any

import orjson
from aiohttp import web

Message = dict[str, Any]

BLOCK = 2**20


class Child:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._pieces: dict[str, asyncio.Queue[str | None]] = defaultdict(asyncio.Queue)
        self._threads: dict[str, str] = {}
        self._asked = 0

    async def read(self) -> None:
        begun = b""
        while data := await self._stdout.read(BLOCK):
            *lines, begun = (begun + data).split(b"\n")
            said: dict[str, list[str]] = {}
            over: list[str] = []
            for line in lines:
                message = orjson.loads(line)
                method = message.get("method")
                if method == "item/agentMessage/delta":
                    params = message["params"]
                    said.setdefault(params["threadId"], []).append(params["delta"])
                elif method == "turn/completed":
                    over.append(message["params"]["threadId"])
                elif "id" in message:
                    self._answers.pop(message["id"]).set_result(message["result"])
            for thread, pieces in said.items():
                self._pieces[thread].put_nowait("".join(pieces))
            for thread in over:
                self._pieces[thread].put_nowait(None)

    def ask(self, method: str, params: Message) -> Awaitable[Message]:
        self._asked += 1
        answer = self._answers[self._asked] = asyncio.get_running_loop().create_future()
        self._stdin.write(orjson.dumps({"id": self._asked, "method": method, "params": params}) + b"\n")
        return answer

    async def turn(self, text: str, conversation: str | None) -> asyncio.Queue[str | None]:
        thread = self._threads.get(conversation) if conversation else None
        if thread is None:
            thread = str((await self.ask("thread/start", {}))["thread"]["id"])
            if conversation:
                self._threads[conversation] = thread
        pieces = self._pieces[thread]
        await self.ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
        return pieces


CHILD = web.AppKey("child", Child)


async def respond(request: web.Request) -> web.StreamResponse:
    body = orjson.loads(await request.read())
    said = body["input"]
    text = said if isinstance(said, str) else said[-1]["content"]
    pieces = await request.app[CHILD].turn(text, body.get("prompt_cache_key"))
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    while (text := await pieces.get()) is not None:
        event = {"type": "response.output_text.delta", "item_id": "msg_0", "output_index": 0, "delta": text}
        await response.write(b"event: response.output_text.delta\ndata: %b\n\n" % orjson.dumps(event))
    await response.write(b'event: response.completed\ndata: {"type":"response.completed"}\n\n')
    return response


async def main(program: str) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(program, "app-server", stdin=pipe, stdout=pipe)
    app = web.Application()
    app[CHILD] = child = Child(process)
    app.router.add_post("/v1/responses", respond)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(f"the relay is ready on http://127.0.0.1:{runner.addresses[0][1]}/v1\n")
    sys.stdout.flush()
    await child.read()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
