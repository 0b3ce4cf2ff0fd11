"""The real program as an app-server that listens for itself."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from proxy.backends import find_kind, remote_backend
from proxy.backends.codex import Provider, prepare_home
from proxy.backends.codex.threads import WHATEVER_RUNS
from proxy.contracts import TextPiece
from proxy.errors import BackendError
from proxy.quota import QuotaWindow
from proxy.rpc import RpcClient
from proxy.rpc.websocket import WebSocketTransport
from proxy.settings import Settings
from tests.support.backend_events import merged, prompt, read_turn
from tests.support.codex_programs import TestProgram, child_environment, installed_programs
from tests.support.patience import PATIENCE
from tests.support.scripted_model import Message, Refusal, Reply, ScriptedModel

HELLO = "Hello from the scripted model."
LISTENING = [it for it in installed_programs() if it.release >= (0, 100)]


@pytest.fixture(params=[pytest.param(it, id=f"codex-{it.version}") for it in LISTENING])
def program(request: pytest.FixtureRequest) -> TestProgram:
    program: TestProgram = request.param
    return program


@asynccontextmanager
async def listening(home: Path, program: TestProgram, upstream: str, config: str = "") -> AsyncIterator[str]:
    """Its address. `config` stands before the rest, and goes with a login."""
    assert program.path is not None
    env = {**child_environment(home), "CODEX_HOME": str(home)}
    await prepare_home(home, program.path, Provider(upstream), 300, env)
    if config:
        file = home / "config.toml"
        file.write_text(
            config + file.read_text().replace("requires_openai_auth = false", "requires_openai_auth = true")
        )
    socket = home.parent / "s"
    process = await asyncio.create_subprocess_exec(
        program.path, "app-server", "--listen", f"unix://{socket}", env=env, stderr=asyncio.subprocess.DEVNULL
    )
    async with asyncio.timeout(PATIENCE):
        while not await _listens(socket):  # noqa: ASYNC110 -- it gives no sign
            await asyncio.sleep(0.01)
    yield f"unix:{socket}"
    process.kill()
    await process.wait()


async def _listens(socket: Path) -> bool:
    """The file of a socket is there a moment before."""
    try:
        _, writer = await asyncio.open_unix_connection(socket)
    except OSError:
        return False
    writer.close()
    return True


@pytest.fixture
async def address(home: Path, program: TestProgram, model: ScriptedModel) -> AsyncIterator[str]:
    async with listening(home, program, model.url) as address:
        yield address


async def test_a_listening_app_server_is_a_backend(address: str, model: ScriptedModel) -> None:
    model.push(Reply([Message("Hello over a socket")], chunk=3))
    async with remote_backend(address) as backend:
        assert merged(await read_turn(backend, prompt()))[0] == TextPiece("Hello over a socket")
        assert (await backend.health()).problem is None


@pytest.fixture
async def usage(aiohttp_server: AiohttpServer) -> str:
    """The service that codex asks for its account's quota; its base URL."""
    hours = {"used_percent": 33, "limit_window_seconds": 18000, "reset_after_seconds": 600, "reset_at": 2_000_000_000}
    limit = {"allowed": True, "limit_reached": False, "primary_window": hours}
    other = {"limit_name": "a-model", "metered_feature": "codex_a_model", "rate_limit": limit}
    balance = {"has_credits": True, "unlimited": False, "balance": "12.50"}
    told = {"plan_type": "plus", "rate_limit": limit, "credits": balance, "additional_rate_limits": [other]}

    async def tell(request: web.Request) -> web.Response:
        return web.json_response(told)

    app = web.Application()
    app.router.add_get("/backend-api/wham/usage", tell)
    return str((await aiohttp_server(app)).make_url("/backend-api"))


def log_in(home: Path) -> None:
    """By a ChatGPT login, of nobody."""
    claims = {"exp": 2_000_000_000, "https://api.openai.com/auth": {"chatgpt_plan_type": "plus"}}
    part = base64.urlsafe_b64encode(orjson.dumps(claims)).rstrip(b"=").decode()
    token = f"{part}.{part}.{part}"
    tokens = {"id_token": token, "access_token": token, "refresh_token": "r", "account_id": "a"}
    kept = {"OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": "2033-05-18T00:00:00Z"}
    home.mkdir(exist_ok=True)
    (home / "auth.json").write_bytes(orjson.dumps(kept))


