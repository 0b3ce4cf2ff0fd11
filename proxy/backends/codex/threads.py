"""The turns that run on one connection, each on a thread of its own, which nothing follows.

A turn is a task of the backend: whoever reads its events may leave at any moment, and the turn is then
ended at codex without anyone waiting for that.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog
from structlog.typing import FilteringBoundLogger

from ...contracts import Prompt
from ...errors import BackendError
from ...rpc import (
    RpcAnswerError,
    RpcBusyError,
    RpcClient,
    RpcClosedError,
    RpcDeadlineError,
    RpcError,
    RpcObject,
    SkipCounter,
)
from ..session_life import SessionLife
from .errors import DISCONNECTED, FAILED, NOT_TEXT_ONLY, TIMEOUT, rejected, rpc_failure
from .options import INTERRUPTS, SessionOptions
from .requests import thread_params, turn_params
from .running_turn import RunningTurn, TurnLostError
from .spare_threads import SpareThreads, Started

log: FilteringBoundLogger = structlog.get_logger(__name__)

# As a turn's id: 0.163 and 0.169 interrupt whatever runs on the thread then, older versions nothing.
WHATEVER_RUNS = ""

# Seconds from a turn's start to that of the next turn's thread: codex has asked the model by then, and waits.
NEXT_THREAD_AFTER = 0.02

# Threads and their turns that a lost connection left behind.
Orphans = list[tuple[str, str]]


class CodexThreads:
    """Made by the session. `orphans` gets the turns that outlive the connection."""

    def __init__(self, client: RpcClient, life: SessionLife, options: SessionOptions, orphans: Orphans) -> None:
        self.ignored = SkipCounter("codex_line_ignored")
        self._client = client
        self._life = life
        self._options = options
        self._deadlines = options.deadlines
        self._orphans = orphans
        self._running: dict[str, RunningTurn] = {}
        self._started = 0
        self.spares = SpareThreads(self._start_thread, options.spare_threads)
        self._environments = True  # what a version refuses is not sent to it again

    # What the reader calls

    def receive(self, method: str, params: RpcObject) -> None:
        turn = self._running.get(str(params.get("threadId")))
        if turn is None:
            if "turnId" in params or "turn" in params:
                self.ignored.counts["of no turn that runs"] += 1
            return
        try:
            turn.receive(method, params)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            self.ignored.add(f"{method} of an unknown shape", error=repr(error))
        self._life.proven = self._life.proven or turn.completed

    def refused(self, method: str, params: RpcObject) -> None:
        """A turn asked for something that is not served: it must show soon that it can do without."""
        turn = self._running.get(str(params.get("threadId") or params.get("conversationId")))
        if turn is not None:
            asyncio.get_running_loop().call_later(self._deadlines.refusal, _give_up, turn, turn.lines, method)

    def connection_ended(self) -> None:
        failure = BackendError("The app-server ended in mid-turn.", **DISCONNECTED)
        for thread_id, turn in self._running.items():
            if not turn.ended.is_set():
                self._leave_behind(thread_id, turn)
            turn.lose(failure)

    # What ends turns

    def interrupt(self, thread_id: str, turn_id: str | None) -> None:
        """Its answer is not waited for: old versions never give one to a turn that has ended."""
        with suppress(RpcClosedError):
            self._client.post("turn/interrupt", {"threadId": thread_id, "turnId": turn_id or WHATEVER_RUNS})

    def interrupt_orphans(self) -> None:
        while self._orphans:
            self.interrupt(*self._orphans.pop())

    async def interrupt_all(self) -> None:
        """Waits until they have ended where the connection's end does not end them."""
        for thread_id, turn in self._running.items():
            if not turn.ended.is_set():
                self.interrupt(thread_id, turn.id)
        if self._options.turns_outlive_connection:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._deadlines.interrupt):
                    for turn in list(self._running.values()):
                        await turn.ended.wait()

    def _leave_behind(self, thread_id: str, turn: RunningTurn) -> None:
        if self._options.turns_outlive_connection:
            self._orphans.append((thread_id, turn.id or WHATEVER_RUNS))

    # What a turn's owner calls

    async def run(self, turn: RunningTurn, prompt: Prompt) -> None:
        """Own a turn from its thread's start to its end at codex.

        Raises `BackendError` for a failure that the consumer has not been told, and `TurnLostError`.
        """
        with self._life.turn():
            thread = self.spares.take(prompt) or await self._start_thread(prompt)
            try:
                if not turn.left:
                    await self._run_on(thread, turn, prompt)
            finally:
                if not thread.ephemeral:
                    with suppress(RpcClosedError):
                        self._client.post("thread/archive", {"threadId": thread.id})

    async def _start_thread(self, prompt: Prompt) -> Started:
        params = thread_params(prompt, self._options.cwd, self._options.base_instructions)
        try:
            thread = (await self._request_thread(params))["thread"]
            thread_id = str(thread["id"])
        except RpcDeadlineError as error:
            await self._doubt(str(error))
            raise TurnLostError(rpc_failure(error, "start a thread")) from error
        except RpcClosedError as error:
            raise TurnLostError(rpc_failure(error, "start a thread")) from error
        except RpcError as error:
            raise rpc_failure(error, "start a thread") from error
        except (LookupError, TypeError) as error:
            raise BackendError("codex started a thread without a name.", **FAILED) from error
        self._started += 1
        if self._started >= self._options.thread_limit:
            self._life.retire()
        return Started(thread_id, bool(thread.get("ephemeral")))

    async def _request_thread(self, params: RpcObject) -> RpcObject:
        deadline = self._deadlines.request
        if self._environments:
            try:
                return await self._client.request("thread/start", {**params, "environments": []}, deadline=deadline)
            except RpcAnswerError as error:
                if "environments" not in error.message:
                    raise
                self._environments = False
        return await self._client.request("thread/start", params, deadline=deadline)

    async def _run_on(self, thread: Started, turn: RunningTurn, prompt: Prompt) -> None:
        turn.begin()
        # Before the request: the first notifications may come before its answer.
        self._running[thread.id] = turn
        try:
            async with asyncio.TaskGroup() as group:
                starting = group.create_task(self._start_turn(thread, turn, prompt), name="turn start")
                await self._wait_until_settled(turn)
                # Who leaves before the turn is known cannot name it yet.
                await turn.known.wait()
                await self._end_at_codex(thread.id, turn)
                starting.cancel()
        finally:
            del self._running[thread.id]
        if turn.lost is not None:
            raise TurnLostError(turn.lost)

    async def _start_turn(self, thread: Started, turn: RunningTurn, prompt: Prompt) -> None:
        """Ask for the turn. What comes of it is told to `turn`; nothing is raised."""
        try:
            params = turn_params(thread.id, prompt)
            answer = await self._client.request("turn/start", params, deadline=self._deadlines.request)
            turn.started_as(str(answer["turn"]["id"]))
            if thread.ephemeral and self._life.usable:
                asyncio.get_running_loop().call_later(NEXT_THREAD_AFTER, self.spares.want, prompt)
        except RpcDeadlineError as error:
            # When its lines came, only the answer is lost.
            if turn.id is None:
                await self._doubt(str(error))
                turn.lose(rpc_failure(error, "start a turn"))
                self.interrupt(thread.id, None)
        except RpcClosedError as error:
            turn.lose(rpc_failure(error, "start a turn"))
        except RpcAnswerError as error:
            failure = rpc_failure(error, "start a turn")
            if thread.waited:
                # It may be the thread that is not there any more; another attempt has a new one.
                turn.lose(failure)
                return
            turn.refuse(rejected(error.message) if failure.status == FAILED["status"] else failure)
        except RpcBusyError as error:
            turn.refuse(rpc_failure(error, "start a turn"))
        except (LookupError, TypeError):
            if turn.id is None:
                turn.refuse(BackendError("codex started a turn without a name.", **FAILED))
                self.interrupt(thread.id, None)

    async def _wait_until_settled(self, turn: RunningTurn) -> None:
        idle, total = self._options.idle_timeout, self._deadlines.total
        while not turn.settled.is_set():
            now = asyncio.get_running_loop().time()
            if turn.heard + idle <= now:
                turn.fail(BackendError(f"The backend was silent for {idle:g} s.", **TIMEOUT))
            elif turn.begun + total <= now:
                turn.fail(BackendError(f"The turn was not over within {total:g} s.", **TIMEOUT))
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(turn.heard + idle, turn.begun + total) - now):
                        await turn.settled.wait()

    async def _end_at_codex(self, thread_id: str, turn: RunningTurn) -> None:
        """Interrupt the turn until codex reports its end."""
        for _ in range(INTERRUPTS):
            if turn.ended.is_set():
                return
            self.interrupt(thread_id, turn.id)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._deadlines.interrupt):
                    await turn.ended.wait()
        if not turn.ended.is_set():
            self._leave_behind(thread_id, turn)
            await self._doubt("a turn does not end")

    async def _doubt(self, why: str) -> None:
        """What does not even answer is killed; what does ends with its other turns, as something in it is stuck."""
        if await self.probe(why):
            log.warning("codex_retires", why=why)
            self._life.retire()

    async def probe(self, why: str) -> bool:
        """Whether codex still answers; if not, it is killed, with all its turns."""
        try:
            await self._client.request_at_once("thread/loaded/list", {}, deadline=self._deadlines.probe)
        except RpcDeadlineError as error:
            log.error("codex_does_not_react", why=why, error=str(error))  # noqa: TRY400 -- its trace is ours
            self._life.finish()
            self._client.abort(why)
            return False
        except RpcError:
            pass  # alive, or gone and known to be
        return True


def _give_up(turn: RunningTurn, lines: int, method: str) -> None:
    if turn.lines == lines:
        sentence = f"codex asked for what is not served ({method}) and said no more; the turn was stopped."
        turn.fail(BackendError(sentence, **NOT_TEXT_ONLY))
