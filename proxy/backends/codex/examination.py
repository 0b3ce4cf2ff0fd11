"""What `doctor` finds out about a codex program: whether it starts, where it works, and what it sends."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import orjson

from ...errors import ApiError, UsageError, reason_of
from ...rpc import ChildTransport, Launch, RpcClient, RpcClosedError, RpcDeadlineError, RpcError
from ..kind import BackendSettings, Finding, as_sentence
from .backend import codex_environment
from .item_kinds import unknown_kinds
from .program import locate_program, programs_here, read_version
from .requests import answer_request, greeting
from .text_only import tools_that_reach_the_model
from .versions import SUPPORTED_SINCE, TAKE_A_NEWER_ONE, Support, release_of, standing_of, written

# Seconds for a first sign of life of a program that was just started; 0.5 is slow.
GREETING = 5.0
# Seconds for a first answer of a service.
REACH = 5.0

# Where a login leads, by what it is: a ChatGPT account, an API key.
SERVICES = ("https://chatgpt.com", "https://api.openai.com")

NEWER = f"codex {written(SUPPORTED_SINCE)} or newer"
ANOTHER_PROGRAM = f"Install {NEWER}: {TAKE_A_NEWER_ONE}."


async def check_before(settings: BackendSettings) -> Sequence[Finding]:
    return [*await _check_program(settings), _check_home(settings.codex_home)]


async def check_after(settings: BackendSettings) -> Sequence[Finding]:
    return [await _check_text_only(settings), await _check_items(settings), await _check_service(settings.upstream)]


async def _check_program(settings: BackendSettings) -> Sequence[Finding]:
    try:
        program = locate_program(settings.codex)
    except UsageError as error:
        return [Finding("program", False, error.fault, error.remedy and as_sentence(error.remedy))]
    version, fault = await asyncio.gather(asyncio.to_thread(read_version, program), _greet(program))
    if version is None:
        return [Finding("program", False, f"{program} does not say its version", ANOTHER_PROGRAM)]
    if fault is not None:
        return [Finding("program", False, f"codex {version}, {program}, {fault}", ANOTHER_PROGRAM)]
    if standing_of(version) is Support.REFUSED:
        return [Finding("program", False, f"codex {version}, {program}, is too old", ANOTHER_PROGRAM)]
    return [Finding("program", True, f"codex {version}, {program}"), *await _newer(program, version)]


async def _newer(program: Path, version: str) -> Sequence[Finding]:
    """The newest of the others on this machine, when it is newer than the one that is used."""
    others = [path for path in programs_here() if path != program]
    versions = await asyncio.gather(*(asyncio.to_thread(read_version, path) for path in others))
    found = [(release_of(each), each, path) for each, path in zip(versions, others, strict=True) if each]
    newest = max(found, default=None)
    if newest is None or newest[0] <= release_of(version):
        return []
    _, newer, path = newest
    return [Finding("program", None, f"codex {newer} is here, too: {path}", f"Take it with --codex {path}.")]


async def _greet(program: Path) -> str | None:
    """What is wrong with it as an app-server, as the end of a sentence."""
    try:
        with tempfile.TemporaryDirectory(prefix="tagcall-", ignore_cleanup_errors=True) as folder:
            environment = codex_environment(Path(folder), os.environ)
            launch = Launch([str(program), "app-server"], environment, Path(folder))
            client = RpcClient(
                await ChildTransport.start(launch), on_notification=lambda *_: None, answer=answer_request
            )
            async with client.running():
                await client.request("initialize", greeting(), deadline=GREETING)
    except RpcDeadlineError:
        return f"does not answer within {GREETING:g} seconds"
    except RpcClosedError:
        return "ends when it is started as `app-server`: it is too old, or broken"
    except (RpcError, OSError) as error:
        return f"does not work as `app-server` ({reason_of(error)})"
    return None


def _check_home(home: Path) -> Finding:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        said = f"{home} cannot be written ({reason_of(error)})"
        return Finding("home", False, said, "Name a folder of yours with --codex-home DIR.")
    return Finding("home", True, f"{home} can be written")


async def _check_service(upstream: str | None) -> Finding:
    timeout = aiohttp.ClientTimeout(total=REACH)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True, auto_decompress=False) as session:
        if upstream is not None:
            return await _check_upstream(session, upstream.rstrip("/"))
        if any(_is_socks(name, value) for name, value in os.environ.items()):
            return Finding("service", None, "not tried, because it is behind a SOCKS proxy")
        if any(await asyncio.gather(*(_answers(session, url) for url in SERVICES))):
            return Finding("service", True, "OpenAI can be reached")
    said = f"OpenAI cannot be reached: neither {' nor '.join(SERVICES)} answers"
    return Finding("service", False, said, "Check the network, and the proxy if HTTPS_PROXY names one.")


async def _check_upstream(session: aiohttp.ClientSession, upstream: str) -> Finding:
    """An empty request costs nothing, and whoever knows the path refuses it by its contents."""
    address = "ive --upstream the base URL of a Responses endpoint, as http://127.0.0.1:8000/v1."
    try:
        async with session.post(f"{upstream}/responses", json={}) as answer:
            status, body = answer.status, await answer.content.read(4096)
    except (aiohttp.ClientError, TimeoutError) as error:
        return Finding("service", False, f"{upstream} cannot be reached ({_reason(error)})", f"Start it, or g{address}")
    if status in {404, 405, 501} and not _is_api_error(body):
        said = f"{upstream} is not a Responses endpoint: POST /responses answers {status}"
        return Finding("service", False, said, f"G{address}")
    return Finding("service", True, f"{upstream} knows POST /responses")


def _reason(error: Exception) -> str:
    """Without aiohttp's own words for it."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return reason_of(error.os_error).lower()
    return str(error) or "no answer"


