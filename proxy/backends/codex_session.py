"""One connection to one app-server, and the turns that run on it.

A turn is a task of the backend: whoever reads its events may leave at any moment, and the turn is then
ended at codex without anyone waiting for that. Each turn has a thread of its own, which nothing follows.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from ..contracts import Model, Prompt
from ..errors import BackendError
from ..rpc import (
    JsonObject,
    RpcAnswerError,
    RpcClient,
    RpcClosedError,
    RpcDeadlineError,
    RpcError,
    Transport,
)
from .codex_errors import FAILED, LOGIN, NOT_LOGGED_IN, TIMEOUT, rejected, rpc_failure
from .codex_program import release_of
from .codex_requests import answer, greeting, thread_params, turn_params
from .running_turn import Turn

log = structlog.get_logger(__name__)

GREETING_DEADLINE = 15.0
"""Seconds for each request before the first turn; a cold start takes up to 0.5."""
REQUEST_DEADLINE = 30.0
"""Seconds for starting a thread or a turn; 3 were seen of a version that looks for models first."""
MODELS_DEADLINE = 20.0
"""Seconds for the list of models, which nothing waits for."""
INTERRUPT_WAIT = 2.0
"""Seconds for an interrupted turn to be reported as ended; 0.1 is usual."""
INTERRUPTS = 3
PROBE_DEADLINE = 5.0
"""Seconds for any answer at all from an app-server that does not end a turn."""

TEXT_ONLY_SINCE = (0, 133)
"""Older programs keep tools that no setting takes away."""
SIDE_BY_SIDE_SINCE = (0, 100)
"""Older programs answer one request after the other, and look on the network for models for seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """`cwd` is where threads run, in the app-server's eyes; None leaves that to it.

    `login_file` is codex's own, of which only the time is looked at. `base_instructions` replace codex's own;
    None leaves them as they are. After `thread_limit` threads a fresh process takes over: codex keeps about
    1 MB of each. With `turns_outlive_connection` a lost connection leaves turns behind that the next one ends.
    """

    idle_timeout: float = 300.0
    cwd: str | None = None
    login_file: Path | None = None
    base_instructions: str | None = None
    thread_limit: int = 500
    turns_outlive_connection: bool = False


@dataclass(slots=True)
class _Abilities:
    """Found out by asking once; what a version refuses is not sent to it again."""

    environments: bool = True


@dataclass(slots=True)
class _Life:
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    unusable: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    worn: bool = False


