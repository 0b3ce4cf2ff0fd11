"""Whether the backend would take a turn, and what trouble its provider has, as the last turns showed.

All servers in front of a provider share its trouble. So it is reported, but takes no server away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from ..contracts import Health, TextBackend
from ..errors import ApiError, BackendError, TagcallError

# Seconds that whoever asks waits for the backend's own word; after that he is told what it said last.
ANSWER_WAIT = 0.1
# Turns that fail, without one that does not between them, before it is the provider's trouble and not theirs.
ENOUGH = 3
# Seconds after which nobody remembers the last of them: somebody has to ask it again.
REMEMBERED = 30.0
# What fails a turn with a 502 and says nothing of those to come.
OF_ONE_TURN = frozenset({"backend_disconnected", "backend_not_text_only", "summary_missing", "tool_call_broken"})


log: FilteringBoundLogger = structlog.get_logger(__name__)


class Readiness:
    def __init__(self, backend: TextBackend) -> None:
        self._backend = backend
        self._said = Health(TagcallError("The backend is still starting."))
        self._asking: asyncio.Task[None] | None = None
        self._failed = 0
        self._last_failure = ("", 0.0)
        self._tasks = asyncio.TaskGroup()

    async def run(self, _: web.Application) -> AsyncIterator[None]:
        async with self._tasks:
            yield
            if self._asking is not None:
                self._asking.cancel()

    def saw(self, error: ApiError | None) -> None:
        """A turn has ended, with this error or without one."""
        if error is None:
            self._failed = 0
        elif isinstance(error, BackendError) and error.status in {502, 504} and error.code not in OF_ONE_TURN:
            self._failed += 1
            self._last_failure = error.message, asyncio.get_running_loop().time()

    @property
    def trouble(self) -> str | None:
        """The provider's, as it was told last."""
        problem, since = self._last_failure
        remembered = self._failed >= ENOUGH and asyncio.get_running_loop().time() - since < REMEMBERED
        return problem if remembered else None

    async def now(self) -> Health:
        """What is known of the backend, at once."""
        if self._asking is None or self._asking.done():
            self._asking = self._tasks.create_task(self._ask(), name="backend health")
        await asyncio.wait([self._asking], timeout=ANSWER_WAIT)
        return self._said

    async def _ask(self) -> None:
        try:
            self._said = await self._backend.health()
        except ApiError as error:
            self._said = Health(error.without_trace())
        except Exception:  # the others in the group are not to end with it
            log.exception("health_fault")
            self._said = Health(TagcallError("tagcall made a mistake; its log has more."))


READINESS = web.AppKey("readiness", Readiness)
