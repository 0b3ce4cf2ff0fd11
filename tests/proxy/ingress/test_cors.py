"""What a browser, and Obsidian's renderer, may read; what a foreign page is told."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from proxy.errors import BackendError
from proxy.ingress.inspect.page import ROOM
from proxy.ingress.routes import ROUTES
from tests.support.http_client import client, error_of
from tests.support.patience import PATIENCE

OBSIDIAN = "app://obsidian.md"
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

# As Chromium asks for the official JavaScript client.
ASKED = (
    "authorization,content-type,http-referer,openai-beta,x-stainless-arch,x-stainless-helper-method,x-stainless-lang,"
    "x-stainless-os,x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,"
    "x-stainless-runtime-version,x-title"
)
PREFLIGHT = {"Origin": OBSIDIAN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": ASKED}

# No page but its own asks for what is under ROOM.
PATHS = ["/", "/nothing", "/embeddings", *sorted(path for path in ROUTES if not path.startswith(ROOM))]


@pytest.mark.parametrize("path", PATHS)
async def test_a_preflight_is_answered_on_every_path_without_a_key(path: str) -> None:
    async with client(api_key=("k",)) as (session, url):
        for target in (url + path, url.removesuffix("/v1") + path):
            async with session.options(target, headers=PREFLIGHT) as response:
                assert response.status == 204
                headers = response.headers
                assert headers["Access-Control-Allow-Origin"] == OBSIDIAN
                assert headers["Access-Control-Allow-Headers"] == ASKED
                assert {"GET", "POST", "DELETE"} <= set(headers["Access-Control-Allow-Methods"].split(", "))
                assert int(headers["Access-Control-Max-Age"]) >= 600
                assert headers["Vary"] == "Origin"
                assert "Access-Control-Allow-Credentials" not in headers
                assert "Access-Control-Allow-Private-Network" not in headers


async def test_no_other_page_may_ask_for_what_the_servers_own_asks_for() -> None:
    async with client() as (session, url):
        async with session.options(url + ROOM + "turns", headers=PREFLIGHT) as response:
            assert response.status == 403


async def test_obsidian_may_read_every_answer() -> None:
    busy = BackendError("Slow down.", status=429, retry_after=3)
    key = {"Authorization": "Bearer k", "Origin": OBSIDIAN}
    requests: list[tuple[str, str, dict[str, Any], int]] = [
        ("POST", "/v1/chat/completions", {"json": CHAT, "headers": key}, 200),
        ("POST", "/v1/chat/completions", {"json": {**CHAT, "stream": True}, "headers": key}, 200),
        ("POST", "/v1/responses", {"json": {"model": "m", "input": "hi", "stream": True}, "headers": key}, 200),
        ("POST", "/v1/chat/completions", {"json": CHAT, "headers": key}, 429),
        ("POST", "/v1/chat/completions", {"json": CHAT, "headers": key}, 500),
        ("GET", "/v1/models", {"headers": key}, 200),
        ("GET", "/", {"headers": {"Origin": OBSIDIAN}}, 200),
        ("POST", "/v1/chat/completions", {"json": {}, "headers": key}, 400),
        ("POST", "/v1/chat/completions", {"json": CHAT, "headers": {"Origin": OBSIDIAN}}, 401),
        ("POST", "/v1/embeddings", {"json": {}, "headers": key}, 404),
        ("PUT", "/v1/models", {"headers": key}, 405),
        ("POST", "/v1/chat/completions", {"json": {**CHAT, "x": "x" * 2000}, "headers": key}, 413),
        ("POST", "/v1/chat/completions", {"data": b"{}", "headers": {**key, "Content-Type": "text/plain"}}, 415),
        ("GET", "/v1/models", {"headers": {**key, "Host": "evil.example"}}, 421),
    ]
    # What is left out is a fault of ours.
    async with client("Hello", "Hello", "Hello", busy, api_key=("k",), max_body=1000) as (session, url):
        for method, path, request, status in requests:
            async with session.request(method, url.removesuffix("/v1") + path, **request) as response:
                await response.read()
                assert (response.status, path) == (status, path)
                assert response.headers["Access-Control-Allow-Origin"] == OBSIDIAN
                assert response.headers["Vary"] == "Origin"
                exposed = response.headers["Access-Control-Expose-Headers"].split(", ")
                assert {"x-request-id", "retry-after"} <= set(exposed)


@pytest.mark.parametrize(
    "origin",
    [
        "*", "https://evil.example", "http://localhost:5173", "https://localhost", "http://127.0.0.1",
        "app://obsidian.md.evil.example", "app://obsidian.mdx", "app://OBSIDIAN.md", "http://localhost/",
        "capacitor://localhost:80",
    ],
)  # fmt: skip
async def test_a_preflight_of_a_foreign_page_is_refused_and_says_why(origin: str) -> None:
    async with client() as (session, url):
        headers = {**PREFLIGHT, "Origin": origin, "Access-Control-Request-Private-Network": "true"}
        async with session.options(f"{url}/chat/completions", headers=headers) as response:
            assert response.status == 403
            assert not [name for name in response.headers if name.lower().startswith("access-control-")]
            assert response.headers["Vary"] == "Origin"
            error = await error_of(response)
    assert error["code"] == "origin_not_allowed"
    assert f"--allow-origin and {origin}." in error["message"]


async def test_a_page_without_an_origin_is_refused_without_advice() -> None:
    """There is no option that would let it in: every sandboxed frame of every site has this origin."""
    async with client() as (session, url):
        async with session.options(f"{url}/models", headers={**PREFLIGHT, "Origin": "null"}) as response:
            assert response.status == 403
            assert "--allow-origin" not in (await error_of(response))["message"]


async def test_the_log_says_which_page_was_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The page itself is not told by its browser."""
    async with client() as (session, url):
        async with session.get(f"{url}/models", headers={"Origin": "https://evil.example"}) as response:
            assert response.status == 403
        async with session.get(f"{url}/models", headers={"Origin": OBSIDIAN}) as response:
            assert response.status == 200
    refused, served = capsys.readouterr().out.splitlines()
    assert "https://evil.example" in refused
    assert OBSIDIAN not in served


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://notes.example", "https://notes.example"),
        ("https://notes.example/", "https://notes.example"),
        ("file://", "file://"),
        ("chrome-extension://abcdefghijklmnop", "chrome-extension://abcdefghijklmnop"),
    ],
)
async def test_another_origin_is_let_in_by_option(given: str, origin: str) -> None:
    async with client(allow_origin=(given,)) as (session, url):
        async with session.options(f"{url}/models", headers={**PREFLIGHT, "Origin": origin}) as response:
            assert response.headers["Access-Control-Allow-Origin"] == origin