class CodexSession:
    """Made by `open_session`. `problem` is why no turn may start although codex runs."""

    def __init__(self, transport: Transport, options: SessionOptions, orphans: list[tuple[str, str]]) -> None:
        self.version: str | None = None
        self.problem: str | None = None
        self.models: list[Model] | None = None
        self._client = RpcClient(transport, on_notification=self._notified, answer=answer)
        self._options = options
        self._orphans = orphans
        self._turns: dict[str, Turn] = {}
        self._busy = 0
        self._threads = 0
        self._abilities = _Abilities()
        self._life = _Life()
        self._login = _stamp(options.login_file)
        self.models_listed = asyncio.Event()

    # Its life

    @property
    def usable(self) -> bool:
        return not self._life.unusable.is_set()

    @property
    def worn(self) -> bool:
        return self._life.worn

    async def unusable(self) -> None:
        await self._life.unusable.wait()

    async def finished(self) -> None:
        await self._life.finished.wait()

    def retire(self) -> None:
        """Take no new turn; end with the last one that runs."""
        self._life.worn = True
        self._life.unusable.set()
        if not self._busy:
            self._life.finished.set()

    def condemn(self, why: str) -> None:
        """codex does not react any more: end it, with all its turns."""
        log.error("codex_does_not_react", why=why)
        self._life.unusable.set()
        self._life.finished.set()

    async def carry(self) -> None:
        """Carry lines until the connection ends, which ends every turn."""
        try:
            await self._client.run()
        finally:
            self._life.closed.set()
            self._life.unusable.set()
            self._life.finished.set()
            if self._options.turns_outlive_connection:
                running = ((thread, turn) for thread, turn in self._turns.items() if not turn.ended.is_set())
                self._orphans += [(thread, turn.id) for thread, turn in running if turn.id is not None]
            for turn in self._turns.values():
                turn.ended.set()
                turn.settled.set()

    async def close(self) -> None:
        """Interrupt what runs and end the connection."""
        self._life.unusable.set()
        for thread_id, turn in self._turns.items():
            self._interrupt(thread_id, turn.id)
        if self._options.turns_outlive_connection:
            # What a listening app-server was asked last it forgets with the connection.
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERRUPT_WAIT):
                    for turn in list(self._turns.values()):
                        await turn.ended.wait()
        await self._client.close()

    async def greet(self) -> None:
        """Introduce ourselves. Raises `RpcError`."""
        welcome = await self._client.request("initialize", greeting(), deadline=GREETING_DEADLINE)
        self._client.notify("initialized")
        while self._orphans:
            self._interrupt(*self._orphans.pop())
        found = re.search(r"/(\d+\.\d+\.\d+\S*)", str(welcome.get("userAgent")))
        self.version = found[1] if found else None
        await self._read_account()
        log.info("codex_ready", version=self.version, problem=self.problem)
        if (0,) < release_of(self.version) < TEXT_ONLY_SINCE:
            log.warning("codex_too_old_to_be_text_only", version=self.version, since="0.133")

    async def check_login(self) -> None:
        """Look again while a login is missing.

        codex reads its login once. Raises `RpcClosedError` when there is another now: the next session has it.
        """
        if self.problem is not None and self._login != _stamp(self._options.login_file):
            self.retire()
            raise RpcClosedError("codex has a new login")

    async def _read_account(self) -> None:
        try:
            account = await self._client.request("account/read", {"refreshToken": False}, deadline=GREETING_DEADLINE)
        except RpcAnswerError as error:
            log.debug("codex_tells_no_account", error=str(error))
            return
        missing = account.get("requiresOpenaiAuth") and account.get("account") is None
        self.problem = NOT_LOGGED_IN if missing else None

    async def list_models(self) -> None:
        """Fill `models`."""
        models: list[Model] = []
        cursor: str | None = None
        try:
            while True:
                page = await self._client.request(
                    "model/list", {"cursor": cursor} if cursor else {}, deadline=MODELS_DEADLINE
                )
                models += [Model(row["id"], 0, "codex") for row in page["data"] if row["id"] and not row.get("hidden")]
                cursor = page.get("nextCursor")
                if not cursor:
                    break
            self.models = models
        except (RpcError, LookupError, TypeError, AttributeError) as error:
            log.debug("codex_lists_no_models", error=str(error))
        finally:
            self.models_listed.set()

    @property
    def lists_aside(self) -> bool:
        """Whether a list of models would hold up the turns, an interrupt for one."""
        return (0,) < release_of(self.version) < SIDE_BY_SIDE_SINCE

    # Turns

    async def run_turn(self, turn: Turn, prompt: Prompt) -> None:
        """Own a turn from its thread's start to its end at codex.

        Raises `BackendError` for a failure that the consumer has not been told, and `RpcClosedError` when
        the connection ended before it heard the end of the turn.
        """
        self._busy += 1
        try:
            await self.check_login()
            if self.problem is not None:
                raise BackendError(self.problem, **LOGIN)
            await self._run_on_thread(turn, prompt)
        except RpcDeadlineError as error:
            self.condemn(str(error))
            raise rpc_failure(error, "start a turn") from error
        finally:
            self._busy -= 1
            if self._life.worn and not self._busy:
                self._life.finished.set()

    async def _run_on_thread(self, turn: Turn, prompt: Prompt) -> None:
        thread_id, ephemeral = await self._start_thread(prompt)
        try:
            if not turn.left:
                await self._run_to_its_end(thread_id, turn, prompt)
        finally:
            if not ephemeral:
                with suppress(RpcClosedError):
                    self._client.post("thread/archive", {"threadId": thread_id})

    async def _run_to_its_end(self, thread_id: str, turn: Turn, prompt: Prompt) -> None:
        turn.begin()
        # Before the request: the first notifications may come before its answer.
        self._turns[thread_id] = turn
        try:
            turn.started_as(await self._start_turn(thread_id, prompt))
            await self._wait_until_settled(turn)
            await self._end_at_codex(thread_id, turn)
        finally:
            del self._turns[thread_id]
        if self._life.closed.is_set() and turn.awaited:
            raise RpcClosedError("the app-server ended in mid-turn")

    async def _start_thread(self, prompt: Prompt) -> tuple[str, bool]:
        """A new thread's id, and whether it leaves no trace by itself."""
        params = thread_params(prompt, self._options.cwd, self._options.base_instructions)
        try:
            started = await self._request_thread(params)
        except RpcAnswerError as error:
            raise rpc_failure(error, "start a thread") from error
        self._threads += 1
        if self._threads >= self._options.thread_limit:
            self.retire()
        thread = started["thread"]
        return str(thread["id"]), bool(thread.get("ephemeral"))

    async def _request_thread(self, params: JsonObject) -> JsonObject:
        if self._abilities.environments:
            try:
                without_files = {**params, "environments": []}
                return await self._client.request("thread/start", without_files, deadline=REQUEST_DEADLINE)
            except RpcAnswerError as error:
                if "environments" not in error.message:
                    raise
                self._abilities.environments = False
        return await self._client.request("thread/start", params, deadline=REQUEST_DEADLINE)

    async def _start_turn(self, thread_id: str, prompt: Prompt) -> str:
        try:
            params = turn_params(thread_id, prompt)
            started = await self._client.request("turn/start", params, deadline=REQUEST_DEADLINE)
        except RpcAnswerError as error:
            failure = rpc_failure(error, "start a turn")
            raise rejected(error.message) if failure.status == FAILED["status"] else failure from error
        return str(started["turn"]["id"])

    async def _wait_until_settled(self, turn: Turn) -> None:
        idle = self._options.idle_timeout
        while not turn.settled.is_set():
            left = turn.heard + idle - asyncio.get_running_loop().time()
            if left <= 0:
                turn.fail(BackendError(f"The backend was silent for {idle:g} s.", **TIMEOUT))
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await turn.settled.wait()

    async def _end_at_codex(self, thread_id: str, turn: Turn) -> None:
        """Interrupt the turn until codex reports its end. The interrupt's own answer never comes from old versions."""
        for _ in range(INTERRUPTS):
            if turn.ended.is_set():
                return
            self._interrupt(thread_id, turn.id)
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERRUPT_WAIT):
                    await turn.ended.wait()
        if turn.ended.is_set():
            return
        try:
            await self._client.request("thread/loaded/list", {}, deadline=PROBE_DEADLINE)
        except RpcDeadlineError as error:
            self.condemn(str(error))
        except RpcError:
            pass  # alive, or gone and known to be

    def _interrupt(self, thread_id: str, turn_id: str | None) -> None:
        with suppress(RpcClosedError):
            if turn_id is not None:
                self._client.post("turn/interrupt", {"threadId": thread_id, "turnId": turn_id})

    def _notified(self, method: str, params: JsonObject) -> None:
        turn = self._turns.get(str(params.get("threadId")))
        if turn is not None:
            turn.receive(method, params)


def _stamp(file: Path | None) -> tuple[int, int] | None:
    """Differs after the file was written anew; None when there is none."""
    try:
        status = None if file is None else file.stat()
    except OSError:
        return None
    return None if status is None else (status.st_mtime_ns, status.st_size)


@asynccontextmanager
async def open_session(
    connect: Callable[[], Awaitable[Transport]], options: SessionOptions, orphans: list[tuple[str, str]]
) -> AsyncIterator[CodexSession]:
    """A session that is ready for turns. Raises `OSError` or `RpcError` when it cannot come to that."""
    session = CodexSession(await connect(), options, orphans)
    failure: RpcError | None = None
    async with asyncio.TaskGroup() as group:
        group.create_task(session.carry(), name="codex connection")
        try:
            await session.greet()
            if not session.lists_aside:
                group.create_task(session.list_models(), name="codex models")
            yield session
        except RpcError as error:
            failure = error  # raised below, where the group does not wrap it
        finally:
            await session.close()
    if failure is not None:
        raise failure
