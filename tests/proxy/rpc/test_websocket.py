from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve

from proxy.rpc.websocket import WebSocketTransport
from tests.support.heard import next_heard


async def echo(connection: ServerConnection) -> None:
    async for frame in connection:
        if frame == "bye":
            return
        await connection.send(frame)


@pytest.fixture(params=["tcp", "unix", "unix with slashes"])
async def address(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    if request.param == "tcp":
        async with serve(echo, "127.0.0.1", 0, max_size=None) as server:
            host, port = next(iter(server.sockets)).getsockname()[:2]
            yield f"ws://{host}:{port}"
    else:
        path = tmp_path / "socket"
        async with serve(echo, unix=True, path=str(path), max_size=None):
            yield f"unix:{path}" if request.param == "unix" else f"unix://{path}"


async def test_a_line_is_a_frame_without_its_end(address: str) -> None:
    transport = await WebSocketTransport.connect(address)
    await transport.send('{"text":"ä"}\n'.encode())
    assert await next_heard(transport) == '{"text":"ä"}\n'.encode()
    await transport.close()


async def test_a_frame_of_eight_megabytes_passes(address: str) -> None:
    transport = await WebSocketTransport.connect(address)
    await transport.send(b"x" * 2**23 + b"\n")
    assert len(await next_heard(transport)) == 2**23 + 1
    await transport.close()


async def test_the_other_sides_end_is_the_end(address: str) -> None:
    transport = await WebSocketTransport.connect(address)
    await transport.send(b"bye\n")
    assert await next_heard(transport) == b""
    with pytest.raises(ConnectionError):
        await transport.send(b"anyone?\n")
    await transport.close()
    await transport.close()
    assert transport.describe_end() == "the connection closed (1000)"


async def test_where_nobody_listens_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"."):
        await WebSocketTransport.connect("ws://127.0.0.1:9")
    with pytest.raises(OSError, match=r"."):
        await WebSocketTransport.connect(f"unix:{tmp_path / 'none'}")
    with pytest.raises(OSError, match=r"."):
        await WebSocketTransport.connect("http://127.0.0.1:9")


async def test_an_aborted_connection_is_over_at_once(address: str) -> None:
    transport = await WebSocketTransport.connect(address)
    transport.abort()
    assert await next_heard(transport) == b""
    assert await transport.resident_bytes() is None
    await transport.close()
