"""One connection to one app-server: its greeting, its login and quota, its models, and its watch.

`threads` runs the turns on it, and `session_life` says whether it is usable.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import structlog
from structlog.typing import FilteringBoundLogger

from ...contracts import Model, Prompt
from ...errors import BackendError
from ...rpc import RpcAnswerError, RpcClient, RpcError, RpcObject, Transport, UnknownMethodError
from ..answers import DISCONNECTED
from ..session_life import SessionLife
from .deltas import join_deltas
from .errors import not_logged_in
from .options import SessionOptions
from .quota import READ, UPDATED, QuotaBook
from .requests import answer_request, greeting
from .running_turn import RunningTurn, TurnLostError
from .threads import CodexThreads, Orphans
from .versions import SUPPORTED_SINCE, TAKE_A_NEWER_ONE, Support, release_of, standing_of, written

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Times the limit of its memory that an app-server may take while it is only kept for its conversations.
MOST_GROWN = 1.5
# Pages of the list of models. One is usual. A server that ignores the cursor would have no last page.
MOST_PAGES = 16
# Older programs answer one request after the other, and look for models on the network for some seconds.
SIDE_BY_SIDE_SINCE = (0, 100)


class CodexSession:
    """Made by `open_session`."""

    def __init__(self, transport: Transport, options: SessionOptions, orphans: Orphans, quota: QuotaBook) -> None:
        self.version: str | None = None
        self._lacks_login = False
        self.models: list[Model] | None = None
        self.models_listed = asyncio.Event()
        self.life = SessionLife()
        self.client = RpcClient(
            transport,
            on_notification=self._notified,
            answer=self._answer,
            on_end=self._ended,
            on_read=self._read,
            condense=join_deltas,
        )
        self._transport = transport
        self._options = options
        self._deadlines = options.deadlines
        self._quota = quota
        self._has_quota = True
        self._threads = CodexThreads(self.client, self.life, options, orphans)
        self._login = _stamp(options.login_file)

    # What the client calls

    def _notified(self, method: str, params: RpcObject) -> None:
        if method == UPDATED:
            self._quota.hear(params, time.time())
        else:
            self._threads.receive(method, params)

    def _read(self) -> None:
        self._threads.hand_over()

    def _answer(self, method: str, params: RpcObject) -> object:
        try:
            return answer_request(method, params)
        except UnknownMethodError:
            self._threads.refused(method, params)
            raise

    def _ended(self, reason: str) -> None:
        log.info(
            "codex_session_over",
            version=self.version,
            busy=self.life.busy,
            ignored=dict(self._threads.ignored.counts),
            skipped=dict(self.client.skipped.counts),
        )
        self.life.finish()
        self._threads.connection_ended()

    # Before the first turn

    async def greet(self) -> None:
        """Introduce ourselves. Raises `RpcError`, also for a program that is too old to go on with."""
        welcome = await self.client.request("initialize", greeting(), deadline=self._deadlines.greeting)
        self.client.notify("initialized")
        self._threads.interrupt_orphans()
        found = re.search(r"/(\d+\.\d+\.\d+\S*)", str(welcome.get("userAgent")))
        self.version = found[1] if found else None
        if (standing := standing_of(self.version)) is Support.REFUSED:
            raise RpcError(f"codex {self.version} is too old: {TAKE_A_NEWER_ONE}")
        await self._read_account()
        # Old programs take no injected items, and never end a turn without input.
        self._threads.keeps_lanes = bool(release_of(self.version)) and standing is Support.SUPPORTED
        log.info("codex_ready", version=self.version, logged_in=not self._lacks_login)
        if standing is Support.FIXTURES:
            log.warning("codex_too_old_to_be_text_only", version=self.version, since=written(SUPPORTED_SINCE))
        if self._options.results_as_outputs and not self._threads.keeps_lanes:
            log.warning("codex_takes_no_tool_outputs", version=self.version, results_as="user")

    async def _read_account(self) -> None:
        try:
            account = await self.client.request(
                "account/read", {"refreshToken": False}, deadline=self._deadlines.greeting
            )
        except RpcAnswerError as error:
            log.debug("codex_tells_no_account", error=str(error))
            return
        login = account.get("account")
        self._has_quota = isinstance(login, Mapping) and login.get("type") == "chatgpt"
        self._quota.belongs_to(login)
        missing = account.get("requiresOpenaiAuth") and login is None
        self._lacks_login = bool(missing)

    @property
    def problem(self) -> BackendError | None:
        """Why no turn may start although codex runs."""
        return not_logged_in(self._options.log_in) if self._lacks_login else None

    async def check_login(self) -> None:
        """Look again while a login is missing. codex reads its own file once, and knows of logins by its other clients.

        Raises `TurnLostError` if the file is another one now: the next session reads it.
        """
        if self._lacks_login and self._options.login_file is None:
            with suppress(RpcError):
                await self._read_account()
        elif self._lacks_login and self._login != _stamp(self._options.login_file):
            self.life.retire()
            raise TurnLostError(BackendError("codex has a new login and starts again.", **DISCONNECTED))

    async def list_models(self) -> None:
        """Fill `models`."""
        models: list[Model] = []
        cursor: str | None = None
        try:
            for _ in range(MOST_PAGES):
                page = await self.client.request(
                    "model/list", {"cursor": cursor} if cursor else {}, deadline=self._deadlines.models
                )
                listed = [str(row["id"]) for row in page["data"] if row["id"] and not row.get("hidden")]
                models += [Model(name, 0, "codex") for name in listed]
                cursor = page.get("nextCursor")
                if not cursor:
                    break
            self.models = models
        except (RpcError, LookupError, TypeError, AttributeError) as error:
            log.debug("codex_lists_no_models", error=str(error))
        finally:
            self.models_listed.set()

    async def read_quota(self) -> None:
        """Fill the book, if the login is of a kind that has a quota."""
        if self._has_quota:
            try:
                self._quota.take(await self.client.request(READ, deadline=self._deadlines.models), time.time())
            except RpcError as error:
                log.debug("codex_tells_no_quota", error=str(error))

    @property
    def lists_aside(self) -> bool:
        """Whether a request for the models would hold up the turns, such as an interrupt."""
        return (0,) < release_of(self.version) < SIDE_BY_SIDE_SINCE

    # Turns

    async def run_turn(self, turn: RunningTurn, prompt: Prompt) -> None:
        """Own a turn to its end at codex. Raises `BackendError` and `TurnLostError`, as `CodexThreads.run`."""
        await self.check_login()
        if (problem := self.problem) is not None:
            raise problem
        await self._threads.run(turn, prompt)

    async def prepare_threads(self) -> None:
        """Starts the threads that the next requests are likely to need, until it is cancelled."""
        await self._threads.spares.run()

    async def watch(self) -> None:
        """Looks now and then whether codex is alive, and how much memory it takes."""
        quiet, now = self._deadlines.quiet, asyncio.get_running_loop().time
        while self.life.usable or self.life.busy or self.life.lingers:
            await asyncio.sleep(max(0.0, self.client.heard + quiet - now()) or quiet)
            if self.life.busy and self.client.heard + quiet <= now():
                await self._threads.probe(f"not a line within {quiet:g} s")
            size = await self._transport.resident_bytes()
            if size is not None and size > self._options.memory_limit and self.life.usable:
                log.info("codex_retires", why="memory", bytes=size)
                self._threads.wear_out()
            too_large = size is not None and size > MOST_GROWN * self._options.memory_limit
            if self.life.lingers and (too_large or not (self._threads.forget_lapsed() or self.life.busy)):
                self.life.let_go()

    def holds(self, turn: RunningTurn, prompt: Prompt) -> bool:
        """Whether a lane here holds the beginning of the prompt's conversation."""
        return self._threads.holds(prompt, outputs=turn.outputs)

    async def farewell(self) -> None:
        """Take no new turn and interrupt those that run."""
        self.life.finish()
        await self._threads.interrupt_all()


def _stamp(file: Path | None) -> tuple[int, int] | None:
    """A value that changes when the file is written anew; None if there is no file."""
    try:
        status = None if file is None else file.stat()
    except OSError:
        return None
    return None if status is None else (status.st_mtime_ns, status.st_size)


@asynccontextmanager
async def open_session(
    connect: Callable[[], Awaitable[Transport]], options: SessionOptions, orphans: Orphans, quota: QuotaBook
) -> AsyncIterator[CodexSession]:
    """A session that is ready for turns. Raises `OSError` or `RpcError` if it cannot be opened."""
    session = CodexSession(await connect(), options, orphans, quota)
    async with session.client.running():
        try:
            await session.greet()
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(session.watch(), name="codex watch"),
                    group.create_task(session.prepare_threads(), name="codex spare threads"),
                ]
                if not session.lists_aside:
                    tasks += [
                        group.create_task(session.list_models(), name="codex models"),
                        group.create_task(session.read_quota(), name="codex quota"),
                    ]
                try:
                    yield session
                finally:
                    for task in tasks:
                        task.cancel()
        finally:
            await session.farewell()
