"""nginx, as the how-to sets it up, in front of two servers of which one refuses: who is sent on, and who is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proxy.backends.answers import OVERLOAD, unavailable
from proxy.errors import BackendError
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.codex_programs import ROOT
from tests.support.memory_backend import MemoryBackend
from tests.support.nginx import free_port, nginx, wants_nginx

pytestmark = wants_nginx

CONFIGURATION = (ROOT / "docs/howto/many-machines/nginx.conf").read_text("utf-8")

OVERLOADED = BackendError("The service is overloaded.", **OVERLOAD)
STARTING = unavailable("codex is still starting.", 5)

# How often each of the bad requests is sent, so that it reaches both servers in turn.
TIMES = 6


class Site:
    """Two servers, each with a backend that plays what is pushed, behind one nginx. `url` is its base URL."""

    def __init__(self, url: str, session: aiohttp.ClientSession, backends: list[MemoryBackend]) -> None:
        self.url = url
        self.session = session
        self.backends = backends

    @property
    def asked(self) -> int:
        return sum(len(backend.prompts) for backend in self.backends)

    async def post(self, path: str, **more: Any) -> tuple[int, dict[str, Any], aiohttp.typedefs.LooseHeaders]:
        async with self.session.post(f"{self.url}/{path}", json={"model": "m", **more}) as response:
            return response.status, await response.json(), response.headers


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        configuration, backends = CONFIGURATION, []
        for name in ("tagcall-1", "tagcall-2"):
            backend = MemoryBackend([])
            url = await stack.enter_async_context(running_server(Settings(port=0, store="memory"), backend))
            configuration = configuration.replace(f"{name}:8787", url.removeprefix("http://").removesuffix("/v1"))
            backends.append(backend)
        port = free_port()
        configuration = configuration.replace("listen 8787", f"listen 127.0.0.1:{port}")
        await stack.enter_async_context(nginx(configuration, tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Site(f"http://127.0.0.1:{port}/v1", session, backends)


@pytest.mark.parametrize("path", ["responses", "chat/completions"])
async def test_what_no_other_server_can_better_is_asked_once_and_shuts_nobody_out(site: Site, path: str) -> None:
    body: dict[str, Any] = {"input": "hi"} if path == "responses" else {"messages": [{"role": "user", "content": "hi"}]}
    for backend in site.backends:
        backend.answers += [OVERLOADED] * TIMES
    for number in range(1, TIMES + 1):
        status, told, _ = await site.post(path, **body)
        assert (status, told["error"]["code"]) == (503, "server_is_overloaded")
        assert site.asked == number
    for backend in site.backends:
        backend.answers[:] = ["fine"] * TIMES
    assert [(await site.post(path, **body))[0] for _ in range(TIMES)] == [200] * TIMES


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_one_server_cannot_take_now_is_taken_by_the_other(site: Site, *, stream: bool) -> None:
    starting, well = site.backends
    starting.answers.extend([STARTING] * 2 * TIMES)
    well.answers = ["fine"] * TIMES
    for _ in range(TIMES):
        body = {"model": "m", "input": "hi" * 50_000, "stream": stream}
        async with site.session.post(f"{site.url}/responses", json=body) as response:
            assert response.status == 200
            assert "fine" in await response.text()
    assert len(well.prompts) == TIMES


async def test_when_no_server_can_the_client_is_told_why_in_its_own_form(site: Site) -> None:
    for backend in site.backends:
        backend.answers.extend([STARTING] * 4)
    status, told, headers = await site.post("responses", input="hi")
    assert (status, told["error"]["code"]) == (503, "backend_unavailable")
    assert "X-Accel-Redirect" not in headers
    assert site.asked <= 3


async def test_it_starts_also_when_a_server_is_not_there_yet(tmp_path: Path) -> None:
    backend, port = MemoryBackend([]), free_port()
    backend.answers.extend(["fine"] * TIMES)
    async with running_server(Settings(port=0, store="memory"), backend) as url, aiohttp.ClientSession() as session:
        address = url.removeprefix("http://").removesuffix("/v1")
        configuration = CONFIGURATION.replace("tagcall-1:8787", address).replace("tagcall-2:", "nowhere.invalid:")
        async with nginx(configuration.replace("listen 8787", f"listen 127.0.0.1:{port}"), tmp_path):
            for _ in range(TIMES):
                body = {"model": "m", "input": "hi"}
                async with session.post(f"http://127.0.0.1:{port}/v1/responses", json=body) as response:
                    assert response.status == 200
