"""Makes a running server from settings: it binds, then starts the backend, then answers."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from ipaddress import ip_network
from typing import Any

from aiohttp import web
from aiohttp.http_parser import HttpRequestParser, HttpRequestParserPy
from aiohttp.typedefs import Middleware

from prompts import PROFILES

from .api_keys import ApiKey, parse_keys
from .backends import make_backend
from .contracts import TextBackend
from .errors import UsageError, reason_of
from .home import KeptHabits, habits_file, read_secret
from .ingress import create_app
from .ingress.admission import is_loopback
from .ingress.background import BACKGROUND_JOBS, background_jobs
from .ingress.connections import Connections, HttpProtocol
from .ingress.inspect import INSPECTION, PageOptions
from .ingress.key_ring import KeyRing
from .ingress.locks import conversation_locks
from .ingress.state import ACTIVITY, CONVERSATION_LOCKS, STOPPING
from .offload_threads import OffloadThreads
from .port_owner import owner_of
from .setting_values import text_of_file
from .settings import Settings
from .stores import make_store
from .turn import (
    CallKeys,
    CallRelease,
    EmptyAnswers,
    HeldCalls,
    HeldFormats,
    HoldCalls,
    KeyHabits,
    KeyMode,
    StreamJson,
    TurnOptions,
)

# Connections that the system keeps until they are accepted.
BACKLOG = 128
# Seconds for which the rest of a refused body is read: its sender reads the answer only after it has sent all.
LINGERING = 2.0
# Seconds that a connection may wait for its next request.
NEXT_REQUEST = 75.0
# Options of aiohttp's protocol of one connection.
HANDLING: dict[str, Any] = {
    "access_log": None,
    "auto_decompress": False,
    "keepalive_timeout": NEXT_REQUEST,
    "lingering_time": LINGERING,
}
SET_A_KEY = "Set one with --api-key or --api-key-file."
# Seconds.
DAY = 24 * 3600.0
# Seconds in which running turns may finish once the server was told to stop.
DRAIN = 20.0
# Seconds for the last events of turns that did not finish.
FAREWELL = 2.0


def read_keys(settings: Settings) -> tuple[str, ...]:
    """The keys that are accepted, as clients send them; none means that any is. Raises `UsageError`."""
    return tuple(each.key for each in read_api_keys(settings))


def read_api_keys(settings: Settings) -> tuple[ApiKey, ...]:
    """The keys that are accepted, with their names and limits. Raises `UsageError`."""
    keys = [ApiKey(key) for key in settings.api_key]
    if settings.api_key_file is not None:
        file = settings.api_key_file
        text = text_of_file(file, f"The keys in {file}", "name another file with --api-key-file")
        try:
            keys += parse_keys(text.splitlines())
        except ValueError as error:
            raise UsageError(f"The keys in {file} cannot be used: {error}.") from None
        if not keys:
            raise UsageError(f"{file} holds no key", "write one into it")
    if not keys and not is_loopback(settings.host):
        raise UsageError(
            f"Listening on {settings.host} lets others reach your account",
            "set a key with --api-key or --api-key-file",
        )
    return tuple(keys)


def stands_open(settings: Settings, keys: tuple[str, ...]) -> str | None:
    """A remark if clients reach the server through a proxy and need no key, else None."""
    if keys or not (settings.base_path or settings.allow_host):
        return None
    return "any key is accepted, from everybody whom the proxy lets in"


def check_parser() -> None:
    """Raises `UsageError` if aiohttp would read requests in Python: most ways to smuggle one were found there."""
    if HttpRequestParser is HttpRequestParserPy:
        raise UsageError("tagcall needs aiohttp with its C extension", "install aiohttp from its wheel")


def bind(settings: Settings, port: int | None = None) -> socket.socket:
    """A socket bound to `port`, or to that of the settings. Raises `UsageError` before anything is started."""
    flag = "--port" if port is None else "--also-port"
    port = settings.port if port is None else port
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = reason_of(error)
        flag = flag if error.errno in {errno.EADDRINUSE, errno.EACCES} else "--host"
        remedy = f"choose another with {flag}"
        if error.errno == errno.EADDRINUSE and (owner := owner_of(port)) is not None:
            reason = f"{owner}, has it"
            if owner.startswith("tagcall,"):
                remedy = f"use that one, end it first, or {remedy}"
        raise UsageError(f"Cannot listen on {settings.host} port {port} ({reason})", remedy) from None


# The address for listening on all addresses -> an address at which this machine can ask.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- compared, not bound


def base_url(host: str, port: int, base_path: str = "") -> str:
    """The base URL for clients on this machine."""
    host = EVERYWHERE.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{base_path}/v1"


def turn_options(settings: Settings, habits: KeyHabits | None = None) -> TurnOptions:
    """The options of all turns. `habits` replace the stored ones. Raises `UsageError`."""
    mode = KeyMode(settings.call_key)
    if mode is KeyMode.OFF:
        keys = CallKeys(mode)
    else:
        kept = habits or KeptHabits(habits_file(settings.call_key_secret))
        keys = CallKeys(mode, read_secret(settings.call_key_secret, named=settings.names_secret), kept)
    hold = HoldCalls(settings.hold_calls)
    return TurnOptions(
        release=CallRelease(settings.calls),
        profile=PROFILES[settings.profile_name],
        call_keys=keys,
        offload=OffloadThreads(),
        stream_json=StreamJson(settings.stream_json),
        max_answer=settings.max_answer,
        empty_answers=EmptyAnswers(settings.empty_answers),
        formats=HeldFormats() if habits is None else HeldFormats(most=0),
        held_calls=HeldCalls(hold) if habits is None else HeldCalls(hold, most=0),
    )


async def _listen(runner: web.AppRunner, bound: socket.socket, proxies: Sequence[str]) -> asyncio.Server:
    """Starts to accept connections. aiohttp's own site cannot put `Connections` in front."""
    server = runner.server
    if server is None:
        raise RuntimeError("the runner is not set up")
    loop = asyncio.get_running_loop()
    networks = [ip_network(proxy, strict=False) for proxy in proxies]
    connections = Connections(partial(HttpProtocol, server, loop=loop, **HANDLING), proxies=networks)
    return await loop.create_server(connections, sock=bound, backlog=BACKLOG)


