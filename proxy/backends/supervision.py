"""Keeps one session of something that may end at any time.

    starting --ready--> up --worn out or gone--> starting
        '----failed----> down, for a while -----> starting

A worn-out session finishes its work beside its successor. Work is never queued for a session that is down.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import structlog

from ..errors import BackendError, TagcallError
from ..rpc import RpcError
from .codex_errors import UNAVAILABLE

log = structlog.get_logger(__name__)

BACKOFF = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before the next start, by the number of failures in a row."""
STEADY = 10.0
"""Seconds a session must have lasted for its end not to count as one more failure in a row."""
START_WAIT = 20.0
"""Seconds that work waits for a start that is under way."""
SHORT_PAUSE = 2.0
"""Seconds that work waits out of a pause before the next start; for longer ones it is sent away."""

START_FAILURES = (OSError, RpcError, TagcallError, TimeoutError)


class Session(Protocol):
    async def unusable(self) -> None:
        """Returns when it may get no new work."""
        ...

    async def finished(self) -> None:
        """Returns when it has no work left and will get none."""
        ...

    @property
    def usable(self) -> bool: ...

    @property
    def worn(self) -> bool:
        """It works, but a fresh one shall take over."""
        ...


S = TypeVar("S", bound=Session)


@dataclass(frozen=True, slots=True)
class Starting:
    pass


@dataclass(frozen=True, slots=True)
class Up(Generic[S]):
    session: S


@dataclass(frozen=True, slots=True)
class Down:
    """`until` is in the loop's time."""

    problem: str
    until: float


class Supervisor(Generic[S]):
    """`run` is its life; `current` is for everyone who needs the session."""

    def __init__(self, open_session: Callable[[], AbstractAsyncContextManager[S]], name: str) -> None:
        self._open = open_session
        self._name = name
        self._state: Starting | Up[S] | Down = Starting()
        self._changed = asyncio.Event()

    @property
    def state(self) -> Starting | Up[S] | Down:
        return self._state

    async def current(self) -> S:
        """The session, waiting for a start that is under way. Raises a 503 `BackendError` while it is down."""
        try:
            async with asyncio.timeout(START_WAIT):
                while True:
                    match self._state:
                        case Up(session) if session.usable:
                            return session
                        case Down(problem, until):
                            wait = until - asyncio.get_running_loop().time()
                            if not 0 < wait <= SHORT_PAUSE:
                                raise BackendError(problem, retry_after=max(1.0, wait), **UNAVAILABLE)
                            await self._changed.wait()
                        case Starting() | Up():
                            await self._changed.wait()
        except TimeoutError:
            raise BackendError(f"{self._name} is still starting.", retry_after=5, **UNAVAILABLE) from None

    async def run(self) -> None:
        """Start, watch, start again, until cancelled; then every session has ended."""
        loop = asyncio.get_running_loop()
        failures = 0
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._become(Starting())
                    ready: asyncio.Future[S] = loop.create_future()
                    group.create_task(self._live(ready), name=f"{self._name} session")
                    began = loop.time()
                    try:
                        session = await ready
                    except START_FAILURES as error:
                        failures += 1
                        problem = f"{self._name} does not start: {error}"
                    else:
                        self._become(Up(session))
                        await session.unusable()
                        steady = session.worn or loop.time() - began >= STEADY
                        failures = 0 if steady else failures + 1
                        problem = f"{self._name} has ended and is about to start again."
                    await self._pause(failures, problem)
        finally:
            self._become(Down(f"{self._name} is shut down.", loop.time()))

    async def _pause(self, failures: int, problem: str) -> None:
        delay = BACKOFF[min(failures, len(BACKOFF)) - 1] if failures else 0.0
        if delay:
            delay *= random.uniform(0.75, 1.25)  # noqa: S311 -- jitter is no secret
            log.warning("backend_down", problem=problem, next_start_in=round(delay, 2))
            self._become(Down(problem, asyncio.get_running_loop().time() + delay))
            await asyncio.sleep(delay)

    async def _live(self, ready: asyncio.Future[S]) -> None:
        try:
            async with self._open() as session:
                ready.set_result(session)
                await session.finished()
        except START_FAILURES as error:
            if ready.done():
                log.debug("session_ended_badly", error=str(error))
            else:
                ready.set_exception(error)

    def _become(self, state: Starting | Up[S] | Down) -> None:
        self._state = state
        self._changed.set()
        self._changed = asyncio.Event()
