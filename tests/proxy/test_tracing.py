"""What carries a request through the traces of others: to the log, back to its client, to the model's server."""

from __future__ import annotations

import aiohttp
import pytest
from pytest_aiohttp import AiohttpServer
from structlog.testing import capture_logs

from proxy.server import running_server
from proxy.settings import Settings
from proxy.tracing import trace_of
from tests.support.scripted_chat import ScriptedChat

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.mark.parametrize("background", [False, True])
async def test_a_trace_and_the_clients_own_id_are_carried_through(
    aiohttp_server: AiohttpServer, *, background: bool
) -> None:
    chat = ScriptedChat()
    server = await aiohttp_server(chat.app)
    settings = Settings(port=0, store="memory", backend=str(server.make_url("/v1")))
    headers = {"traceparent": PARENT, "X-Client-Request-Id": "mine-1"}
    with capture_logs() as logs:
        async with running_server(settings) as url, aiohttp.ClientSession(headers=headers) as session:
            body = {"model": "m", "input": "hi", "background": background, "stream": True}
            async with session.post(f"{url}/responses", json=body) as response:
                assert response.headers["x-client-request-id"] == "mine-1"
                assert b"response.completed" in await response.read()
    (asked,) = chat.requests
    assert (asked.headers["traceparent"], asked.headers["x-client-request-id"]) == (PARENT, "mine-1")
    (line,) = [line for line in logs if line.get("path") == "/responses"]
    assert (line["trace"], line["client_request"]) == (TRACE, "mine-1")


@pytest.mark.parametrize(
    "parent", ["", "00-1-2-3", f"00-{TRACE}-b7ad6b7169203331-01\n", PARENT.upper(), "x" * 9000, f"{PARENT}-\udcff"]
)
def test_what_is_no_trace_is_none(parent: str) -> None:
    trace = trace_of({"traceparent": parent, "x-client-request-id": "two words"})
    assert (trace.id, trace.headers()) == ("", {})
