"""The server as a client meets it, in front of a backend in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import aiohttp
import orjson
import pytest

from proxy.contracts import Health, TextPiece
from proxy.errors import BackendError
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.clock import settle
from tests.support.fake_redis import FakeRedis
from tests.support.http_client import client, error_of
from tests.support.memory_backend import MemoryBackend
from tests.support.patience import PATIENCE
from tests.support.talking import GatedBackend, SilentBackend

BODY: dict[str, Any] = {"model": "m", "input": "hi"}
OBSIDIAN = "app://obsidian.md"


@pytest.mark.parametrize(
    "path", ["/v1/responses", "/responses", "/v1/responses/", "//v1//responses", "/responses/", "/v1//responses//"]
)
async def test_every_spelling_of_a_path_is_served(path: str) -> None:
    async with client("Hello") as (session, url):
        async with session.post(url.removesuffix("/v1") + path, json=BODY) as response:
            assert response.status == 200
            body = await response.json()
    assert body["output"][0]["content"][0]["text"] == "Hello"


async def test_a_stream_is_events_with_their_types_and_one_done() -> None:
    async with (
        client("Hello") as (session, url),
        session.post(f"{url}/responses", json={**BODY, "stream": True}) as response,
    ):
        assert response.content_type == "text/event-stream"
        assert "Content-Encoding" not in response.headers
        blocks = (await response.text()).split("\n\n")
    assert blocks[-2:] == ["data: [DONE]", ""]
    for block in blocks[:-2]:
        event, data = block.split("\n")
        assert event == "event: " + orjson.loads(data.removeprefix("data: "))["type"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_backend_error_before_the_first_event_is_an_http_error(stream: bool) -> None:
    error = BackendError("Slow down.", status=429, type="requests", code="rate_limit_exceeded", retry_after=3)
    async with client(error) as (session, url):
        async with session.post(f"{url}/responses", json={**BODY, "stream": stream}) as response:
            assert response.status == 429
            assert response.headers["retry-after"] == "3"
            assert (await error_of(response))["code"] == "rate_limit_exceeded"


async def test_a_fault_of_ours_is_a_500_with_an_openai_body_and_no_trace() -> None:
    async with client() as (session, url), session.post(f"{url}/responses", json=BODY) as response:
        assert response.status == 500
        assert "Traceback" not in (await error_of(response))["message"]


async def test_the_model_list_is_openais() -> None:
    async with client() as (session, url), session.get(f"{url}/models") as response:
        assert await response.json() == {
            "object": "list",
            "data": [{"id": "scripted", "object": "model", "created": 1_700_000_000, "owned_by": "tests"}],
        }


async def test_health_and_readiness() -> None:
    async with client() as (session, url):
        root = url.removesuffix("/v1")
        for path in ("/healthz", "/readyz", "/"):
            async with session.get(root + path) as response:
                assert response.status == 200


async def test_a_backend_that_is_not_ready_says_why() -> None:
    backend = MemoryBackend([], problem="Run `tagcall login`.")
    async with running_server(Settings(port=0), backend) as url, aiohttp.ClientSession() as session:
        async with session.get(url.removesuffix("/v1") + "/readyz") as response:
            assert response.status == 503
            assert (await response.json())["problem"] == "Run `tagcall login`."


class StartingBackend(MemoryBackend):
    """Says how it is once `ready` is set."""

    def __init__(self) -> None:
        super().__init__([])
        self.ready = asyncio.Event()

    async def health(self) -> Health:
        await self.ready.wait()
        return Health(None, "1.0")


async def test_readiness_is_told_at_once_while_the_backend_starts() -> None:
    backend = StartingBackend()
    async with running_server(Settings(port=0), backend) as url, aiohttp.ClientSession() as session:
        for status in (503, 200):
            async with session.get(url.removesuffix("/v1") + "/readyz") as response:
                assert response.status == status
                assert (await response.json())["backend"] == (None if status == 503 else "1.0")
            backend.ready.set()


GONE = BackendError("The service cannot be reached.", status=502, code="backend_error")


async def test_the_trouble_of_the_provider_is_told_after_several_turns_and_takes_no_server_away() -> None:
    busy = BackendError("Slow down.", status=429, code="rate_limit_exceeded")
    told = []
    async with client(GONE, GONE, "Hello.", GONE, busy, GONE, GONE, "Hello.") as (session, url):
        root = url.removesuffix("/v1")
        for _ in range(8):
            async with session.post(url + "/responses", json={"model": "m", "input": "hi"}):
                pass
            async with session.get(root + "/readyz") as response:
                assert response.status == 200
                told.append((await response.json()).get("upstream"))
            async with session.get(root + "/metrics") as response:
                up = "tagcall_upstream_up 1.0" in await response.text()
            assert up is (told[-1] is None)
    assert told == [None, None, None, None, None, None, "The service cannot be reached.", None]


async def test_nobody_remembers_for_long_that_the_provider_had_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.readiness.REMEMBERED", 0.0)
    async with client(GONE, GONE, GONE) as (session, url):
        for _ in range(3):
            async with session.post(url + "/responses", json={"model": "m", "input": "hi"}):
                pass
        async with session.get(url.removesuffix("/v1") + "/readyz") as response:
            assert "upstream" not in await response.json()


async def test_a_store_that_is_away_is_told_and_takes_no_server_away() -> None:
    async with FakeRedis() as redis, client("Hi.", "Hi.", store=redis.url) as (session, url):
        root = url.removesuffix("/v1")
        for up in (True, False):
            async with session.post(url + "/responses", json={"model": "m", "input": "hi"}) as response:
                assert response.status == 200
            async with session.get(root + "/readyz") as response:
                assert (response.status, "store" in await response.json()) == (200, not up)
            async with session.get(root + "/metrics") as response:
                assert f"tagcall_store_up {float(up)}" in await response.text()
            await redis.stop()


async def test_a_server_that_is_about_to_end_is_not_ready() -> None:
    backend = GatedBackend(["one"])
    async with aiohttp.ClientSession() as session, aiohttp.ClientSession() as other, asyncio.TaskGroup() as group:
        ended = asyncio.Event()

        async def serve(started: asyncio.Future[str]) -> None:
            async with running_server(Settings(port=0, store="memory"), backend) as url:
                started.set_result(url)
                await ended.wait()

        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = group.create_task(serve(started))
        url = await started
        async with session.get(url.removesuffix("/v1") + "/healthz"):
            pass  # whose connection stays
        asked = group.create_task(_post(other, url, stream=False))
        await backend.asked.wait()
        ended.set()
        await settle()
        async with session.get(url.removesuffix("/v1") + "/readyz") as response:
            assert (response.status, (await response.json())["problem"]) == (503, "The server is about to end.")
        backend.gate.set()
        await asked
        await serving


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/nothing", 404), ("PUT", "/v1/responses", 405)])
async def test_what_is_not_served_is_an_openai_error(method: str, path: str, status: int) -> None:
    async with client() as (session, url), session.request(method, url.removesuffix("/v1") + path) as response:
        assert response.status == status
        assert (await error_of(response))["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/chat/completions", {"POST", "OPTIONS"}),
        ("GET", "/chat/completions", {"POST", "OPTIONS"}),
        ("POST", "/models", {"GET", "HEAD", "OPTIONS"}),
        ("PATCH", "/responses/resp_1", {"GET", "HEAD", "DELETE", "OPTIONS"}),
    ],
)
async def test_a_method_that_is_not_supported_is_told_which_are(method: str, path: str, allowed: set[str]) -> None:
    async with client() as (session, url), session.request(method, url + path) as response:
        assert (response.status, (await error_of(response))["code"]) == (405, "method_not_supported")
        assert set(response.headers["Allow"].split(", ")) == allowed


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
async def test_who_has_no_key_is_told_how_to_send_one(headers: dict[str, str]) -> None:
    async with client(api_key=("k",)) as (session, url), session.get(f"{url}/models", headers=headers) as response:
        assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "", "localhost.evil.example"])
@pytest.mark.parametrize("path", ["/v1/responses", "/healthz", "/"])
async def test_a_foreign_host_is_misdirected_on_every_route(host: str, path: str) -> None:
    async with client() as (session, url):
        async with session.get(url.removesuffix("/v1") + path, headers={"Host": host}) as response:
            assert response.status == 421


async def raw(url: str, request: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to bytes that no client would send."""
    host, _, port = url.removeprefix("http://").removesuffix("/v1").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"HTTP/1.1 100"):
                head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
            return int(head.split()[1]), await reader.readexactly(length)
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"OPTIONS * HTTP/1.1", 204),
        (b"GET /%ff%00%0a/x HTTP/1.1", 404),
        (b"GET /a%0ab HTTP/1.1", 404),
        (b"PATCH /v1/responses HTTP/1.1", 405),
        (b"GET http://evil.example/v1/nothing HTTP/1.1", 421),
        (b"GET http://127.0.0.1/v1/nothing HTTP/1.1", 404),
    ],
)
async def test_an_odd_request_target_is_answered_by_us(line: bytes, status: int) -> None:
    async with client() as (_, url):
        got, body = await raw(url, line + b"\r\nHost: 127.0.0.1\r\n\r\n")
    assert got == status
    assert not body or set(orjson.loads(body)) == {"error"}


