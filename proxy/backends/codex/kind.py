"""The codex program as a child: its row in the table."""

from __future__ import annotations

from collections.abc import Sequence

from ...contracts import TextBackend
from ..kind import BackendKind, BackendSettings, Finding, refuse_key


def _make(settings: BackendSettings) -> TextBackend:
    from .backend import codex_backend  # noqa: PLC0415 -- other kinds do without
    from .item_kinds import allowed_items  # noqa: PLC0415 -- likewise
    from .options import lane_bounds, read_base_instructions  # noqa: PLC0415 -- likewise

    refuse_key(settings)
    return codex_backend(
        home=settings.codex_home,
        program=settings.codex,
        upstream=settings.upstream,
        builtin_provider=settings.codex_provider == "openai",
        models=settings.model,
        idle_timeout=settings.idle_timeout,
        base_instructions=read_base_instructions(settings.base_instructions),
        lanes=lane_bounds(settings),
        allowed_items=allowed_items(settings.allow_item),
        results_as_outputs=settings.results_as == "tool",
        thread_limit=settings.codex_threads,
        memory_limit=settings.codex_memory,
    )


async def _check_before(settings: BackendSettings) -> Sequence[Finding]:
    from .examination import check_before  # noqa: PLC0415 -- only doctor asks

    return await check_before(settings)


async def _check_after(settings: BackendSettings) -> Sequence[Finding]:
    from .examination import check_after  # noqa: PLC0415 -- likewise

    return await check_after(settings)


def _may_want_login(settings: BackendSettings) -> bool:
    from .home import LOGIN_FILE  # noqa: PLC0415 -- likewise

    return settings.upstream is None and not (settings.codex_home / LOGIN_FILE).exists()


CODEX = BackendKind(
    help="the codex app-server, started as a child",
    make=_make,
    may_want_login=_may_want_login,
    check_before=_check_before,
    check_after=_check_after,
)
