"""`tagcall doctor`: what `serve` needs, checked for real; each red line says what to do."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp

from ..backends import locate_program, make_backend, read_version, tools_that_reach_the_model
from ..contracts import TextBackend
from ..errors import ApiError, UsageError
from ..server import base_url, bind, read_keys
from ..settings import Settings
from .obsidian import client_settings

# Seconds that a server on our port may take to say whether it is one of ours.
NEIGHBOUR_TIMEOUT = 2.0

MARKS = {True: ("ok", "32"), False: ("no", "31"), None: ("--", "33")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `good` None: not checked, or worth knowing. `remedy` says what to do."""

    name: str
    good: bool | None
    said: str
    remedy: str | None = None


async def run_doctor(settings: Settings) -> int:
    """Prints a line a check and what to enter in a client; exit status 0 when all is well."""
    healthy = True
    async for finding in examine(settings):
        _show(finding)
        healthy = healthy and finding.good is not False
    print(client_settings(base_url(settings.host, settings.port), settings))
    return 0 if healthy else 1


def _show(finding: Finding) -> None:
    mark, colour = MARKS[finding.good]
    if sys.stdout.isatty():
        mark = f"\x1b[{colour}m{mark}\x1b[0m"
    print(f"  {mark}  {finding.name:<10} {finding.said}")
    if finding.remedy:
        print(f"      {'':<10} {finding.remedy}", flush=True)


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """All checks, in the order in which a person would mend them."""
    try:
        keys = read_keys(settings)
    except UsageError as error:
        yield Finding("key", False, str(error))
    else:
        yield Finding("key", True, "only requests with a key are served" if keys else "any key is accepted")
    yield await _port(settings)
    codex = settings.backend in {"auto", "codex"}
    if codex:
        finding = _program(settings)
        yield finding
        if not finding.good:
            return
    try:
        backend = make_backend(settings)
    except UsageError as error:
        yield Finding("backend", False, str(error))
        return
    async with backend:
        yield await _readiness(backend)
        yield await _models(backend)
    yield (
        await _text_only(settings)
        if codex
        else Finding("text-only", None, "not checked: what this app-server gives its model is its owner's business")
    )


async def _port(settings: Settings) -> Finding:
    try:
        bind(settings).close()
    except UsageError as error:
        if await _is_tagcall(settings):
            return Finding("port", True, f"a tagcall is already running on port {settings.port}")
        return Finding("port", False, str(error))
    return Finding("port", True, f"{settings.host} port {settings.port} is free")


async def _is_tagcall(settings: Settings) -> bool:
    host = "127.0.0.1" if settings.host == "0.0.0.0" else settings.host  # noqa: S104  # compared, not bound
    timeout = aiohttp.ClientTimeout(total=NEIGHBOUR_TIMEOUT)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{base_url(host, settings.port)}/healthz") as answer,
        ):
            return answer.headers.get("Server") == "tagcall"
    except (aiohttp.ClientError, TimeoutError):
        return False


def _program(settings: Settings) -> Finding:
    try:
        program = locate_program(settings.codex)
    except UsageError as error:
        return Finding("program", False, str(error))
    version = read_version(program)
    if version is None:
        return Finding("program", False, f"{program} does not say its version", "Name another one with --codex PATH.")
    return Finding("program", True, f"codex {version}, {program}")


async def _readiness(backend: TextBackend) -> Finding:
    health = await backend.health()
    if health.problem is not None:
        return Finding("backend", False, health.problem)
    return Finding("backend", True, f"answers and takes turns ({health.version or 'version unknown'})")


async def _models(backend: TextBackend) -> Finding:
    try:
        names = [model.id for model in await backend.models()]
    except ApiError as error:
        return Finding("models", False, error.message)
    if not names:
        return Finding("models", None, "none are listed", "Name the ones you use with --model NAME.")
    return Finding("models", True, ", ".join(names))


async def _text_only(settings: Settings) -> Finding:
    """Lets codex send one request a model to us instead of to its service, and looks at what is in it."""
    try:
        seen = await tools_that_reach_the_model(settings.codex, settings.model)
    except (ApiError, OSError, TimeoutError) as error:
        return Finding("text-only", None, f"could not be checked: {error}")
    tools = sorted({tool for names in seen.values() for tool in names})
    if tools:
        return Finding(
            "text-only",
            False,
            f"this codex gives the model tools of its own: {', '.join(tools)}",
            "Use codex 0.160 or newer: pip install -U openai-codex-cli-bin, or --codex PATH.",
        )
    return Finding("text-only", True, f"no built-in tool reaches the model (asked of {len(seen)} models)")
