"""A real Caddy from PyPI, from a Caddyfile that is meant for the system's own.

async with caddy(sites, folder, port):
    ...
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from .patience import PATIENCE

PROGRAM = Path(sys.executable).parent / "caddy"

wants_caddy = pytest.mark.skipif(
    not PROGRAM.is_file() and os.environ.get("TAGCALL_TEST_CLIENTS") != "required",
    reason="PyPI has no Caddy for this machine",
)

# Besides what a test writes: everything in its folder, and nobody's certificates touched.
OPTIONS = """
{{
    admin off
    auto_https disable_redirects
    skip_install_trust
    storage file_system {folder}
}}
{sites}
"""


@asynccontextmanager
async def caddy(sites: str, folder: Path, port: int) -> AsyncIterator[None]:
    """From when it listens on `port` of the loopback address, with all that it writes in `folder`."""
    file, said = folder / "Caddyfile", folder / "caddy.log"
    file.write_text(OPTIONS.format(sites=sites, folder=folder / "storage"), "utf-8")
    folders = {name: str(folder) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    with said.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            PROGRAM, "run", "--config", str(file), "--adapter", "caddyfile",
            stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": os.environ["PATH"], **folders},
        )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE):
            while not await _listens(port):
                if process.returncode is not None:
                    pytest.fail(said.read_text("utf-8", "replace"))
                await asyncio.sleep(0.01)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
