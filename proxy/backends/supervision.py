"""Keeps one session of something that may end at any time.

            .------------------- after a pause --------------------.
            v                                                      |
    --> Starting --greeted--> Ready --------ended--------------> Broken
            |                   |                                  ^
            |                   '--worn out--> Recycling --.       |
            |                                    |         |       |
            |                      Ready <--greeted        |       |
            '--------------------- does not start ---------+-------'

    any --shut down--> Draining: what runs is ended, nothing starts

A worn-out session finishes its work beside its successor. Work never queues for long: it waits for a start that is
under way or about to come. Otherwise it is refused, with the time of the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, Protocol, TypeVar

import structlog
from msgspec import Struct
from structlog.typing import FilteringBoundLogger

from ..errors import TagcallError, reason_of
from .answers import unavailable
from .restart_policy import Pause, RestartHistory, RestartPolicy
from .session_life import SessionLife

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Seconds that work waits for a start that is under way.
START_WAIT = 20.0
# Seconds that work waits out of a pause before the next start; for longer ones it is sent away.
SHORT_PAUSE = 2.5

# What a session may always fail with; its backend names what else is no bug.
START_FAILURES: tuple[type[Exception], ...] = (OSError, TagcallError, TimeoutError)


class Session(Protocol):
    @property
    def life(self) -> SessionLife: ...


S = TypeVar("S", bound=Session)


class Starting(Struct, frozen=True):
    pass


class Ready(Struct, Generic[S], frozen=True):
    session: S


class Recycling(Struct, frozen=True):
    """The last one is worn out, the next is starting."""


class Broken(Struct, frozen=True):
    """There is none until a moment in the loop's time. `problem` is one sentence for a person."""

    problem: str
    until: float


class Draining(Struct, frozen=True):
    pass


class Supervisor(Generic[S]):
    """`run` is its life; `current` is for everyone who needs the session.

    `name` is what a person is told of it, at the beginning of a sentence. `failures` are those of `open_session`
    that are no bug, besides `START_FAILURES`.
    """

    def __init__(
        self,
        open_session: Callable[[], AbstractAsyncContextManager[S]],
        name: str,
        policy: RestartPolicy = RestartPolicy(),  # noqa: B008 -- frozen
        failures: tuple[type[Exception], ...] = (),
    ) -> None:
        self._open = open_session
        self._name = name
        self._failures = (*START_FAILURES, *failures)
        self._history = RestartHistory(policy)
        self.starts = 0
        self._state: Starting | Ready[S] | Recycling | Broken | Draining = Starting()
        self._changed = asyncio.Event()

    @property
    def state(self) -> Starting | Ready[S] | Recycling | Broken | Draining:
        return self._state

    async def current(self) -> S:
        """The session, waiting for a start that is under way. Raises a 503 `BackendError` that names the state."""
        if isinstance(self._state, Ready) and self._state.session.life.usable:
            return self._state.session  # as nearly always: no clock is set for it
        try:
            async with asyncio.timeout(START_WAIT):
                while True:
                    match self._state:
                        case Ready(session) if session.life.usable:
                            return session
                        case Broken(problem, until):
                            wait = until - asyncio.get_running_loop().time()
                            if wait > SHORT_PAUSE:
                                raise unavailable(problem, wait)
                        case Draining():
                            raise unavailable(f"{self._name} is shutting down.")
                        case Starting() | Ready() | Recycling():
                            pass
                    await self._changed.wait()
        except TimeoutError:
            raise unavailable(f"{self._name} is still starting.", 5) from None

    async def run(self) -> None:
        """Start, watch, start again, until cancelled; then every session has ended."""
        async with asyncio.TaskGroup() as group:
            try:
                self._become(Starting())
                while True:
                    await self._one_session(group)
            finally:
                self._become(Draining())

    async def _one_session(self, group: asyncio.TaskGroup) -> None:
        """From its start until the next one may start."""
        loop = asyncio.get_running_loop()
        self.starts += 1
        ready: asyncio.Future[S] = loop.create_future()
        group.create_task(self._live(ready), name=f"{self._name} session")
        began = loop.time()
        try:
            session = await ready
        except self._failures as error:
            await self._pause(self._history.failed_to_start(), f"{self._name} does not start: {reason_of(error)}")
            return
        self._become(Ready(session))
        life = session.life
        await life.unusable()
        proven = life.proven or life.worn
        pause = self._history.ended(loop.time(), lasted=loop.time() - began, proven=proven)
        if life.worn:
            self._become(Recycling())
        else:
            await self._pause(pause, f"{self._name} has ended")

    async def _pause(self, pause: Pause, problem: str) -> None:
        log.warning("backend_down", problem=problem, broken=pause.broken, next_start_in=round(pause.seconds, 2))
        if pause.seconds:
            again = "It has failed too often and is left alone for a while" if pause.broken else "It starts again soon"
            self._become(Broken(f"{problem}. {again}.", asyncio.get_running_loop().time() + pause.seconds))
            await asyncio.sleep(pause.seconds)
        self._become(Starting())

    async def _live(self, ready: asyncio.Future[S]) -> None:
        try:
            async with self._open() as session:
                if not ready.done():
                    ready.set_result(session)
                    await session.life.finished()
        except self._failures as error:
            self._end_badly(ready, error)
        except Exception as error:  # one session's bug must not end the supervisor, which starts the next
            log.exception("session_crashed")
            self._end_badly(ready, TagcallError(f"the proxy made a mistake ({error!r})"))

    def _end_badly(self, ready: asyncio.Future[S], error: Exception) -> None:
        if ready.done():
            log.debug("session_ended_badly", error=str(error))
        else:
            ready.set_exception(error)

    def _become(self, state: Starting | Ready[S] | Recycling | Broken | Draining) -> None:
        self._state = state
        self._changed.set()
        self._changed = asyncio.Event()
