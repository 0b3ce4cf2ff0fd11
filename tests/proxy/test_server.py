"""What a server needs before it begins, and in which order it begins."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.http_parser import HttpRequestParserPy

from proxy import server
from proxy.cli.main import main
from proxy.errors import UsageError
from proxy.server import read_keys, running_server
from proxy.settings import Settings
from tests.support.memory_backend import MemoryBackend
from tests.support.patience import PATIENCE


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.9"])
def test_on_this_machine_alone_no_key_is_needed(host: str) -> None:
    assert read_keys(Settings(host=host)) == ()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "myhost"])
def test_what_others_can_reach_needs_a_key(host: str) -> None:
    with pytest.raises(UsageError, match="--api-key"):
        read_keys(Settings(host=host))
    assert read_keys(Settings(host=host, api_key=("k",))) == ("k",)


def test_without_one_it_does_not_start(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["serve", "--host", "0.0.0.0", "--port", "0", "--backend", f"replay:{tmp_path}"]
    assert main(command) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_keys_of_a_file_are_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("\ufeffone\n\n two \n")  # as editors on Windows begin one
    assert read_keys(Settings(api_key_file=file, api_key=("three",))) == ("three", "one", "two")
    for content in (b"", b"\n", b"\xff\xfe"):
        file.write_bytes(content)
        with pytest.raises(UsageError):
            read_keys(Settings(api_key_file=file))
    with pytest.raises(UsageError, match="cannot be read"):
        read_keys(Settings(api_key_file=tmp_path / "none"))


class NeverEntered(MemoryBackend):
    async def __aenter__(self) -> Any:
        raise AssertionError("the backend was started")


async def test_a_port_in_use_is_told_before_anything_is_started() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port}"):
            async with asyncio.timeout(PATIENCE), running_server(Settings(port=port), NeverEntered([])):
                pass


@pytest.mark.parametrize(
    ("owner", "advice"),
    [
        ("tagcall, process 7", "use that one, end it first, or choose another with --port"),
        ("ollama, process 7", "choose another with --port"),
    ],
)
def test_the_port_of_a_tagcall_that_runs_already_may_be_used(
    owner: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "owner_of", lambda _: owner)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError) as told:
        server.bind(Settings(port=taken.getsockname()[1]))
    assert str(told.value).endswith(f"({owner}, has it): {advice}.")


async def test_requests_are_never_read_by_the_parser_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HttpRequestParser", HttpRequestParserPy)
    with pytest.raises(UsageError, match="C extension"):
        async with running_server(Settings(port=0), NeverEntered([])):
            pass


def has_ipv6() -> bool:
    """Python may, and the machine may not, as in many a container."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["::1", "127.0.0.1", "localhost"])
async def test_the_url_that_is_printed_is_served(host: str) -> None:
    if host == "::1" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    async with running_server(Settings(host=host, port=0, store="memory"), MemoryBackend([])) as url:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/models") as answer:
            assert answer.status == 200, await answer.text()
