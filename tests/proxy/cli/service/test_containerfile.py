"""The image's own words, taken from its file: what it runs is a command of ours, what it asks is answered."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from aiohttp import web
from pytest_aiohttp import AiohttpServer

from proxy.cli.commands import build_parser
from proxy.ingress.health import healthz
from proxy.sources import load
from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[4]
TEXT = (ROOT / "docs" / "howto" / "service" / "Containerfile").read_text("utf-8")


def words(instruction: str) -> list[str]:
    """The last JSON form of it."""
    found: list[str] = json.loads(re.findall(rf"(?m)^{instruction}.*?(\[.*\])$", TEXT)[-1])
    return found


def test_what_it_runs_is_a_command_that_needs_only_a_key() -> None:
    assert words("ENTRYPOINT") == ["tagcall"]
    arguments = vars(build_parser().parse_args(words("CMD")))
    settings = load(arguments, {"TAGCALL_API_KEY": "k"})
    assert settings.host == "0.0.0.0"


async def test_its_health_check_tells_a_server_from_none(aiohttp_server: AiohttpServer) -> None:
    app = web.Application()
    app.router.add_get("/healthz", healthz)
    server = await aiohttp_server(app)
    _, *arguments = words("HEALTHCHECK")

    def check(port: int) -> int:
        environment = {"TAGCALL_PORT": str(port), "no_proxy": "127.0.0.1"}
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, capture_output=True, timeout=PATIENCE, check=False
        )
        return done.returncode

    assert await asyncio.to_thread(check, server.port or 0) == 0
    await server.close()
    assert await asyncio.to_thread(check, server.port or 0) == 1


def test_what_it_keeps_lies_in_its_volume_and_belongs_to_its_user() -> None:
    (volume,) = re.findall(r"(?m)^VOLUME (\S+)$", TEXT)
    (user,) = re.findall(r"(?m)^USER (\S+)$", TEXT)
    assert f"XDG_DATA_HOME={volume}" in TEXT
    assert re.search(rf"(?m)^RUN install .*--owner={user} .*{volume}$", TEXT)


def test_it_builds_from_all_that_a_wheel_is_made_of() -> None:
    copied = {word for line in re.findall(r"(?m)^COPY ([^-].*) \S+$", TEXT) for word in line.split()}
    assert all((ROOT / word).exists() for word in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {Path(path).parts[0] for path in wheel["only-include"]} <= copied
    hook = Path(project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]).parts[0]  # it reads the README
    assert {"pyproject.toml", "README.md", hook, *project["project"]["license-files"]} <= copied