@asynccontextmanager
async def running_server(
    settings: Settings,
    backend: TextBackend | None = None,
    middlewares: Sequence[Middleware] = (),
    habits: KeyHabits | None = None,
    page: PageOptions | None = None,
    *,
    keys: KeyRing | None = None,
) -> AsyncIterator[str]:
    """A server that answers as long as the context is open; yields its base URL.

    `backend` and `keys` replace those of the settings, and `habits` the stored ones. `middlewares` stand in front of
    all others, and `page` has options of the page at `/`. When the context is left, running turns may finish for
    `DRAIN` seconds. Turns that still run then fail with their backend, and their clients are told.
    """
    check_parser()
    keys = KeyRing(read_api_keys(settings)) if keys is None else keys
    options = turn_options(settings, habits)
    chosen = make_backend(settings) if backend is None else backend
    store = make_store(settings.store, settings.keep * DAY)
    with ExitStack() as sockets:
        bound = sockets.enter_context(bind(settings))
        more = [sockets.enter_context(bind(settings, port)) for port in settings.also_port]
        life = settings.background_lease
        async with store, conversation_locks(store, life) as locks, background_jobs(store, life) as jobs:
            app = create_app(settings, chosen, store, options, keys, page=page)
            app[BACKGROUND_JOBS] = jobs
            app[CONVERSATION_LOCKS] = locks
            app.middlewares[:0] = middlewares
            runner = web.AppRunner(
                app,
                handler_cancellation=True,  # a client that vanishes must end its turn
                shutdown_timeout=FAREWELL,
            )
            await runner.setup()
            try:
                async with chosen:
                    jobs.work_for(app)
                    listening = [await _listen(runner, each, settings.trusted_proxy) for each in (bound, *more)]
                    try:
                        yield base_url(settings.host, bound.getsockname()[1], settings.base_path)
                    finally:
                        for each in listening:
                            each.close()
                        app[STOPPING].set()
                        app[INSPECTION].feed.close()
                        await app[ACTIVITY].wait_idle(DRAIN)
                        jobs.stop()
                # The end of the backend has failed the turns that still ran. Their answers end now.
                await app[ACTIVITY].wait_idle(FAREWELL)
            finally:
                await runner.cleanup()
