"""What a transport brings, for tests that ask for it."""

from __future__ import annotations

import asyncio

from proxy.rpc import Transport


async def all_heard(transport: Transport) -> bytes:
    """All that comes up to the end."""
    said: list[bytes] = []
    await transport.hear(said.append)
    return b"".join(said)


async def next_heard(transport: Transport) -> bytes:
    """The next bytes that come; b"" at the end. What comes behind them waits."""
    said: asyncio.Queue[bytes] = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        hearing = group.create_task(transport.hear(said.put_nowait))
        hearing.add_done_callback(lambda _: said.put_nowait(b""))
        data = await said.get()
        hearing.cancel()
    return data