@pytest.mark.parametrize("headers", [b"Host: [::1]evil.com", b"Host: 127.0.0.1@evil.com", b"Host: a b"])
async def test_a_host_that_is_none_is_misdirected(headers: bytes) -> None:
    async with client() as (_, url):
        status, _body = await raw(url, b"GET /healthz HTTP/1.1\r\n" + headers + b"\r\n\r\n")
    assert status in {400, 421}


async def test_two_origins_are_one_too_many() -> None:
    origins = b"Origin: app://obsidian.md\r\nOrigin: http://evil.example\r\n\r\n"
    async with client() as (_, url):
        assert (await raw(url, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + origins))[0] == 403


@pytest.mark.parametrize("expectation", [b"100-continue", b"a miracle"])
async def test_an_expectation_does_not_keep_a_request_from_its_answer(expectation: bytes) -> None:
    body = orjson.dumps(BODY)
    head = b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: "
    length = b"\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with client("Hello") as (_, url):
        assert (await raw(url, head + expectation + length + body))[0] == 200


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
async def test_a_foreign_page_is_kept_out_before_any_work(headers: dict[str, str]) -> None:
    async with client() as (session, url), session.post(f"{url}/responses", json=BODY, headers=headers) as response:
        assert response.status == 403
        assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize("origin", [OBSIDIAN, "capacitor://localhost", "http://localhost"])
