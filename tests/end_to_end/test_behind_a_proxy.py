"""Behind nginx and Caddy with TLS and a path, as docs/howto/behind-a-proxy.md has them."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from parser import write_call
from proxy.contracts import Prompt
from proxy.replay.key_placeholder import key_of
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.browser_page import browser_page
from tests.support.caddy import caddy, wants_caddy
from tests.support.certificates import Certificate, make_certificate
from tests.support.memory_backend import MemoryBackend
from tests.support.nginx import nginx, wants_nginx
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.support.talking import TOOLS, GatedBackend

pytestmark = [wants_nginx, wants_caddy]

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "behind-a-proxy.md").read_text("utf-8")
NAME = "notes.example"
KEY = "secret"
BODY: dict[str, Any] = {"model": "scripted", "input": "hi"}


def example(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def flags() -> dict[str, Any]:
    """What the page serves with, but for the file of the key."""
    line, *_ = re.findall(r"^    tagcall serve (.+)$", PAGE, re.MULTILINE)  # the first is the whole of it
    given = dict(re.findall(r"--([a-z-]+) (\S+)", line))
    assert given.keys() == {"base-path", "allow-host", "api-key-file"}
    return {"base_path": given["base-path"], "allow_host": (given["allow-host"],), "api_key": (KEY,)}


def put(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def nginx_with(port: int, upstream: str, certificate: Certificate | None, *, whole: bool) -> str:
    """The page's example on this machine. `whole`: it passes the path on."""
    text = put(example("nginx"), "proxy_pass http://127.0.0.1:8787;", f"proxy_pass {upstream}{'' if whole else '/'};")
    if certificate is None:
        text = re.sub(r" +ssl_certificate.*\n", "", text)
        return put(text, "listen 443 ssl", f"listen 127.0.0.1:{port}")
    text = put(text, "/etc/ssl/notes.example.pem", str(certificate.chain))
    text = put(text, "/etc/ssl/notes.example.key", str(certificate.key))
    return put(text, "listen 443 ssl", f"listen 127.0.0.1:{port} ssl")


def caddy_with(port: int, upstream: str, certificate: Certificate | None, *, whole: bool) -> str:
    upstream = upstream.removeprefix("http://")
    text = put(example("caddy"), "127.0.0.1:8787", upstream)
    if not whole:
        proxied = f"reverse_proxy /llm/* {upstream}"
        text = put(text, proxied, f"handle_path /llm/* {{\n reverse_proxy {upstream}\n }}")
    secured = "" if certificate is None else f"tls {certificate.chain} {certificate.key}"
    scheme = "http" if certificate is None else "https"
    return put(text, f"{NAME} {{", f"{scheme}://{NAME}:{port} {{\n bind 127.0.0.1\n {secured}")


@asynccontextmanager
async def running_nginx(servers: str, folder: Path, _port: int) -> AsyncIterator[None]:
    async with nginx(f"events {{ }}\nhttp {{\n{servers}}}\n", folder):
        yield


PROXIES = {"nginx": (running_nginx, nginx_with), "caddy": (caddy, caddy_with)}


@asynccontextmanager
async def behind(
    kind: str,
    folder: Path,
    backend: MemoryBackend,
    *,
    whole: bool = True,
    certificate: Certificate | None = None,
    without: str = "$",
) -> AsyncIterator[str]:
    """Yields the base URL that clients have. `without`: the lines that this pattern finds are left out."""
    program, configured = PROXIES[kind]
    port = free_port()
    async with running_server(Settings(port=0, store="memory", inspect=True, **flags()), backend) as url:
        upstream = url.removesuffix("/llm/v1")
        assert upstream != url
        text = re.sub(
            rf"^ *{without}.*\n", "", configured(port, upstream, certificate, whole=whole), flags=re.MULTILINE
        )
        async with program(text, folder, port):
            yield f"{'http' if certificate is None else 'https'}://{NAME}:{port}/llm/v1"


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return make_certificate(NAME, tmp_path)


@pytest.fixture(autouse=True)
def _name_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = socket.getaddrinfo

    def here(host: Any, *more: Any, **named: Any) -> Any:
        return found("127.0.0.1" if host in {NAME, NAME.encode()} else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", here)


@asynccontextmanager
async def official_client(url: str, trusted: ssl.SSLContext) -> AsyncIterator[AsyncOpenAI]:
    http = DefaultAsyncHttpxClient(verify=trusted, trust_env=False)
    async with AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0, http_client=http) as client:
        yield client


