"""Chat Completions servers in the table: one at an address, and the local ones that are known by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...errors import UsageError
from ...setting_values import text_of_file
from ..kind import BackendKind, BackendSettings, Finding, takes_results_as_users_only
from .servers import LOCAL_SERVERS

if TYPE_CHECKING:
    from .backend import ChatBackend

_URL = re.compile(r"(https?://)(?P<user>[^/@]*@)?(?P<host>[^/?#@]+)(?P<path>[^?#]*)")


def server_url(backend: str) -> str:
    """The address that a setting means, without a slash at its end; `/v1` where it has no path. Raises `UsageError`."""
    if backend in LOCAL_SERVERS:
        return LOCAL_SERVERS[backend].address
    parts = _URL.fullmatch(backend)
    if parts is None:
        raise UsageError(f"--backend {backend} is not an address", "write for instance http://127.0.0.1:8080/v1")
    if parts["user"]:
        raise UsageError("--backend has a name or a key in its address", "give the key with --backend-key-file")
    return f"{parts[1]}{parts['host']}{parts['path'].rstrip('/') or '/v1'}"


def server_key(settings: BackendSettings) -> str | None:
    """The key that the server wants, if the settings name one. Raises `UsageError`."""
    if settings.backend_key_file is None:
        return settings.backend_key
    file = settings.backend_key_file
    key = text_of_file(file, f"The key in {file}", "name another file with --backend-key-file").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise UsageError(f"{file} holds no key", "write it into the file, and nothing else")
    return key


def _make(settings: BackendSettings) -> ChatBackend:
    from .backend import ChatBackend  # noqa: PLC0415 -- other kinds do without

    takes_results_as_users_only(settings)
    local = LOCAL_SERVERS.get(settings.backend)
    return ChatBackend(
        server_url(settings.backend),
        start=local.start if local else "start the model server, or give --backend another address",
        key=server_key(settings),
        flat=settings.chat_roles == "flat",
        models=settings.model,
        idle_timeout=settings.idle_timeout,
    )


async def _examine(settings: BackendSettings) -> Sequence[Finding]:
    from .examination import examine_server  # noqa: PLC0415 -- only doctor asks

    async with _make(settings) as backend:
        return [finding async for finding in examine_server(backend, LOCAL_SERVERS.get(settings.backend))]


CHAT_SERVER = BackendKind(
    help="an OpenAI-style Chat Completions server, with or without tools",
    address="//HOST:PORT/v1",
    profile="small",
    make=_make,
    check_model=_examine,
)
LOCAL: Mapping[str, BackendKind] = {
    name: replace(
        CHAT_SERVER, help="the server of that name on this machine, at its usual port", address=None, provider=name
    )
    for name in LOCAL_SERVERS
}