async def test_obsidian_may_read_answers_and_errors(origin: str) -> None:
    async with client("Hello") as (session, url):
        for body, status in ((BODY, 200), ({}, 400)):
            async with session.post(f"{url}/responses", json=body, headers={"Origin": origin}) as response:
                assert response.status == status
                assert response.headers["Access-Control-Allow-Origin"] == origin
                assert response.headers["Vary"] == "Origin"


async def test_a_preflight_needs_no_key_and_echoes_what_is_asked_for() -> None:
    asked = "authorization,content-type,x-stainless-lang,x-new-header"
    async with client(api_key=("k",)) as (session, url):
        headers = {
            "Origin": OBSIDIAN,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": asked,
            "Access-Control-Request-Private-Network": "true",
        }
        async with session.options(f"{url}/responses", headers=headers) as response:
            assert response.status == 204
            assert response.headers["Access-Control-Allow-Origin"] == OBSIDIAN
            assert response.headers["Access-Control-Allow-Headers"] == asked
            assert response.headers["Access-Control-Allow-Private-Network"] == "true"
            assert "POST" in response.headers["Access-Control-Allow-Methods"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer k\u00e9y"}, 200),
        ({"Authorization": "bearer k\u00e9y"}, 200),
        ({"x-api-key": "k\u00e9y"}, 200),
        ({"Authorization": "Bearer other"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({}, 401),
    ],
)
async def test_a_key_that_is_set_is_demanded(headers: dict[str, str], status: int) -> None:
    async with client("Hello", api_key=("k\u00e9y",)) as (session, url):
        async with session.post(f"{url}/responses", json=BODY, headers=headers) as response:
            assert response.status == status


async def test_those_who_watch_over_the_process_need_no_key() -> None:
    async with client(api_key=("k",)) as (session, url):
        for path, status in (("/healthz", 200), ("/readyz", 200), ("/", 200), ("/v1/models", 401)):
            async with session.get(url.removesuffix("/v1") + path) as response:
                assert response.status == status


@pytest.mark.parametrize(("name", "status"), [("x" * 512, 200), ("x" * 513, 400), ("n\u00e4me", 400)])
async def test_a_clients_name_for_its_request_is_short_and_ascii(name: str, status: int) -> None:
    async with (
        client("Hello") as (session, url),
        session.post(f"{url}/responses", json=BODY, headers={"X-Client-Request-Id": name}) as response,
    ):
        assert response.status == status
        if status == 400:
            assert (await error_of(response))["param"] == "x-client-request-id"


async def test_every_answer_names_the_version_of_the_api() -> None:
    async with client("Hello") as (session, url):
        for body in (BODY, {}, {**BODY, "stream": True}):
            async with session.post(f"{url}/responses", json=body) as response:
                assert response.headers["openai-version"] == "2020-10-01"


async def test_any_key_will_do_when_none_is_set() -> None:
    async with client("Hello") as (session, url):
        async with session.post(f"{url}/responses", json=BODY, headers={"Authorization": "Bearer x"}) as response:
            assert response.status == 200


async def test_only_json_is_read() -> None:
    async with client() as (session, url):
        async with session.post(f"{url}/responses", data=b"{}", headers={"Content-Type": "text/plain"}) as response:
            assert response.status == 415
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        async with session.post(f"{url}/responses", data=b"x", headers=headers) as response:
            assert response.status == 415


async def test_a_body_that_is_too_large_is_refused() -> None:
    async with client(max_body=1000) as (session, url):
        async with session.post(f"{url}/responses", json={**BODY, "input": "x" * 2000}) as response:
            assert response.status == 413
            assert "--max-body" in (await error_of(response))["message"]


async def test_a_client_that_goes_away_ends_the_backends_turn() -> None:
    backend = SilentBackend()
    async with running_server(Settings(port=0), backend) as url, aiohttp.ClientSession() as session:
        for stream in (True, False):
            request = asyncio.TaskGroup()
            backend.asked.clear()
            backend.left.clear()
            async with request:
                task = request.create_task(_post(session, url, stream=stream))
                async with asyncio.timeout(PATIENCE):
                    await backend.asked.wait()
                task.cancel()
            async with asyncio.timeout(PATIENCE):
                await backend.left.wait()


async def _post(session: aiohttp.ClientSession, url: str, *, stream: bool) -> None:
    async with session.post(f"{url}/responses", json={**BODY, "stream": stream}) as response:
        await response.read()


async def test_a_fault_in_mid_stream_still_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    async with client("Hello") as (session, url):
        monkeypatch.setattr("proxy.ingress.responses.keep", fail)
        async with session.post(f"{url}/responses", json={**BODY, "stream": True}) as response:
            async with asyncio.timeout(PATIENCE):
                text = await response.text()
    *_, failed, done, _ = text.split("\n\n")
    assert failed.startswith("event: response.failed\n")
    assert done == "data: [DONE]"
    assert "ZeroDivision" not in text


async def test_a_server_that_stops_tells_those_whose_answers_did_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.server.DRAIN", 0.05)
    async with aiohttp.ClientSession() as session:
        async with running_server(Settings(port=0), EndlessBackend([])) as url:
            response = await session.post(f"{url}/responses", json={**BODY, "stream": True})
            begun = await response.content.readuntil(b"response.output_text.delta")
        text = (begun + await response.read()).decode()
    assert "event: response.failed" in text
    assert "shutting down" in text


class EndlessBackend(MemoryBackend):
    """Says one word and no more, until it is left itself."""

    async def __aenter__(self) -> Self:
        self.leaving = asyncio.Event()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.leaving.set()

    @asynccontextmanager
    async def stream(self, prompt: object) -> AsyncIterator[Any]:
        async def batches() -> AsyncIterator[Any]:
            yield [TextPiece("word")]
            await self.leaving.wait()
            raise BackendError("The proxy is shutting down.", status=503)

        yield batches()
