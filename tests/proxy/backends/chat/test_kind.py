from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from proxy.backends import BACKENDS, make_backend
from proxy.backends.chat import ChatBackend
from proxy.backends.chat.servers import LOCAL_SERVERS
from proxy.cli.doctor import run_doctor
from proxy.errors import BackendError, UsageError
from proxy.settings import Settings
from proxy.sources import load
from tests.support.backend_events import prompt, read_turn
from tests.support.ports import free_port

HOWTO = Path(__file__).resolve().parents[4] / "docs" / "howto" / "local-models.md"


def make(**settings: Any) -> ChatBackend:
    backend = make_backend(Settings(**settings))
    assert isinstance(backend, ChatBackend)
    return backend


@pytest.mark.parametrize(
    ("backend", "url"),
    [
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1"),
        ("http://localhost:8080", "http://localhost:8080/v1"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("ollama", "http://127.0.0.1:11434/v1"),
    ],
)
def test_an_address_may_leave_out_what_is_usual(backend: str, url: str) -> None:
    assert make(backend=backend).url == url


async def test_a_server_that_falls_silent_is_waited_for_as_long_as_its_owner_says(
    aiohttp_server: AiohttpServer,
) -> None:
    async def fall_silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n')
        await asyncio.Event().wait()
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", fall_silent)
    server = await aiohttp_server(app, shutdown_timeout=0.1)
    async with make(backend=str(server.make_url("/v1")), idle_timeout=0.01) as backend:
        with pytest.raises(BackendError) as failed:
            await read_turn(backend, prompt())
    assert failed.value.code == "backend_timeout"


@pytest.mark.parametrize("name", LOCAL_SERVERS)
def test_the_local_servers_are_kinds_and_have_a_section(name: str) -> None:
    assert BACKENDS[name].address is None
    page = HOWTO.read_text("utf-8")
    section = re.search(rf"^## {re.escape(LOCAL_SERVERS[name].name)}$(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert f"--backend {name}\n" in section[1]
    assert LOCAL_SERVERS[name].address in section[1]


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ("http://me:secret@host/v1", "give the key with --backend-key-file"),
        ("http://host/v1?key=secret", "is not an address"),
        ("http://?", "is not an address"),
        ("http://127.0.0.1:80800/v1", "is not an address"),
        ("http://[::1/v1", "is not an address"),
    ],
)
def test_what_is_no_address_is_told_so(backend: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        make(backend=backend)
    assert "secret@" not in str(caught.value)


def test_the_key_may_come_from_the_environment_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-file\n", "utf-8")
    environment = {"TAGCALL_BACKEND": "vllm", "TAGCALL_BACKEND_KEY": "sk-environment"}
    assert "sk-environment" in str(vars(make_backend(load({}, environment))))
    assert "sk-file" in str(vars(make_backend(load({"backend_key_file": str(file)}, environment))))


@pytest.mark.parametrize("content", ["", "two\nlines", "ключ"])
def test_a_file_that_holds_no_key_is_told_so(tmp_path: Path, content: str) -> None:
    file = tmp_path / "key"
    file.write_text(content, "utf-8")
    with pytest.raises(UsageError, match="holds no key"):
        make(backend="vllm", backend_key_file=file)
    with pytest.raises(UsageError, match="cannot be read"):
        make(backend="vllm", backend_key_file=tmp_path / "none")


def test_the_profile_is_small_unless_it_is_named() -> None:
    assert Settings(backend="ollama").profile_name == "small"
    assert Settings(backend="http://host/v1").profile_name == "small"
    assert Settings(backend="ollama", profile="frontier").profile_name == "frontier"
    assert Settings().profile_name == "frontier"


async def test_doctor_says_how_to_start_what_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    assert await run_doctor(Settings(port=0, backend=f"http://127.0.0.1:{port}/v1")) == 1
    assert f"no  backend    The model server at 127.0.0.1:{port} does not answer" in capsys.readouterr().out
