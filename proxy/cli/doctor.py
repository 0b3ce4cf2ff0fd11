"""`tagcall doctor`: what `serve` needs, checked for real; each red line says what to do."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import aiohttp

from ..backends import Finding, find_kind
from ..contracts import TextBackend
from ..errors import ApiError, UsageError
from ..home import habits_file, read_habits
from ..server import base_url, bind, read_keys
from ..settings import Settings
from ..turn import KeyHabit
from .obsidian import client_settings

# Seconds that a server on our port may take to say whether it is one of ours.
NEIGHBOUR_TIMEOUT = 2.0

MARKS = {True: ("ok", "32"), False: ("no", "31"), None: ("--", "33")}


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
    try:
        kind = find_kind(settings.backend)
    except UsageError as error:
        yield Finding("backend", False, str(error))
        return
    before = await kind.check_before(settings)
    for finding in before:
        yield finding
    if any(finding.good is False for finding in before):
        return
    try:
        backend = kind.make(settings)
    except UsageError as error:
        yield Finding("backend", False, str(error))
        return
    async with backend:
        yield await _readiness(backend)
        yield await _models(backend)
    yield _call_keys(settings)
    for finding in await kind.check_after(settings):
        yield finding


def _call_keys(settings: Settings) -> Finding:
    if settings.key_mode != "auto":
        return Finding("call key", True, f"is {settings.key_mode}")
    habits = read_habits(habits_file(settings.call_key_secret))
    if never := [model for model, habit in habits.items() if habit is KeyHabit.NEVER]:
        return Finding(
            "call key",
            None,
            f"was never written by {', '.join(never)}",
            "Calls of such a model are judged without it: one that stands in a note may be taken for a quotation.",
        )
    writes = [model for model, habit in habits.items() if habit is KeyHabit.WRITES]
    return Finding("call key", True, f"is written by {', '.join(writes)}" if writes else "no model has needed it yet")


async def _port(settings: Settings) -> Finding:
    try:
        bind(settings).close()
    except UsageError as error:
        if await _is_tagcall(settings):
            return Finding("port", True, f"a tagcall is already running on port {settings.port}")
        return Finding("port", False, str(error))
    return Finding("port", True, f"{settings.host} port {settings.port} is free")


async def _is_tagcall(settings: Settings) -> bool:
    host = "127.0.0.1" if settings.host == "0.0.0.0" else settings.host  # noqa: S104 -- compared, not bound
    timeout = aiohttp.ClientTimeout(total=NEIGHBOUR_TIMEOUT)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{base_url(host, settings.port)}/healthz") as answer,
        ):
            return answer.headers.get("Server") == "tagcall"
    except (aiohttp.ClientError, TimeoutError):
        return False


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
