"""nginx, as the how-to sets it up, in front of two servers of which one refuses: who is sent on, and who is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proxy.backends.answers import OVERLOAD, unavailable
from proxy.errors import BackendError
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.memory_backend import MemoryBackend
from tests.support.nginx import wants_nginx
from tests.support.nginx_site import CONFIGURATION, NAMES, NginxSite, address_of, listening, nginx_site

pytestmark = wants_nginx

OVERLOADED = BackendError("The service is overloaded.", **OVERLOAD)
STARTING = unavailable("codex is still starting.", 5)

# How often each request is sent: enough to reach both servers.
TIMES = 6


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[NginxSite]:
    async with nginx_site(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("path", ["responses", "chat/completions"])
async def test_what_no_other_server_can_better_is_asked_once_and_shuts_nobody_out(site: NginxSite, path: str) -> None:
    body: dict[str, Any] = {"input": "hi"} if path == "responses" else {"messages": [{"role": "user", "content": "hi"}]}
    for backend in site.backends:
        backend.answers.extend([OVERLOADED] * TIMES)
    for number in range(1, TIMES + 1):
        status, told = await site.post(path, **body)
        assert (status, told["error"]["code"]) == (503, "server_is_overloaded")
        assert sum(site.asked) == number
    for backend in site.backends:
        backend.answers[:] = ["fine"] * TIMES
    assert [(await site.post(path, **body))[0] for _ in range(TIMES)] == [200] * TIMES


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_one_server_cannot_take_now_is_taken_by_the_other(site: NginxSite, *, stream: bool) -> None:
    starting, well = site.backends
    starting.answers.extend([STARTING] * 2 * TIMES)
    well.answers.extend(["fine"] * TIMES)
    for _ in range(TIMES):
        body = {"model": "m", "input": "hi" * 50_000, "stream": stream}
        async with site.session.post(f"{site.url}/responses", json=body) as response:
            assert response.status == 200
            assert "fine" in await response.text()
    assert site.asked[1] == TIMES


async def test_when_no_server_can_the_client_is_told_why_in_its_own_form(site: NginxSite) -> None:
    for backend in site.backends:
        backend.answers.extend([STARTING] * 4)
    async with site.session.post(f"{site.url}/responses", json={"model": "m", "input": "hi"}) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (503, "backend_unavailable")
        assert "X-Accel-Redirect" not in response.headers
    assert sum(site.asked) <= 3


async def test_it_starts_also_when_a_server_is_not_there_yet(tmp_path: Path) -> None:
    backend = MemoryBackend([])
    backend.answers.extend(["fine"] * TIMES)
    async with running_server(Settings(port=0, store="memory"), backend) as url, aiohttp.ClientSession() as session:
        configuration = CONFIGURATION.replace(NAMES[0], address_of(url)).replace(NAMES[1], "nowhere.invalid:8787")
        async with listening(configuration, tmp_path) as base:
            for _ in range(TIMES):
                async with session.post(f"{base}/responses", json={"model": "m", "input": "hi"}) as response:
                    assert response.status == 200
