"""Finds out which base instructions codex sends on its own, by letting it send them to us.

The program runs for a moment in a home of its own, without our model table, in front of a loopback endpoint
that reads every request and refuses it. There is no other way to know: codex shortens its texts by what is
switched on, and the rule differs between versions.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from ...rpc import ChildTransport, Launch, RpcClient, RpcError, RpcObject
from .config import Provider, config_text
from .requests import answer_request, client_info

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Seconds for the whole measurement; a dozen models take about one.
MEASURE_TIMEOUT = 20.0
# Bytes of one request of codex; its largest tools come to 40 KB.
MAX_REQUEST = 4 * 2**20

REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
)


async def measure_base_instructions(program: Path, models: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """By model name, what the program puts before everything else. Names that it did not send are missing."""
    seen: dict[str, str] = {}
    complete = asyncio.Event()

    def see(body: RpcObject) -> None:
        text = _base_instructions(body)
        if text is not None:
            seen[str(body["model"])] = text
        if seen.keys() >= set(models):
            complete.set()

    try:
        with tempfile.TemporaryDirectory(prefix="tagcall-") as folder:
            async with asyncio.timeout(MEASURE_TIMEOUT), refusing_endpoint(see) as url:
                home = Path(folder)
                (home / "config.toml").write_text(config_text(Provider(upstream=url), MEASURE_TIMEOUT))
                launch = Launch(
                    [str(program), "app-server"], {**without_proxies(env), "CODEX_HOME": str(home)}, cwd=home
                )
                await _ask_each(launch, models, complete)
    except (OSError, RpcError, LookupError, TimeoutError) as error:
        log.warning("base_instructions_not_measured", error=str(error) or type(error).__name__, measured=len(seen))
    return seen


async def _ask_each(launch: Launch, models: Sequence[str], complete: asyncio.Event) -> None:
    client = RpcClient(
        await ChildTransport.start(launch), on_notification=lambda method, params: None, answer=answer_request
    )
    async with client.running():
        await client.request("initialize", {"clientInfo": client_info()}, deadline=MEASURE_TIMEOUT)
        client.notify("initialized")
        for model in models:
            start = {"model": model, "cwd": str(launch.cwd), "approvalPolicy": "never", "sandbox": "read-only"}
            thread = await client.request("thread/start", start, deadline=MEASURE_TIMEOUT)
            text = {"type": "text", "text": "measure"}
            turn = {"threadId": thread["thread"]["id"], "input": [text]}
            await client.request("turn/start", turn, deadline=MEASURE_TIMEOUT)
        await complete.wait()


def without_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would catch a request to this machine."""
    return {name: value for name, value in env.items() if not name.lower().endswith("_proxy")}


@asynccontextmanager
async def refusing_endpoint(see: Callable[[RpcObject], None]) -> AsyncIterator[str]:
    """The base URL of an endpoint that shows the body of each request to `see`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].split("\r\n")[0])
            body = orjson.loads(await reader.readexactly(min(length, MAX_REQUEST)))
            see(body)
            writer.write(REFUSAL)
            await writer.drain()
        except (OSError, ValueError, LookupError, TypeError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            log.debug("unreadable_measurement")
        finally:
            writer.close()

    # Not served at once: that would suspend with the server in nobody's hands, and a cancellation there leaks it.
    server = await asyncio.start_server(serve, "127.0.0.1", 0, start_serving=False)
    async with server:
        await server.start_serving()
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def _base_instructions(body: RpcObject) -> str | None:
    """`instructions`, or from 0.160 on the first developer message."""
    if body.get("instructions"):
        return str(body["instructions"])
    for item in body["input"]:
        if item.get("type") == "message" and item.get("role") == "developer":
            return str(item["content"][0]["text"])
    return None