async def test_what_is_left_of_a_logins_quota_is_read_without_a_turn(
    home: Path, program: TestProgram, usage: str, model: ScriptedModel
) -> None:
    log_in(home)
    async with (
        listening(home, program, model.url, f'chatgpt_base_url = "{usage}"\n') as address,
        remote_backend(address) as backend,
        asyncio.timeout(PATIENCE),
    ):
        while not backend.load().quota:  # noqa: ASYNC110 -- nobody waits for it
            await asyncio.sleep(0.01)
        quota = backend.load().quota
    window = (QuotaWindow("primary", 33, 300, 2_000_000_000),)
    assert [(it.limit, it.name, it.plan, it.credits, it.windows) for it in quota] == [
        ("codex", None, "plus", "12.50", window),
        ("codex_a_model", "a-model", "plus", None, window),
    ]


async def test_leaving_ends_the_turn_there_too(address: str, model: ScriptedModel) -> None:
    model.push(Reply([Message("word " * 10_000)], chunk=5, pace=0.01))
    async with remote_backend(address) as backend:
        async with backend.stream(prompt()) as batches:
            await anext(batches)
        async with asyncio.timeout(PATIENCE):
            await model.stream_closed.wait()


async def test_the_backends_end_ends_the_turns_it_began(address: str, model: ScriptedModel) -> None:
    """The app-server would run them on: a closed connection is nothing to it."""
    model.push(Reply([Message("word " * 10_000)], chunk=5, pace=0.01))
    async with remote_backend(address) as backend:
        stream = backend.stream(prompt())
        await anext(await stream.__aenter__())
    async with asyncio.timeout(PATIENCE):
        await model.stream_closed.wait()


async def test_nobody_listening_is_said_with_a_time_to_try_again() -> None:
    async with remote_backend("ws://127.0.0.1:9") as backend:
        health = await backend.health()
    assert health.problem is not None
    assert "ws://127.0.0.1:9" in health.problem


async def test_the_login_in_an_address_is_told_to_nobody(aiohttp_server: AiohttpServer) -> None:
    server = await aiohttp_server(web.Application())  # which answers 404
    for host in (f"127.0.0.1:{server.port}", "127.0.0.1:9"):
        async with remote_backend(f"ws://me:s3cr3t@{host}") as backend:
            problem = (await backend.health()).problem
        assert problem is not None
        assert host in problem
        assert "s3cr3t" not in problem


async def test_a_turn_that_has_no_name_yet_can_be_ended(address: str, model: ScriptedModel) -> None:
    """As it must be when the connection is lost between a turn's start and its answer."""
    model.push(Reply([Message("word " * 10_000)], chunk=5, pace=0.01))
    client = RpcClient(await WebSocketTransport.connect(address), on_notification=lambda method, params: None)
    async with client.running():
        await client.request("initialize", {"clientInfo": {"name": "test", "version": "0"}}, deadline=PATIENCE)
        client.notify("initialized")
        thread = await client.request("thread/start", {"model": "m", "ephemeral": True}, deadline=PATIENCE)
        turn = {"threadId": thread["thread"]["id"], "input": [{"type": "text", "text": "hi"}]}
        await client.request("turn/start", turn, deadline=PATIENCE)
        await model.called.wait()
        client.post("turn/interrupt", {"threadId": thread["thread"]["id"], "turnId": WHATEVER_RUNS})
        async with asyncio.timeout(PATIENCE):
            await model.stream_closed.wait()


async def test_a_login_that_is_missing_there_is_made_there(
    home: Path, program: TestProgram, model: ScriptedModel
) -> None:
    """And taken up, also where another client of the app-server makes it."""
    advice = "run `codex login` where the app-server runs"
    async with listening(home, program, model.url, "# wants a login\n") as address, remote_backend(address) as backend:
        assert advice in str((await backend.health()).problem)
        with pytest.raises(BackendError, match=advice) as caught:
            await read_turn(backend, prompt())
        assert caught.value.code == "backend_auth"
        other = RpcClient(await WebSocketTransport.connect(address), on_notification=lambda method, params: None)
        async with other.running():
            await other.request("initialize", {"clientInfo": {"name": "test", "version": "0"}}, deadline=PATIENCE)
            other.notify("initialized")
            await other.request("account/login/start", {"type": "apiKey", "apiKey": "sk-none"}, deadline=PATIENCE)
        model.push(Refusal(401, {"message": "Not you."}))
        with pytest.raises(BackendError, match=f"refused codex's login .Not you.: {advice}"):
            await read_turn(backend, prompt())
        assert (await backend.health()).problem is None
        assert merged(await read_turn(backend, prompt()))[0] == TextPiece(HELLO)


@pytest.mark.parametrize("backend", ["ws://h:1", "wss://h:1", "unix:/s"])
async def test_of_what_such_an_app_server_gives_its_model_nothing_is_claimed(backend: str) -> None:
    (finding,) = await find_kind(backend).check_after(Settings(backend=backend))
    assert (finding.name, finding.good) == ("text-only", None)
