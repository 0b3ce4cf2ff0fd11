"""The turns that run on one connection, each on its thread.

A turn is a task of the backend. The reader of its events may leave at any moment; the task then ends the turn at codex,
and nobody waits for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress

import structlog
from msgspec.structs import replace
from structlog.typing import FilteringBoundLogger

from prompts import OwnLine, Text

from ...contracts import Lane, Prompt
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
from ...tracing import CURRENT
from ..answers import DISCONNECTED, FAILED, NOT_TEXT_ONLY, TIMEOUT
from ..session_life import SessionLife
from .errors import MAX_INPUT, rejected, rpc_failure, too_long
from .lanes import HeldThread, Lanes, Unsaid, binding_lines, identity
from .options import INTERRUPTS, SessionOptions
from .requests import inject_params, thread_params, turn_params
from .running_turn import RunningTurn, TurnLostError
from .spare_threads import SpareThreads, Started

log: FilteringBoundLogger = structlog.get_logger(__name__)

# The id in an interrupt if the turn's is not known: 0.163 and 0.171 interrupt whatever runs, older versions nothing.
WHATEVER_RUNS = ""

# Seconds after a turn's start at which the next turn's thread is started: codex is then waiting for the model.
NEXT_THREAD_AFTER = 0.02

# Seconds that a model gets to end by itself when no more of its answer is wanted. An interrupt would spoil the lane.
WINDS_DOWN = 2.0

# Threads and their turns that a lost connection left behind.
Orphans = list[tuple[str, str]]


class CodexThreads:
    """Made by the session. `orphans` gets the turns that outlive the connection.

    `keeps_lanes` says whether the version can keep lanes. An option says whether it shall.
    """

    def __init__(self, client: RpcClient, life: SessionLife, options: SessionOptions, orphans: Orphans) -> None:
        self.ignored = SkipCounter("codex_line_ignored")
        self._client = client
        self._life = life
        self._options = options
        self._deadlines = options.deadlines
        self._orphans = orphans
        self._running: dict[str, RunningTurn] = {}
        self._told: dict[RunningTurn, None] = {}  # turns with events that were not handed over yet
        self._started = 0
        self._passed_over: set[str] = set()
        self.spares = SpareThreads(self._start_thread, options.spare_threads)
        self.keeps_lanes = False
        self._lanes = None if options.lanes is None else Lanes(options.lanes)
        self._environments = True  # not sent again once this version has refused it

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
        self._told[turn] = None
        if method == "turn/completed":
            for kind in turn.passed_over - self._passed_over:
                self._passed_over.add(kind)
                log.info("codex_item_passed_over", kind=kind)
            self._life.proven = self._life.proven or turn.completed

    def hand_over(self) -> None:
        """Hands over the events of all lines that were read together."""
        told, self._told = self._told, {}
        no_task = asyncio.current_task() is None
        for turn in told:
            turn.events.hand_over(at_once=no_task)

    def refused(self, method: str, params: RpcObject) -> None:
        """A turn asked for something that is not served. It fails unless another line of it comes soon."""
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
        """Sends an interrupt without waiting for its answer: old versions give none if the turn has ended."""
        with suppress(RpcClosedError):
            self._client.post("turn/interrupt", {"threadId": thread_id, "turnId": turn_id or WHATEVER_RUNS})

    def interrupt_orphans(self) -> None:
        while self._orphans:
            self.interrupt(*self._orphans.pop())

    async def interrupt_all(self) -> None:
        """Interrupts all turns. Waits for their end if they would outlive the connection."""
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
            if self._lanes is not None and self.keeps_lanes and prompt.items:
                await self._run_in_lane(self._lanes, turn, prompt)
                return
            characters = sum(len(part.text) for part in prompt.parts if isinstance(part, Text))
            if characters > MAX_INPUT:
                raise too_long(characters)
            thread = await self._thread_for(turn, prompt)
            try:
                if not turn.left:
                    await self._run_on(thread, turn, prompt, Unsaid((), prompt.parts))
            finally:
                if not thread.ephemeral:
                    with suppress(RpcClosedError):
                        self._client.post("thread/archive", {"threadId": thread.id})

    @property
    def _keeps_on(self) -> bool:
        """Whether lanes may still be kept on this connection."""
        return self._life.usable or self._life.lingers

    def wear_out(self) -> None:
        """Leaves new conversations to a fresh app-server. Those that this one holds may go on here for a while."""
        if not self._life.usable:
            return
        if self._lanes is not None and self.keeps_lanes:
            self._life.age()
        else:
            self._life.retire()

    def holds(self, prompt: Prompt, *, outputs: bool) -> bool:
        """Whether the prompt's conversation goes on here."""
        return self._lanes is not None and self.keeps_lanes and self._lanes.holds(prompt, outputs=outputs)

    def forget_lapsed(self) -> bool:
        """Forgets the lanes that were idle for too long. Returns whether any are left."""
        if self._lanes is not None:
            self._forget(self._lanes.lapsed(asyncio.get_running_loop().time()))
        return bool(self._lanes)

    async def _run_in_lane(self, lanes: Lanes, turn: RunningTurn, prompt: Prompt) -> None:
        now = asyncio.get_running_loop().time
        self._forget(lanes.lapsed(now()))
        found = lane = lanes.take(prompt, outputs=turn.outputs)
        prompt.continuation.lane = Lane(found is not None, lanes.reason)
        if lane is None:
            prompt = replace(prompt, developer=prompt.head)
            lane = HeldThread(identity(prompt, outputs=turn.outputs), await self._thread_for(turn, prompt))
        ended = False

        def resume(meanings: frozenset[bytes] | None) -> None:
            # The lane goes on only if the turn ended by itself: an interrupt leaves a message of codex's own in the
            # thread, and an item that was passed over may do so, too.
            unlike = turn.lost is not None or bool(turn.passed_over) or turn.differs
            lines = binding_lines(prompt) if turn.unanswered else None
            if lines is not None and OwnLine.FAULT not in lines:
                meanings = frozenset([b""])  # it can be asked for once more, by whoever asks the same
            if meanings is None or not turn.completed or unlike or not self._keeps_on:
                if ended:
                    self._forget([lane])
                else:
                    lane.spoilt = True
                return
            lane.hold(prompt, meanings, turn.total, turn.id)
            lane.unanswered = lines
            self._forget(lanes.keep(lane, now()))

        def wind_down() -> None:
            asyncio.get_running_loop().call_later(WINDS_DOWN, turn.events.end)

        prompt.continuation.resume, prompt.continuation.wind_down = resume, wind_down
        try:
            if turn.left:
                lane.spoilt = True
                return
            await self._run_on(lane.thread, turn, prompt, lane.say(prompt), lane, alike=found is None)
        except TurnLostError:
            # The next attempt takes another thread.
            lane.spoilt = True
            raise
        finally:
            ended = True
            if lane.spoilt:
                self._forget([lane])

    def _forget(self, lanes: Sequence[HeldThread]) -> None:
        """Gives these threads up. codex keeps an ephemeral thread until it ends, but stops telling of it."""
        for lane in lanes:
            with suppress(RpcClosedError):
                self._client.post("thread/unsubscribe", {"threadId": lane.thread.id})

    async def _thread_for(self, turn: RunningTurn, prompt: Prompt) -> Started:
        """A thread that was started ahead, or a new one."""
        turn.exchanged({"method": "thread/start", "params": self._thread_params(prompt)}, ours=True)
        return self.spares.take(prompt) or await self._start_thread(prompt)

    def _thread_params(self, prompt: Prompt) -> RpcObject:
        return thread_params(prompt, self._options.cwd, self._options.base_instructions)

    async def _start_thread(self, prompt: Prompt) -> Started:
        params = self._thread_params(prompt)
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
            self.wear_out()
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

    async def _run_on(
        self,
        thread: Started,
        turn: RunningTurn,
        prompt: Prompt,
        what: Unsaid,
        lane: HeldThread | None = None,
        *,
        alike: bool = True,
    ) -> None:
        """Runs a turn on a thread, which is that of its `lane` if it has one. `alike`: start a thread like it ahead."""
        if lane is None:
            turn.begin()
        else:
            turn.begin(lane.usage, lane.turns, refusable=turn.outputs and any(item.tool for item in prompt.items))
        # Registered before the request, because the first notifications may come before its answer.
        self._running[thread.id] = turn
        try:
            # If the request can be written without a wait, this is done here, before the task is made.
            at_once = self._client.takes_at_once and not what.older
            answer = (
                await self._ask(thread, turn, prompt, what)
                if at_once
                else self._inject_and_ask(thread, turn, prompt, what)
            )
            async with asyncio.TaskGroup() as group:
                start = self._start_turn(thread, turn, prompt, answer, alike=alike)
                starting = group.create_task(start, name="turn start")
                await asyncio.sleep(0)
                await self._wait_until_settled(turn)
                # If the reader left early, the turn's id may not be known yet, and an interrupt needs it.
                await turn.known.wait()
                await self._end_at_codex(thread.id, turn)
                starting.cancel()
        finally:
            # The next turn of the lane may run already: a reader may go on before this task has seen the end.
            if self._running.get(thread.id) is turn:
                del self._running[thread.id]
        if turn.lost is not None:
            raise TurnLostError(turn.lost)

    async def _ask(self, thread: Started, turn: RunningTurn, prompt: Prompt, what: Unsaid) -> Awaitable[RpcObject]:
        """Ask for the turn. Its answer has to be awaited."""
        params = turn_params(thread.id, prompt, what.newest, tiered=what.tiered)
        turn.exchanged({"method": "turn/start", "params": params}, ours=True)
        trace = CURRENT.get().parent
        return await self._client.ask("turn/start", params, deadline=self._deadlines.request, traceparent=trace)

    async def _inject_and_ask(self, thread: Started, turn: RunningTurn, prompt: Prompt, what: Unsaid) -> RpcObject:
        """Gives the thread its older items, then asks for the turn. Returns the answer."""
        if what.older:
            # Awaited, because otherwise a turn would run without items that codex has refused.
            older = inject_params(thread.id, what.older, outputs=what.outputs)
            turn.exchanged({"method": "thread/inject_items", "params": older}, ours=True)
            await self._client.request("thread/inject_items", older, deadline=self._deadlines.request)
        return await (await self._ask(thread, turn, prompt, what))

    async def _start_turn(
        self,
        thread: Started,
        turn: RunningTurn,
        prompt: Prompt,
        asked: Awaitable[RpcObject],
        *,
        alike: bool,
    ) -> None:
        """Wait for the turn that codex was `asked` for. Tells `turn` what came of it, and raises nothing."""
        try:
            answer = await asked
            turn.exchanged({"result": answer}, ours=False)
            turn.started_as(str(answer["turn"]["id"]))
            if thread.ephemeral and alike and self._life.usable:
                asyncio.get_running_loop().call_later(NEXT_THREAD_AFTER, self.spares.want, prompt)
        except RpcDeadlineError as error:
            # If lines of the turn have come, it runs, and only the answer was lost.
            if turn.id is None:
                await self._doubt(str(error))
                turn.lose(rpc_failure(error, "start a turn"))
                self.interrupt(thread.id, None)
        except RpcClosedError as error:
            turn.lose(rpc_failure(error, "start a turn"))
        except RpcAnswerError as error:
            turn.exchanged({"error": {"code": error.code, "message": error.message}}, ours=False)
            failure = rpc_failure(error, "start a turn")
            if thread.waited:
                # The spare thread may be gone. The next attempt takes a new one.
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
            turn.exchanged({"method": "turn/interrupt"}, ours=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._deadlines.interrupt):
                    await turn.ended.wait()
        if not turn.ended.is_set():
            self._leave_behind(thread_id, turn)
            await self._doubt("a turn does not end")

    async def _doubt(self, why: str) -> None:
        """Kills an app-server that does not answer. One that answers is stuck somewhere: it ends with its last turn."""
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
        sentence = f"codex asked for {method}, which tagcall does not serve, and said no more; the turn was stopped."
        turn.fail(BackendError(sentence, **NOT_TEXT_ONLY))