def _is_api_error(body: bytes) -> bool:
    try:
        return "error" in orjson.loads(body)
    except (orjson.JSONDecodeError, TypeError):
        return False


def _is_socks(name: str, value: str) -> bool:
    return name.lower() in {"all_proxy", "https_proxy"} and value.lower().startswith("socks")


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.head(url):
            return True
    except aiohttp.ClientSSLError:
        return True  # somebody answered; whether codex trusts them is told by a turn
    except (aiohttp.ClientError, TimeoutError):
        return False


async def _check_items(settings: BackendSettings) -> Finding:
    """Foretells turns that end because this codex tells of what we have never heard of."""
    unknown = await asyncio.to_thread(unknown_kinds, locate_program(settings.codex), settings.allow_item)
    if unknown is None:
        return Finding("items", None, "this codex does not say which kinds of items it can send")
    if not unknown:
        return Finding("items", True, "tagcall knows every kind of item that this codex can send")
    said = f"this codex can send items that tagcall does not know: {', '.join(unknown)}"
    remedy = (
        "Such an item ends its turn. Update tagcall. If the item is harmless, start tagcall with --allow-item KIND."
    )
    return Finding("items", None, said, remedy)


async def _check_text_only(settings: BackendSettings) -> Finding:
    """Lets codex send one request a model to us instead of to its service, and looks at what is in it."""
    try:
        seen = await tools_that_reach_the_model(settings.codex, settings.model)
    except (ApiError, OSError, TimeoutError) as error:
        return Finding("text-only", None, f"could not be checked: {error}")
    tools = sorted({tool for names in seen.values() for tool in names})
    if tools:
        said = f"this codex gives the model tools of its own: {', '.join(tools)}"
        remedy = f"Use {NEWER}: {TAKE_A_NEWER_ONE}."
        return Finding("text-only", False, said, remedy)
    return Finding("text-only", True, f"no built-in tool reaches the model (asked of {len(seen)} models)")
