"""Which backend a setting means: one row a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ..errors import UsageError
from ..settings import Settings
from .codex.backend import CodexBackend, codex_backend, remote_backend, replay_backend


def _base_instructions(settings: Settings) -> str | None:
    match settings.base_instructions:
        case None:
            return None
        case "none":
            return ""
        case file:
            try:
                return Path(file).expanduser().read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"The base instructions in {file} cannot be read: {error}.") from None


def _codex(settings: Settings, _: str) -> CodexBackend:
    return codex_backend(
        home=settings.codex_home,
        program=settings.codex,
        upstream=settings.upstream,
        builtin_provider=settings.codex_provider == "openai",
        models=settings.model,
        idle_timeout=settings.idle_timeout,
        base_instructions=_base_instructions(settings),
    )


def _replay(settings: Settings, address: str) -> CodexBackend:
    folder = Path(address.partition(":")[2]).expanduser()
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder of fixtures: give one with --backend replay:DIR.")
    from ..replay.fixture import load_fixtures  # noqa: PLC0415 -- only here

    load_fixtures(folder)  # what is wrong with one is told before anything is started
    return replay_backend(folder, speed=settings.speed, models=settings.model, idle_timeout=settings.idle_timeout)


def _remote(settings: Settings, address: str) -> CodexBackend:
    return remote_backend(
        address,
        models=settings.model,
        idle_timeout=settings.idle_timeout,
        base_instructions=_base_instructions(settings),
    )


BACKENDS: Mapping[str, Callable[[Settings, str], CodexBackend]] = {
    "auto": _codex,
    "codex": _codex,
    "replay": _replay,
    "unix": _remote,
    "ws": _remote,
    "wss": _remote,
}


def make_backend(settings: Settings) -> CodexBackend:
    """The backend that `settings.backend` names, not started yet. Raises `UsageError`."""
    kind, colon, address = settings.backend.partition(":")
    make = BACKENDS.get(kind)
    # `auto` and `codex` stand alone, the others need an address.
    if make is None or (make is _codex) is bool(colon) or (colon and not address.strip("/")):
        raise UsageError(
            f"--backend {settings.backend} is unknown: use auto, codex, replay:DIR, ws://HOST:PORT or unix:PATH."
        )
    return make(settings, settings.backend)
