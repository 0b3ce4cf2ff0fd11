"""Settings to a running server: bind first, then start the backend, then answer."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from prompts import PROFILES

from .backends import make_backend
from .contracts import TextBackend
from .errors import UsageError
from .ingress import create_app
from .ingress.admission import is_loopback
from .ingress.state import ACTIVITY
from .settings import Settings
from .stores import make_store
from .turn import CallRelease, TurnOptions

# Seconds that running turns may take to finish once the server was told to stop.
DRAIN = 20.0
# Seconds for the last events of the turns that did not.
FAREWELL = 2.0


def read_keys(settings: Settings) -> tuple[str, ...]:
    """The keys that are accepted; none means that any is. Raises `UsageError`."""
    keys = list(settings.api_key)
    if settings.api_key_file is not None:
        try:
            lines = settings.api_key_file.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The keys in {settings.api_key_file} cannot be read: {error}.") from None
        keys += [line.strip() for line in lines if line.strip()]
        if not keys:
            raise UsageError(f"{settings.api_key_file} holds no key: write one into it.")
    if not keys and not is_loopback(settings.host):
        raise UsageError(
            f"Listening on {settings.host} lets others reach your account: set a key with --api-key or --api-key-file."
        )
    return tuple(keys)


def bind(settings: Settings) -> socket.socket:
    """A bound socket, so that a port in use is found before anything is started."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=128)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"Cannot listen on {settings.host} port {settings.port} ({reason}): choose another with --port."
        ) from None


def base_url(host: str, port: int) -> str:
    """The URL that clients are given."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"


def turn_options(settings: Settings) -> TurnOptions:
    return TurnOptions(
        release=CallRelease(settings.calls),
        profile=PROFILES[settings.profile],
        require_nonce=settings.require_nonce,
    )


@asynccontextmanager
async def running_server(settings: Settings, backend: TextBackend | None = None) -> AsyncIterator[str]:
    """A server that answers as long as the context is open; yields its base URL.

    `backend` replaces the one that the settings name. Leaving the context lets running turns finish
    for `DRAIN` seconds; what runs on then fails with its backend, and its client is told so.
    """
    keys = read_keys(settings)
    chosen = make_backend(settings) if backend is None else backend
    store = make_store(settings.store)
    with bind(settings) as bound:
        async with store:
            app = create_app(settings, chosen, store, turn_options(settings), keys)
            runner = web.AppRunner(
                app,
                access_log=None,
                auto_decompress=False,
                handler_cancellation=True,  # a client that vanishes must end its turn
                keepalive_timeout=75.0,
                shutdown_timeout=FAREWELL,
            )
            await runner.setup()
            try:
                async with chosen:
                    site = web.SockSite(runner, bound)
                    await site.start()
                    try:
                        yield base_url(settings.host, bound.getsockname()[1])
                    finally:
                        await site.stop()
                        await app[ACTIVITY].wait_idle(DRAIN)
                # Leaving the backend has failed what was still running; those answers end now.
                await app[ACTIVITY].wait_idle(FAREWELL)
            finally:
                await runner.cleanup()