every_way = pytest.mark.parametrize(
    ("kind", "whole"), [(kind, whole) for kind in PROXIES for whole in (True, False)],
    ids=[f"{kind} {what}" for kind in PROXIES for what in ("passes the path on", "takes the path off")],
)  # fmt: skip


@every_way
async def test_a_stream_leaves_while_it_is_written(
    kind: str, whole: bool, certificate: Certificate, tmp_path: Path
) -> None:
    backend = GatedBackend(["Hello there."], chunk=6)
    async with (
        behind(kind, tmp_path, backend, whole=whole, certificate=certificate) as url,
        official_client(url, certificate.trusted) as client,
        asyncio.timeout(PATIENCE),
    ):
        text = ""
        stream = await client.responses.create(model="scripted", input="hi", stream=True)
        async for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
                backend.gate.set()  # nothing more is written before the first of it is here
    assert text == "Hello there."


@every_way
async def test_a_tool_loop_and_a_long_request_by_each_api(
    kind: str, whole: bool, certificate: Certificate, tmp_path: Path
) -> None:
    def call(prompt: Prompt) -> str:
        return write_call("read_note", '{"path": "a.md"}', key=key_of(prompt.developer))

    backend = MemoryBackend([call, "Long.", "Short."])
    async with (
        behind(kind, tmp_path, backend, whole=whole, certificate=certificate) as url,
        official_client(url, certificate.trusted) as client,
    ):
        assert [model.id async for model in client.models.list()] == ["scripted"]
        answer = await client.responses.create(model="scripted", input="What is in a.md?", tools=TOOLS)
        (item,) = answer.output
        assert item.type == "function_call"
        note = {"type": "function_call_output", "call_id": item.call_id, "output": "long " * 600_000}
        more = await client.responses.create(model="scripted", input=[note], previous_response_id=answer.id)  # type: ignore[list-item]
        assert more.output_text == "Long."
        said = await client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "hi"}])
        assert said.choices[0].message.content == "Short."


@every_way
async def test_a_websocket_is_let_through(kind: str, whole: bool, certificate: Certificate, tmp_path: Path) -> None:
    async with (
        behind(kind, tmp_path, MemoryBackend(["Hi."]), whole=whole, certificate=certificate) as url,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session,
        asyncio.timeout(PATIENCE),
    ):
        async with session.ws_connect(f"{url}/responses", ssl=certificate.trusted) as talk:
            await talk.send_json({"type": "response.create", **BODY})
            while (await talk.receive_json())["type"] != "response.completed":
                pass
        async with session.ws_connect(f"{url}/realtime?model=scripted", ssl=certificate.trusted) as talk:
            assert (await talk.receive_json())["type"] == "session.created"


@every_way
async def test_the_page_opens_with_its_key_and_its_cookie_stays_in_its_folder(
    kind: str, whole: bool, certificate: Certificate, tmp_path: Path
) -> None:
    async with (
        behind(kind, tmp_path, MemoryBackend([]), whole=whole, certificate=certificate) as url,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=certificate.trusted)) as session,
    ):
        root = url.removesuffix("/v1")
        async with session.get(root, headers={"Accept": "text/html"}) as response:
            assert str(response.url) == f"{root}/", "beside it are its files"
            assert 'src="inspect/page.js"' in await response.text()
        for path, status in (("healthz", 200), ("inspect/page.js", 200), ("inspect/state", 401)):
            async with session.get(f"{root}/{path}") as response:
                assert response.status == status
        headers = {"Origin": root.removesuffix("/llm"), "Authorization": f"Bearer {KEY}"}
        async with session.post(f"{root}/inspect/session", headers=headers) as response:
            assert response.status == 200, await response.text()
            cookie = response.cookies["tagcall_page"]
        assert cookie["secure"]
        async with session.get(f"{root}/inspect/state") as response:
            assert response.status == 200
        (kept,) = session.cookie_jar
        assert kept["path"] == "/llm/inspect"


