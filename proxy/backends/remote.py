"""An app-server that is already running, behind a WebSocket or a Unix socket. Its configuration is its owner's."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..contracts import TextBackend
from ..errors import UsageError
from .kind import BackendKind, BackendSettings, Finding, refuse_key

if TYPE_CHECKING:
    from .codex import LaneBounds


# As a part of a sentence: `tagcall login` would log in a home that it does not have.
LOG_IN = "run `codex login` where the app-server runs, and restart it"


def remote_backend(
    address: str,
    *,
    models: Sequence[str] = (),
    idle_timeout: float = 300.0,
    base_instructions: str | None = None,
    lanes: LaneBounds | None = None,
    allow_item: Sequence[str] = (),
    results_as_outputs: bool = False,
) -> TextBackend:
    """An app-server that listens at `ws://HOST:PORT` or `unix:PATH`."""
    from ..rpc import Transport  # noqa: PLC0415 -- nearly everyone has the app-server as a child
    from ..rpc.websocket import WebSocketTransport, without_login  # noqa: PLC0415 -- likewise
    from .codex import CodexBackend, SessionOptions, allowed_items  # noqa: PLC0415 -- likewise

    async def connect() -> Transport:
        return await WebSocketTransport.connect(address)

    options = SessionOptions(
        idle_timeout=idle_timeout,
        base_instructions=base_instructions,
        lanes=lanes,
        turns_outlive_connection=True,
        log_in=LOG_IN,
        allowed_items=allowed_items(allow_item),
        results_as_outputs=results_as_outputs,
    )
    return CodexBackend(connect, options, models=models, name=f"the app-server at {without_login(address)}")


def _make(settings: BackendSettings) -> TextBackend:
    from .codex import lane_bounds, read_base_instructions  # noqa: PLC0415 -- likewise

    refuse_key(settings)
    return remote_backend(
        settings.backend,
        models=settings.model,
        idle_timeout=settings.idle_timeout,
        base_instructions=read_base_instructions(settings.base_instructions),
        lanes=lane_bounds(settings),
        allow_item=settings.allow_item,
        results_as_outputs=settings.results_as == "tool",
    )


async def not_our_business(_: BackendSettings) -> Sequence[Finding]:
    said = "not checked: the owner of this app-server decides which tools its model gets"
    return [Finding("text-only", None, said)]


WEB_SOCKET = BackendKind(
    help="an app-server that is already running",
    address="//HOST:PORT",
    make=_make,
    next_step="Start it there, as `codex app-server --listen ws://HOST:PORT` does, or give --backend another address.",
    check_after=not_our_business,
)


def _make_unix(settings: BackendSettings) -> TextBackend:
    if not hasattr(socket, "AF_UNIX"):
        raise UsageError("This system has no Unix sockets", "name the app-server as ws://HOST:PORT")
    return _make(settings)


UNIX_SOCKET = replace(WEB_SOCKET, address="PATH", make=_make_unix)
