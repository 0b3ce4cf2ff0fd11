"""Which backend a setting means: one row a kind. Help, errors, `doctor` and `record` know the kinds from here."""

from __future__ import annotations

from collections.abc import Mapping

from ..contracts import TextBackend
from ..errors import UsageError
from ..setting_values import is_address
from .chat.kind import CHAT_SERVER, LOCAL
from .codex.kind import CODEX
from .kind import BackendKind, BackendSettings
from .remote import UNIX_SOCKET, WEB_SOCKET
from .replay import REPLAY

# What stands before the first colon -> what is meant by it.
BACKENDS: Mapping[str, BackendKind] = {
    "auto": CODEX,
    "codex": CODEX,
    "replay": REPLAY,
    "ws": WEB_SOCKET,
    "wss": WEB_SOCKET,
    "unix": UNIX_SOCKET,
    "http": CHAT_SERVER,
    "https": CHAT_SERVER,
    **LOCAL,
}


def backend_forms() -> list[str]:
    """How each kind is written, as `codex` and `replay:DIR`."""
    return [_form(name, kind) for name, kind in BACKENDS.items()]


def backend_help() -> str:
    """The kinds and what each means, those together that mean the same."""
    forms: dict[str, list[str]] = {}
    for name, kind in BACKENDS.items():
        forms.setdefault(kind.help, []).append(f"`{_form(name, kind)}`")
    return " ".join(f"{_listed(named, 'and')}: {meaning}." for meaning, named in forms.items())


def find_kind(backend: str) -> BackendKind:
    """The row of what `--backend` says. Raises `UsageError`."""
    name, colon, address = backend.partition(":")
    kind = BACKENDS.get(name)
    if kind is None or (kind.address is None) is bool(colon) or (colon and not address.strip("/")):
        raise UsageError(f"--backend {backend} is unknown", f"use {_listed(backend_forms(), 'or')}")
    if kind.address is not None and kind.address.startswith("//") and not is_address(backend):
        raise UsageError(f"--backend {name}:... is not an address", f"write {_form(name, kind)}")
    return kind


def make_backend(settings: BackendSettings) -> TextBackend:
    """The backend that `settings.backend` names, not started yet. Raises `UsageError`."""
    return find_kind(settings.backend).make(settings)


def _form(name: str, kind: BackendKind) -> str:
    return name if kind.address is None else f"{name}:{kind.address}"


def _listed(words: list[str], last: str) -> str:
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
