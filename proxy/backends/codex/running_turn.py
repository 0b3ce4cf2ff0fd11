"""A turn while it runs, shared by its reader, its owner and its consumer.

reader --receive--> reduction --> events --> consumer --leave--.
                        |                                      v
                        '--fail, end, lose--> settled --> owner: waits until it is known at codex,
                                                                 interrupts it until it has ended

             its first line, or the answer     its end, or the connection's
being started ------------------------> known ------------------------> ended
      '------------------- refused, or lost ------------------------------^
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from ...contracts import BackendEvent, LineListener, Usage
from ...errors import BackendError
from ...rpc import RpcObject
from ..answers import BAD_REQUEST, FAILED
from ..event_queue import EventQueue
from .reduction import AttemptFailed, TurnReduction


class TurnLostError(Exception):
    """The turn has lost its app-server. It may run on another one if its consumer was told nothing yet.

    Otherwise its consumer is told the `failure`.
    """

    def __init__(self, failure: BackendError) -> None:
        super().__init__(failure.message)
        self.failure = failure


class RunningTurn:
    """The state of one turn, for the reader, its owner and its consumer."""

    def __init__(
        self,
        allowed: frozenset[str],
        listener: LineListener | None,
        log_in: str | None,
        *,
        outputs: bool,
    ) -> None:
        """`outputs`: results go out as outputs of tools, until that is refused."""
        self.events = EventQueue()
        self._now = asyncio.get_running_loop().time
        self.outputs = outputs
        self.outputs_refused = False
        self._allowed = allowed
        self._log_in = log_in
        self._listener = listener
        self.left = False
        self.begin()

    def begin(
        self,
        before: Usage = Usage(),  # noqa: B008 -- frozen
        earlier: Collection[str] = (),
        *,
        refusable: bool = False,
    ) -> None:
        """Begin an attempt, and forget an earlier one of which nothing was told.

        `before` are the tokens of its thread until now, `earlier` the ids of the turns that ran on it. `refusable`: the
        thread gets outputs of tools, and the service may refuse these.
        """
        self._refusable = refusable
        self.settled = asyncio.Event()
        """No more events come: the turn ended, failed, was lost, or nobody listens."""
        self.known = asyncio.Event()
        """The turn runs at codex under `id`, or it never will."""
        self.ended = asyncio.Event()
        """codex has reported its end, or is gone, or never began the turn."""
        self.lost: BackendError | None = None
        self.begun = self.heard = self._now()
        self.lines = 0
        self._reduction = TurnReduction(before, self._allowed, self._log_in, earlier)

    @property
    def awaited(self) -> bool:
        """Whether its consumer is still there and waits for its end."""
        return not (self.left or self.events.ended)

    @property
    def id(self) -> str | None:
        return self._reduction.turn_id

    @property
    def total(self) -> Usage:
        """All tokens of its thread."""
        return self._reduction.total

    @property
    def passed_over(self) -> set[str]:
        """The kinds of items that were passed over."""
        return self._reduction.passed_over

    @property
    def differs(self) -> bool:
        """Whether its thread holds another answer than its consumer was told."""
        return self._reduction.differs

    @property
    def completed(self) -> bool:
        """Whether codex itself has reported its end."""
        return self._reduction.completed

    @property
    def unanswered(self) -> bool:
        """Whether it failed, and its thread holds what was asked, and nothing behind it."""
        return self._reduction.unanswered

    def started_as(self, turn_id: str) -> None:
        self._take(self._reduction.begin(turn_id))
        self.events.hand_over()

    def exchanged(self, message: RpcObject, *, ours: bool) -> None:
        """Shows its listener a message of the turn that was sent or has come."""
        if self._listener is not None:
            self._listener(self._now(), ours, message)

    def receive(self, method: str, params: RpcObject) -> None:
        """Take one notification of its thread. The reader calls this, and then has `events` hand the events over.

        Raises LookupError, TypeError, AttributeError or ValueError for a notification of another shape.
        """
        if self.ended.is_set():
            return
        self.heard = self._now()
        self.lines += 1
        if self._listener is not None:
            self._listener(self.heard, False, {"method": method, "params": params})
        if piece := self._reduction.next_piece(method, params):
            self._put([piece])
        else:
            self._take(self._reduction.receive(method, params))

    def _take(self, events: Sequence[BackendEvent | AttemptFailed]) -> None:
        if self._reduction.turn_id is not None:
            self.known.set()
        if events:
            self._tell(events)
        if self._reduction.completed and self.lost is None:
            self.events.end()
            self._over()

    def _tell(self, events: Sequence[BackendEvent | AttemptFailed]) -> None:
        self._put([event for event in events if not isinstance(event, AttemptFailed)])
        if isinstance(last := events[-1], AttemptFailed):  # no event stands behind it
            self._failed(last.error)

    def _put(self, events: Sequence[BackendEvent]) -> None:
        if not self.events.put(events):
            self.fail(BackendError("The answer is not read as fast as it comes.", **FAILED))

    def _failed(self, error: BackendError) -> None:
        if self._refusable and error.code == BAD_REQUEST["code"] and not self.events.used:
            # The service refused before any word, perhaps because of the outputs. The next attempt goes without them.
            self.outputs, self.outputs_refused = False, True
            self.lose(error)
        else:
            self.fail(error)

    def fail(self, error: BackendError) -> None:
        self.events.end(error)
        self.settled.set()

    def refuse(self, error: BackendError) -> None:
        """codex refused the turn, so it never began."""
        self._failed(error)
        self._over()

    def lose(self, failure: BackendError) -> None:
        """No more lines of it will come. Its owner decides whether it runs again."""
        if not self.ended.is_set():
            self.lost = failure
        self._over()

    def _over(self) -> None:
        self.ended.set()
        self.known.set()
        self.settled.set()

    def leave(self) -> None:
        """The consumer has gone. The turn may be over or not."""
        self.left = True
        self.settled.set()
