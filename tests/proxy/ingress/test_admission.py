"""Who is let in: on every route, before the body is read and before any work."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import aiohttp
import orjson
import pytest

from proxy.errors import RequestError
from proxy.ingress.admission import Admission
from proxy.ingress.inspect.page import OPEN, ROOM
from proxy.ingress.routes import KEYLESS, ROUTES, UNSERVED
from proxy.logs import configure
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import raw
from tests.support.memory_backend import MemoryBackend

pytestmark = pytest.mark.usefixtures("no_lingering")

BODY: dict[str, Any] = {"model": "m", "input": "hi"}
PATHS = [re.sub(r"\{[^}]*\}", "x", route) for route in ROUTES] + ["/nothing", *(f"/{name}" for name in UNSERVED)]

METHODS = ("GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS")
UPGRADE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[tuple[MemoryBackend, aiohttp.ClientSession, str]]:
    backend = MemoryBackend(["Hello"])
    async with running_server(Settings(port=0, store="memory", **settings), backend) as url:
        async with aiohttp.ClientSession() as session:
            yield backend, session, url


async def test_a_foreign_host_is_misdirected_on_every_route_with_every_method() -> None:
    async with serving() as (backend, session, url):
        for path in PATHS:
            for method in METHODS:
                headers = {"Host": "evil.example", "Origin": "app://obsidian.md"}
                async with session.request(method, url + path, headers=headers) as response:
                    assert (response.status, method, path) == (421, method, path)
        for path in ("/responses", "/realtime?model=m"):
            async with session.get(url + path, headers={**UPGRADE, "Host": "evil.example"}) as response:
                assert response.status == 421
    assert backend.prompts == []


async def test_a_foreign_page_is_kept_out_of_every_route_with_every_method() -> None:
    async with serving() as (backend, session, url):
        for headers in (
            {"Origin": "https://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            for path in PATHS:
                for method in METHODS:
                    async with session.request(method, url + path, headers=headers) as response:
                        assert (response.status, method, path) == (403, method, path)
            for path in ("/responses", "/realtime?model=m"):
                async with session.get(url + path, headers={**UPGRADE, **headers}) as response:
                    assert response.status == 403
    assert backend.prompts == []


async def test_a_foreign_page_starts_no_turn_even_when_it_sends_just_what_a_client_would() -> None:
    """A browser would have asked first, and the answer would not be readable; the Origin alone must do."""
    async with serving() as (backend, session, url):
        for body, path in (
            (BODY, "responses"),
            ({"model": "m", "messages": [{"role": "user", "content": "x"}]}, "chat/completions"),
        ):
            for stream in (True, False):
                headers = {"Origin": "http://127.0.0.1:3000"}
                async with session.post(f"{url}/{path}", json={**body, "stream": stream}, headers=headers) as response:
                    assert response.status == 403
    assert backend.prompts == []


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 421),
        (b"GET http://localhost@evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 421),
        (b"GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421),
        (b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200),
        (b"GET //evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 421),
        (b"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 421),
        (b"GET /healthz HTTP/1.1\r\nHost: LOCALHOST.:1\r\nConnection: close\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost: [::1]:1\r\nConnection: close\r\n\r\n", 200),
        # A page may have an address of its own as its host, where it is served from another machine.
        (b"GET /healthz HTTP/1.1\r\nHost: 192.0.2.1\r\nConnection: close\r\n\r\n", 421),
        (b"GET /healthz HTTP/1.1\r\nHost: [2001:db8::1]:1\r\nConnection: close\r\n\r\n", 421),
    ],
)
async def test_a_host_is_one_and_ours_wherever_it_stands(head: bytes, status: int) -> None:
    async with serving() as (_, _, url):
        answer = await raw(url, head)
    assert int(answer.split()[1]) == status


@pytest.mark.parametrize(
    ("bound", "host", "served"),
    [
        ("127.0.0.1", "192.0.2.1:8787", False), ("127.0.0.1", "[2001:db8::1]", False), ("127.0.0.1", "127.0.0.1", True),
        ("localhost", "192.0.2.1", False), ("::1", "[::1]:8787", True), ("127.8.8.8", "127.8.8.8", True),
        ("127.8.8.8", "192.0.2.1", False), ("0.0.0.0", "192.0.2.1:8787", True), ("::", "[2001:db8::1]", True),
        ("192.0.2.1", "192.0.2.2", True), ("0.0.0.0", "evil.example", False), ("notes.lan", "Notes.LAN:8787", True),
        ("0.0.0.0", "[evil.example]", False), ("0.0.0.0", "192.0.2.1:8787:1", False),
    ],
)  # fmt: skip
def test_an_address_is_a_host_where_the_network_is_let_in(bound: str, host: str, served: bool) -> None:
    with nullcontext() if served else pytest.raises(RequestError, match="not served here") as refused:
        Admission(bind_host=bound).check_host(host)
    assert refused is None or refused.value.status == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Host: evil.example\r\n", 421),
        (b"Host: localhost\r\nOrigin: https://evil.example\r\n", 403),
        (b"Host: localhost\r\nOrigin: app://obsidian.md\r\nOrigin: http://localhost\r\n", 403),
        (b"Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403),
        (b"Host: localhost\r\n", 401),
        (b"Host: localhost\r\nAuthorization: Bearer k\r\nContent-Type: text/plain\r\n", 415),
        (b"Host: localhost\r\nAuthorization: Bearer k\r\nContent-Encoding: gzip\r\n", 415),
    ],
)
async def test_who_is_kept_out_is_told_before_the_body_has_come(headers: bytes, status: int) -> None:
    """And the connection is closed: nobody reads what is left of the body."""
    kind = b"" if b"Content-Type" in headers else b"Content-Type: application/json\r\n"
    head = b"POST /v1/responses HTTP/1.1\r\n" + headers + kind + b"Content-Length: 1000000\r\n\r\n"
    async with serving(api_key=("k",)) as (backend, _, url):
        answer = await raw(url, head)
    top, _, body = answer.partition(b"\r\n\r\n")
    assert int(answer.split()[1]) == status
    assert b"connection: close" in top.lower()
    assert set(orjson.loads(body)["error"]) == {"message", "type", "param", "code"}
    assert backend.prompts == []


async def test_a_key_is_demanded_on_every_route_but_those_for_watchers() -> None:
    async with serving(api_key=("k",)) as (_, session, url):
        for path in PATHS:
            for method in ("GET", "POST"):
                async with session.request(method, url + path) as response:
                    # What does something for the page wants its origin before it wants a key.
                    refused = 403 if method == "POST" and path.startswith(ROOM) else 401
                    free = path in KEYLESS or (path in OPEN and method == "GET")
                    assert (response.status == refused) == (not free), (method, path)


KEY = "sk-t\u00f6p-secret-0123456789"


@pytest.mark.parametrize(
    "header",
    [
        b"Authorization: Bearer \xff\xfe\xfd", b"Authorization: Bearer " + KEY.encode()[:-1], b"X-Api-Key: \xc3",
        b"Authorization: Bearer " + KEY.encode("latin-1"), b"Authorization: Basic " + KEY.encode(),
        b"Authorization: " + KEY.encode(), b"Authorization: Bearer " + KEY.encode() * 30,
        b"Cookie: key=" + KEY.encode(),
    ],
)  # fmt: skip
async def test_whatever_bytes_a_wrong_key_has_it_is_refused(header: bytes) -> None:
    async with serving(api_key=(KEY,)) as (_, _, url):
        head = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n\r\n"
        assert (await raw(url, head % header)).split()[1] == b"401"
        assert (await raw(url, head % (b"Authorization: Bearer " + KEY.encode()))).split()[1] == b"200"


@pytest.mark.parametrize("empty", ["Bearer", "Bearer ", "bearer   "])
async def test_an_empty_bearer_hides_no_other_key(empty: str) -> None:
    async with serving(api_key=("k",)) as (_, session, url):
        for name, status in (("X-Api-Key", 200), ("Api-Key", 200), ("X-Other", 401)):
            async with session.get(f"{url}/models", headers={"Authorization": empty, name: "k"}) as response:
                assert response.status == status


async def test_a_key_stands_in_no_log_line_and_no_error_and_is_not_taken_from_the_query(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    configure("debug", "json")
    given = "sk-given-5554443332221"
    answers = b""
    async with serving(api_key=(KEY,)) as (_, session, url):
        for query in (f"?api_key={KEY}", f"?key={KEY}", f"?token={KEY}", f"?access_token={KEY}"):
            async with session.get(f"{url}/models{query}") as response:
                assert response.status == 401
                answers += await response.read()
        for headers in ({"Authorization": f"Bearer {given}"}, {"X-Api-Key": given}, {"Api-Key": given},
                        {"Authorization": f"Bearer {KEY}"}):  # fmt: skip
            for path in ("/models", "/nothing", "/responses", "/models/none"):
                async with session.post(url + path, json={"model": 1}, headers=headers) as response:
                    answers += await response.read()
        # A header that cannot be read comes back from aiohttp itself.
        for bad in (b"\x00", b"\x01", b"\r\n folded"):
            answers += await raw(
                url,
                b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                + given.encode()
                + bad
                + b"\r\n\r\n",
            )
    written = "".join(capfd.readouterr()) + caplog.text
    for secret in (KEY, given, "sk-given", "sk-t"):
        assert secret not in written
        assert secret.encode() not in answers
