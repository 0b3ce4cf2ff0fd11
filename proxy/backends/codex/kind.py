"""The codex program as a child: its row in the table, and what `doctor` looks at."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ...contracts import TextBackend
from ...errors import ApiError, UsageError
from ..kind import BackendKind, BackendSettings, Finding


def _make(settings: BackendSettings) -> TextBackend:
    from .backend import codex_backend  # noqa: PLC0415 -- other kinds do without
    from .item_kinds import allowed_items  # noqa: PLC0415 -- likewise
    from .options import lane_bounds, read_base_instructions  # noqa: PLC0415 -- likewise

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
    )


async def _check_program(settings: BackendSettings) -> Sequence[Finding]:
    from .program import locate_program, read_version  # noqa: PLC0415 -- only doctor asks

    try:
        program = locate_program(settings.codex)
    except UsageError as error:
        return [Finding("program", False, str(error))]
    version = read_version(program)
    if version is None:
        said, remedy = f"{program} does not say its version", "Name another one with --codex PATH."
        return [Finding("program", False, said, remedy)]
    return [Finding("program", True, f"codex {version}, {program}")]


async def _check_after(settings: BackendSettings) -> Sequence[Finding]:
    return [*await _check_text_only(settings), await _check_items(settings)]


async def _check_items(settings: BackendSettings) -> Finding:
    """Foretells turns that end because this codex tells of what we have never heard of."""
    from .item_kinds import unknown_kinds  # noqa: PLC0415 -- only doctor asks
    from .program import locate_program  # noqa: PLC0415 -- likewise

    unknown = await asyncio.to_thread(unknown_kinds, locate_program(settings.codex), settings.allow_item)
    if unknown is None:
        return Finding("items", None, "this codex does not say which kinds of items it may tell of")
    if not unknown:
        return Finding("items", True, "every kind of item that this codex may tell of is known")
    said = f"this codex may tell of items that are not known here: {', '.join(unknown)}"
    remedy = "A turn with one is stopped. Update tagcall; or, when it is harmless, start it with --allow-item KIND."
    return Finding("items", None, said, remedy)


async def _check_text_only(settings: BackendSettings) -> Sequence[Finding]:
    """Lets codex send one request a model to us instead of to its service, and looks at what is in it."""
    from .text_only import tools_that_reach_the_model  # noqa: PLC0415 -- only doctor asks

    try:
        seen = await tools_that_reach_the_model(settings.codex, settings.model)
    except (ApiError, OSError, TimeoutError) as error:
        return [Finding("text-only", None, f"could not be checked: {error}")]
    tools = sorted({tool for names in seen.values() for tool in names})
    if tools:
        said = f"this codex gives the model tools of its own: {', '.join(tools)}"
        remedy = "Use codex 0.160 or newer: pip install -U openai-codex-cli-bin, or --codex PATH."
        return [Finding("text-only", False, said, remedy)]
    return [Finding("text-only", True, f"no built-in tool reaches the model (asked of {len(seen)} models)")]


CODEX = BackendKind(
    help="the codex app-server, started as a child",
    make=_make,
    check_before=_check_program,
    check_after=_check_after,
)
