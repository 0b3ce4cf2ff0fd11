"""A turn while it runs, as its reader, its owner and its consumer share it.

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
from .item_kinds import HARMLESS
from .reduction import AttemptFailed, TurnReduction


class TurnLostError(Exception):
    """The app-server is lost to this turn, which may run on another one when nothing was told of it yet.

    `failure` is what its consumer is told otherwise.
    """

    def __init__(self, failure: BackendError) -> None:
        super().__init__(failure.message)
        self.failure = failure


class RunningTurn:
    """What is known of one turn by those who take part: the reader, its owner and its consumer."""

    def __init__(
        self,
        allowed: frozenset[str] = HARMLESS,
        listener: LineListener | None = None,
        log_in: str | None = None,
        *,
        outputs: bool = False,
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
        """Forget an attempt of which nothing was told.

        `before` are the tokens of its thread until now, `earlier` the ids of the turns that ran on it. `refusable`: it
        has outputs of tools, so that a refusal may be of them.
        """
        self._refusable = refusable
        self.settled = asyncio.Event()
        """Nothing more is to be told: it ended, failed, was lost, or nobody listens."""
        self.known = asyncio.Event()
        """It runs at codex under `id`, or it never will."""
        self.ended = asyncio.Event()
        """codex has reported its end, or is gone, or never began."""
        self.lost: BackendError | None = None
        self.begun = self.heard = self._now()
        self.lines = 0
        self._reduction = TurnReduction(before, self._allowed, self._log_in, earlier)

    @property
    def awaited(self) -> bool:
        """Whether its consumer is there and has not heard its end."""
        return not (self.left or self.events.ended)

    @property
    def id(self) -> str | None:
        return self._reduction.turn_id

    @property
    def total(self) -> Usage:
        """The tokens of its thread in all."""
        return self._reduction.total

    @property
    def passed_over(self) -> set[str]:
        """The kinds of the items that nobody is told of."""
        return self._reduction.passed_over

    @property
    def differs(self) -> bool:
        """Whether its thread holds another answer than was told."""
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
        """A message for it is sent, or has come."""
        if self._listener is not None:
            self._listener(self._now(), ours, message)

    def receive(self, method: str, params: RpcObject) -> None:
        """Take one notification of its thread. Called by the reader, who then lets `events` hand over what it told.

        Raises LookupError, TypeError, AttributeError or ValueError for one that has not the shape it should have.
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
        if isinstance(last := events[-1], AttemptFailed):  # nothing is told behind one
            self._failed(last.error)

    def _put(self, events: Sequence[BackendEvent]) -> None:
        if not self.events.put(events):
            self.fail(BackendError("The answer is not read as fast as it comes.", **FAILED))

    def _failed(self, error: BackendError) -> None:
        if self._refusable and error.code == BAD_REQUEST["code"] and not self.events.used:
            # The service said no before a word, and may mean the outputs: another attempt goes without them.
            self.outputs, self.outputs_refused = False, True
            self.lose(error)
        else:
            self.fail(error)

    def fail(self, error: BackendError) -> None:
        self.events.end(error)
        self.settled.set()

    def refuse(self, error: BackendError) -> None:
        """It never began."""
        self._failed(error)
        self._over()

    def lose(self, failure: BackendError) -> None:
        """Nothing will be heard of it any more. Whether it runs again is its owner's business."""
        if not self.ended.is_set():
            self.lost = failure
        self._over()

    def _over(self) -> None:
        self.ended.set()
        self.known.set()
        self.settled.set()

    def leave(self) -> None:
        """The consumer has gone, done or not."""
        self.left = True
        self.settled.set()