async def failure_of(asking: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> Exception | None:
    try:
        async with asking:
            return None
    except aiohttp.ClientError as error:
        return error


@pytest.mark.parametrize("kind", PROXIES)
async def test_a_client_that_leaves_ends_its_turn(kind: str, certificate: Certificate, tmp_path: Path) -> None:
    backend = GatedBackend(["Hello there."], chunk=6)
    async with behind(kind, tmp_path, backend, certificate=certificate) as url, asyncio.timeout(PATIENCE):
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
            asking = session.post(f"{url}/responses", json=BODY, ssl=certificate.trusted)
            async with asyncio.TaskGroup() as group:
                failing = group.create_task(failure_of(asking), name="asks")
                await backend.asked.wait()
                # As a process that ends. One that cancels its request says goodbye by TLS first, to which nginx does
                # not listen: half a minute.
                await session.close()
                assert isinstance(await failing, aiohttp.ClientConnectionError)
        await backend.left.wait()


@pytest.mark.parametrize("kind", PROXIES)
async def test_another_name_and_no_key_are_refused(kind: str, tmp_path: Path) -> None:
    async with behind(kind, tmp_path, MemoryBackend([])) as url, aiohttp.ClientSession() as session:
        async with session.post(f"{url}/responses", json=BODY) as response:
            assert response.status == 401
        if kind == "nginx":  # Caddy itself has no site of another name
            async with session.get(f"{url}/models", headers={"Host": "evil.example"}) as response:
                assert response.status == 421


async def opened_session(url: str) -> tuple[int, str]:
    """What becomes of the page's first request, and the cookie that it gets."""
    async with aiohttp.ClientSession() as session:
        headers = {"Origin": url.removesuffix("/llm/v1"), "Authorization": f"Bearer {KEY}"}
        async with session.post(url.replace("/v1", "/inspect/session"), headers=headers) as response:
            return response.status, response.headers.get("Set-Cookie", "")


async def test_each_line_for_nginx_does_what_the_page_says(tmp_path: Path) -> None:
    backend = MemoryBackend(["Hi.", "Hi."])
    async with behind("nginx", tmp_path, backend) as url:
        assert (await opened_session(url))[0] == 200
    async with behind("nginx", tmp_path, backend, without="proxy_set_header Host") as url:
        assert (await opened_session(url))[0] == 403
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session,
        behind(
            "nginx", tmp_path, backend, without="(client_max_body_size|proxy_set_header (Upgrade|Connection))"
        ) as url,
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(f"{url}/responses")
        async with session.post(f"{url}/responses", data=BytesIO(b" " * (2 << 20))) as response:
            assert response.status == 413
            assert response.content_type == "text/html", "nginx's own"


async def test_a_stream_leaves_at_once_though_nginx_gathers(certificate: Certificate, tmp_path: Path) -> None:
    backend = GatedBackend(["Hello there."], chunk=6)
    async with (
        behind("nginx", tmp_path, backend, certificate=certificate, without="proxy_buffering") as url,
        official_client(url, certificate.trusted) as client,
        asyncio.timeout(PATIENCE),
    ):
        async for event in await client.responses.create(model="scripted", input="hi", stream=True):
            if event.type == "response.output_text.delta":
                backend.gate.set()
    assert backend.left_early == 0


@pytest.mark.clients
@pytest.mark.browser
@every_way
async def test_a_browser_sees_the_page_fill(kind: str, whole: bool, certificate: Certificate, tmp_path: Path) -> None:
    arguments = [f"--host-resolver-rules=MAP {NAME} 127.0.0.1", "--no-proxy-server", "--ignore-certificate-errors"]
    backend = MemoryBackend(["Hi."])
    async with behind(kind, tmp_path, backend, whole=whole, certificate=certificate) as url:
        async with (
            browser_page(tmp_path, arguments=arguments) as page,
            official_client(url, certificate.trusted) as client,
        ):
            await page.run("await page.goto(given)", url.removesuffix("/v1"))
            await page.wait_for("#entry:not([hidden])")
            await page.run("await page.fill('#key', given); await page.click('#enter')", KEY)
            await page.wait_for("#status.ready")
            await client.responses.create(model="scripted", input="hi")
            await page.wait_for(".turn.done")
            await page.run(
                "await page.locator('.turn').first().click(); await page.locator('.column').first().waitFor()"
            )
            complaints = await page.run("return complaints")
            assert all("401" in each for each in complaints), complaints  # that a key is wanted
