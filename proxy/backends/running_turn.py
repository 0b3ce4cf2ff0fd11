"""A turn while it runs, as its reader, its owner and its consumer share it.

reader --receive--> reduction --> inbox --> consumer --leave--.
                        |                                     v
                        '--fail, end--> settled, ended --> owner: interrupts it, waits, gives up
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from ..contracts import BackendEvent
from ..errors import BackendError
from ..rpc import JsonObject
from .codex_errors import FAILED
from .codex_turn import TurnFailed, TurnReduction
from .inbox import Inbox

log = structlog.get_logger(__name__)


class Turn:
    """What is known of one turn by those who take part: the reader, its owner and its consumer."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.left = False
        self.settled = asyncio.Event()
        """Nothing more is to be told: it ended, failed, or nobody listens."""
        self.ended = asyncio.Event()
        """codex has reported its end, or is gone."""
        self.heard = 0.0
        self._reduction = TurnReduction()

    def begin(self) -> None:
        """Forget an attempt of which nothing was told."""
        self._reduction = TurnReduction()
        self.settled = asyncio.Event()
        self.ended = asyncio.Event()
        self.heard = asyncio.get_running_loop().time()

    @property
    def awaited(self) -> bool:
        """Whether its consumer is there and has not heard its end."""
        return not (self.left or self.inbox.ended)

    @property
    def id(self) -> str | None:
        return self._reduction.turn_id

    def started_as(self, turn_id: str) -> None:
        self._reduction.turn_id = turn_id

    def receive(self, method: str, params: JsonObject) -> None:
        """Take one notification of its thread. Called by the reader."""
        self.heard = asyncio.get_running_loop().time()
        try:
            events = self._reduction.receive(method, params)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            log.warning("codex_notification_ignored", method=method, error=repr(error))
            return
        self._tell(events)
        if method == "turn/completed" and self._reduction.over:
            self.ended.set()
            self.inbox.end()
            self.settled.set()

    def _tell(self, events: Sequence[BackendEvent | TurnFailed]) -> None:
        told = [event for event in events if not isinstance(event, TurnFailed)]
        if not self.inbox.put(told):
            self.fail(BackendError("The answer is not read as fast as it comes.", **FAILED))
        for event in events:
            if isinstance(event, TurnFailed):
                self.fail(event.error)

    def fail(self, error: BackendError) -> None:
        self.inbox.end(error)
        self.settled.set()

    def leave(self) -> None:
        """The consumer has gone, done or not."""
        self.left = True
        self.settled.set()