@pytest.mark.parametrize("site", ["none", "same-origin", None])
async def test_who_is_no_page_needs_no_origin(site: str | None) -> None:
    async with client() as (session, url):
        headers = {} if site is None else {"Sec-Fetch-Site": site}
        async with session.get(f"{url}/models", headers=headers) as response:
            assert response.status == 200
            assert "Access-Control-Allow-Origin" not in response.headers


async def test_obsidian_is_another_site_and_welcome() -> None:
    async with client() as (session, url):
        headers = {"Origin": OBSIDIAN, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
        async with session.get(f"{url}/models", headers=headers) as response:
            assert response.status == 200


@pytest.mark.parametrize("asked", ["", "a: b", "x\ty", "<script>"])
async def test_what_is_no_list_of_names_is_not_repeated(asked: str) -> None:
    async with client() as (session, url):
        headers = {**PREFLIGHT, "Access-Control-Request-Headers": asked}
        async with session.options(f"{url}/models", headers=headers) as response:
            assert response.status == 204
            assert "Access-Control-Allow-Headers" not in response.headers


async def test_bytes_that_are_no_text_do_not_break_a_preflight() -> None:
    async with client() as (_, url):
        host, _, port = url.removeprefix("http://").removesuffix("/v1").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: app://obsidian.md\r\n"
            b"Access-Control-Request-Headers: \xff\xfe\r\n\r\n"
        )
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert head.startswith(b"HTTP/1.1 204")
    assert b"Access-Control-Allow-Headers" not in head


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {}])
async def test_nothing_is_allowed_to_an_origin_that_is_not(headers: dict[str, str]) -> None:
    async with client() as (session, url), session.get(f"{url}/models", headers=headers) as response:
        assert response.headers["Vary"] == "Origin"
        assert not [name for name in response.headers if name.lower().startswith("access-control-")]


async def test_an_error_before_a_stream_can_be_read_too() -> None:
    """Else the person sees "Failed to fetch" where the message would have helped."""
    error = BackendError("Run `tagcall login`.", status=401)
    async with client(error) as (session, url):
        headers = {"Origin": OBSIDIAN, "Content-Type": "application/json"}
        body = orjson.dumps({**CHAT, "stream": True})
        async with session.post(f"{url}/chat/completions", data=body, headers=headers) as response:
            assert response.headers["Access-Control-Allow-Origin"] == OBSIDIAN
            assert "tagcall login" in (await error_of(response))["message"]
