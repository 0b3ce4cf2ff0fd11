"""A Chat Completions server that plays answers by the recipe in the newest message, as `app_server` does.

python -m tests.bench.chat_server
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from .app_server import BURST, RECIPE, piece, stamped

# As llama.cpp's server writes one.
CHUNK = orjson.dumps(
    {
        "choices": [{"finish_reason": None, "index": 0, "delta": {"content": 0}}],
        "created": 1795353075,
        "id": "chatcmpl-2Hy5vK0uKB4Zu4g2Fkw8H2MgBeI1l6oP",
        "model": "bench",
        "system_fingerprint": "b0-unknown",
        "object": "chat.completion.chunk",
    }
)
BEGIN, END = (b"data: " + CHUNK + b"\n\n").split(b'"content":0')
USAGE = {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}}
LAST = b"".join(
    (
        b'data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}\n\n',
        b"data: " + orjson.dumps(USAGE) + b"\n\n",
        b"data: [DONE]\n\n",
    )
)


def deltas(make: Callable[[int], str], numbers: range) -> bytes:
    return b"".join([b'%b"content":%b%b' % (BEGIN, orjson.dumps(make(number)), END) for number in numbers])


async def answer(request: web.Request) -> web.StreamResponse:
    body: dict[str, Any] = orjson.loads(await request.read())
    ((pieces, every),) = RECIPE.findall(str(body["messages"][-1]["content"]))
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    if seconds := int(every) / 1000:
        loop = asyncio.get_running_loop()
        start = loop.time()
        for number in range(int(pieces)):
            await response.write(deltas(stamped, range(number, number + 1)))
            await asyncio.sleep(start + (number + 1) * seconds - loop.time())
    else:
        for number in range(0, int(pieces), BURST):
            await response.write(deltas(piece, range(number, min(int(pieces), number + BURST))))
    await response.write(LAST)
    return response


async def models(_: web.Request) -> web.Response:
    return web.json_response({"data": [{"id": "bench"}]})


async def serve(name: str, app: web.Application) -> None:
    """Until it is killed; it says where, as `tagcall serve` does."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sys.stdout.write(f"the {name} is ready on http://127.0.0.1:{runner.addresses[0][1]}/v1\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def main() -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    app.router.add_get("/v1/models", models)
    asyncio.run(serve("chat server", app))


if __name__ == "__main__":
    main()
