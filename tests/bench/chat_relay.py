"""Chat chunks to SSE with nothing in between: what any proxy of a Chat Completions server has to do, done plainly.

    python -m tests.bench.chat_relay URL

What came together is one piece of text and one write. Nothing is checked, parsed, stored or logged.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import aiohttp
import orjson
from aiohttp import web

from .chat_server import serve

URL = web.AppKey("url", str)
SESSION = web.AppKey("session", aiohttp.ClientSession)


async def respond(request: web.Request) -> web.StreamResponse:
    asked = orjson.loads(await request.read())
    body = {"model": asked["model"], "stream": True, "messages": [{"role": "user", "content": asked["input"]}]}
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    async with request.app[SESSION].post(f"{request.app[URL]}/chat/completions", data=orjson.dumps(body)) as upstream:
        await response.prepare(request)
        begun = b""
        async for data in upstream.content.iter_any():
            *lines, begun = (begun + data).split(b"\n")
            chunks = [orjson.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
            text = "".join([choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]])
            if text:
                event = {"type": "response.output_text.delta", "item_id": "msg_0", "output_index": 0, "delta": text}
                await response.write(b"event: response.output_text.delta\ndata: %b\n\n" % orjson.dumps(event))
    await response.write(b'event: response.completed\ndata: {"type":"response.completed"}\n\n')
    return response


async def session(app: web.Application) -> AsyncIterator[None]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as app[SESSION]:
        yield


def main(url: str) -> None:
    app = web.Application()
    app[URL] = url
    app.cleanup_ctx.append(session)
    app.router.add_post("/v1/responses", respond)
    asyncio.run(serve("chat relay", app))


if __name__ == "__main__":
    main(sys.argv[1])
