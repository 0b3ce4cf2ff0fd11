"""`tagcall serve`: say where, say how to use it, run until told to stop."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import Callable, Sequence

from aiohttp.typedefs import Middleware

from ..backends import find_kind, make_backend
from ..contracts import TextBackend
from ..errors import UsageError
from ..ingress.inspect import PageOptions, SaveTurn
from ..ingress.key_ring import KeyRing
from ..logs import discard_output, tell
from ..server import SET_A_KEY, read_api_keys, read_keys, running_server, stands_open
from ..settings import Settings
from ..sources import Sources
from ..turn import KeyHabits
from .obsidian import client_settings
from .shaping import as_recorded, habit_as_recorded

# Exit status of a process that was told to stop a second time and did.
INTERRUPTED = 130
# Seconds that "ready" waits for what a backend says of itself that may want a login; codex has started in 0.5.
FIRST_LOOK = 2.0


# Windows has Ctrl+Break and the closing of a console besides.
STOP = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)]


async def run_serve(sources: Sources) -> int:
    settings = as_recorded(sources)
    # What is played teaches nothing of the model that once said it.
    return await serve(settings, make_backend(settings), habits=habit_as_recorded(settings))


async def serve(
    settings: Settings,
    backend: TextBackend,
    middlewares: Sequence[Middleware] = (),
    more: str | None = None,
    habits: KeyHabits | None = None,
) -> int:
    """Serves until SIGINT, SIGTERM or SIGHUP; running turns may finish. A second of the first two ends it at once.

    Where keys are read from a file SIGHUP has them read anew, unless the terminal has gone that it was started in.
    `more` is what a recorder says behind what is always said at the beginning, `habits` as in `running_server`.
    """
    stop = asyncio.Event()
    keys = KeyRing(read_api_keys(settings))
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(INTERRUPTED)
        stop.set()

    for number in STOP:
        _on(number, loop, on_signal)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is under `nohup`
        began_in_terminal = _in_terminal()

        def on_hangup() -> None:
            if settings.api_key_file is None or (began_in_terminal and not _in_terminal()):
                stop.set()  # a terminal that closes may send it twice
            else:
                read_anew(keys, settings)

        _on(signal.SIGHUP, loop, on_hangup)
    # Who records wants to know it before what there was gives way to an error.
    patience = FIRST_LOOK if more is not None or find_kind(settings.backend).may_want_login(settings) else 0.0
    keyed = bool(settings.api_key or settings.api_key_file or settings.inspect_key)
    page = PageOptions(link=secrets.token_urlsafe(32) if keyed else None, save=_save(settings))
    async with (
        running_server(settings, backend, middlewares, habits, page, keys=keys) as url,
        asyncio.TaskGroup() as group,
    ):
        look = group.create_task(_problem(backend), name="first look at the backend")
        stopping = group.create_task(stop.wait(), name="stop")
        await asyncio.wait({look, stopping}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        problem = look.result() if look.done() else None
        if problem is not None:
            tell(f"tagcall: {problem}")
        if (exposed := stands_open(settings, read_keys(settings))) is not None:
            tell(f"tagcall: {exposed}. {SET_A_KEY}")
        said = [f"tagcall is ready on {url}"]
        if problem is not None:
            said.append(f"but every request will get this error: {problem}")
        said += [client_settings(url, settings), page_notice(url, settings, page.link)]
        if more is not None:
            said.append(more)
        try:
            print("\n".join(said), flush=True)
        except OSError:  # where nobody can read it, it serves all the same
            discard_output()
        if not look.done():
            await asyncio.wait({look, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if look.done() and (late := look.result()) is not None:
                tell(f"tagcall: {late}")
        await stopping
        look.cancel()
        tell("tagcall is stopping; running answers may finish.")
    return 0


def _in_terminal() -> bool:
    try:
        return any(os.isatty(descriptor) for descriptor in (0, 1, 2))
    except OSError:
        return False


def read_anew(keys: KeyRing, settings: Settings) -> None:
    """Takes the keys as their file has them now. A file that cannot be used changes nothing."""
    try:
        keys.replace(read_api_keys(settings))
    except UsageError as error:
        tell(f"tagcall: the keys stay as they were. {error}")
    else:
        tell(f"tagcall: {len(keys)} {'key is' if len(keys) == 1 else 'keys are'} accepted now.")


def _save(settings: Settings) -> SaveTurn | None:
    """Where words are kept, a turn can become a fixture. Others are spared the time that the recorder takes to load."""
    if not settings.inspect:
        return None
    from .record.kept import FixtureOfTurn  # noqa: PLC0415 -- as it says above

    return FixtureOfTurn(settings)


def page_notice(url: str, settings: Settings, link: str | None) -> str:
    """Where the page is, and what it keeps. `link` opens it once."""
    address = url.removesuffix("v1") + (f"#{link}" if link else "")
    size = settings.inspect_bytes / (1 << 20)
    kept = (
        f"It shows the last {settings.inspect_turns} turns with their words, {size:.4g} MiB at most, only in memory."
        if settings.inspect
        else "It shows no words. Start with --inspect to keep the words of the last turns in memory."
    )
    once = " The link works once; after that the page asks for the key." if link else ""
    return f"  What happens: {address}\n    {kept}{once}\n"


def _on(number: signal.Signals, loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    try:
        loop.add_signal_handler(number, act)
    except NotImplementedError:  # Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(act))


async def _problem(backend: TextBackend) -> str | None:
    """What every request would be told."""
    return (await backend.health()).problem
