"""One line a request: ids, names and durations. Never text of a prompt or an answer, never a secret."""

from __future__ import annotations

import time

import structlog
from msgspec import Struct, field
from structlog.typing import FilteringBoundLogger

from parser import Tier

from ..contracts import Usage
from ..errors import ApiError
from ..tracing import NO_TRACE, Trace
from ..turn import Count, TurnReport, sentence_of

# What the line says of a turn's usage.
TOKENS = ("input_tokens", "cached_tokens", "output_tokens")

log: FilteringBoundLogger = structlog.get_logger(__name__)


class RequestLog(Struct):
    """Gathers what the line will say; `write` it once the request is over. Durations are in milliseconds.

    Its fields are for reading; what happens is told by its methods.
    """

    id: str
    method: str
    path: str
    origin: str = ""
    client: str = ""
    route: str = "other"
    body: bytes | None = None
    model: str | None = None
    stream: bool | None = None
    response: str | None = None
    failed: ApiError | None = None
    client_gone: bool = False
    asker: str = ""
    """The name of the key that asks."""
    trace: Trace = NO_TRACE
    usage: Usage | None = None
    whole: bool = False
    turn: TurnReport = field(default_factory=TurnReport)
    _started: float = field(default_factory=time.monotonic)
    _first: float | None = None

    @property
    def elapsed_ms(self) -> float:
        return _milliseconds(time.monotonic() - self._started)

    def reached(self, route: str) -> None:
        self.route = route

    def answers(self, model: str, response: str, *, stream: bool) -> None:
        """A turn of `model` is asked for, and `response` will say what came of it."""
        self.model, self.response, self.stream = model, response, stream

    def came_from(self, asker: str) -> None:
        self.asker = asker

    def used(self, usage: Usage) -> None:
        self.usage = usage

    def asked(self, body: bytes) -> None:
        """The body of the request, for who looks on; nothing of it is logged."""
        self.body = body

    def failed_with(self, error: ApiError) -> None:
        self.failed = error.without_trace()

    def client_left(self) -> None:
        self.client_gone = True

    def left_whole(self) -> None:
        """All of the answer is on its way: a client that leaves now misses nothing."""
        self.whole = True

    def saw_first_event(self) -> None:
        if self._first is None:
            self._first = time.monotonic()

    def was_told(self, status: int | None) -> bool:
        """Whether the client was there for the whole answer. `status` as in `write`."""
        return self.whole or not (status is None or self.client_gone)

    def outcome(self, status: int | None) -> str:
        """What came of it, in a word. `status` as in `write`."""
        if not self.was_told(status):
            return "client gone"
        code = self.failed.status if self.failed is not None else status or 200
        return "done" if code < 400 else "refused" if code < 500 else "failed"

    def write(self, status: int | None) -> None:
        """`status` None: the request was cancelled, because the client had gone or the server stops.

        Not so when the answer had left as a whole.
        """
        if self.whole and status is None:
            status = 200
        line: dict[str, object] = {
            "id": self.id,
            "method": self.method,
            "path": self.path,
            "outcome": self.outcome(status),
            "status": status,
        }
        if self.client:
            line["client"] = self.client
        if self.asker:
            line["key"] = self.asker
        if self.trace.id:
            line["trace"] = self.trace.id
        if self.trace.client_request:
            line["client_request"] = self.trace.client_request
        if self.model is not None:
            line |= {"model": self.model, "stream": self.stream, "response": self.response}
        turn = self.turn
        tiers, lane = turn.counts[Count.TIERS], turn.conversation.lane
        line |= {
            key: value
            for key, value in {
                "tools": turn.tools,
                "calls": turn.calls,
                **{what.value: {str(name): count for name, count in turn.counts[what].items()} for what in Count},
                "tiers": dict(tiers) if tiers.keys() - {Tier.VALID.value} else None,
                "again": [why.value for why in turn.again],
                "interrupted": turn.interrupted,
                "answered_nothing": turn.answered_nothing,
                "warnings": turn.warnings,
                "calls_held": turn.held is True,
                "calls_unheld": turn.held if isinstance(turn.held, str) else None,
                "truncated": turn.conversation.truncated,
                "lane": lane and ("continued" if lane.continued else "fresh"),
                "lane_why": lane and lane.why,
                "lane_spoilt": turn.conversation.spoilt if lane else None,
            }.items()
            if value
        }
        if self.usage is not None:
            line |= {name: getattr(self.usage, name) for name in TOKENS}
        if self.model is not None and (said := sentence_of(turn, answered=line["outcome"] == "done")):
            line["said"] = said
        if self.failed is not None:
            line |= {"error": self.failed.code or self.failed.type, "error_status": self.failed.status}
            if self.failed.code == "origin_not_allowed":
                line["origin"] = self.origin  # the page itself cannot read why
        if self._first is not None:
            line["first_event_ms"] = _milliseconds(self._first - self._started)
        line["duration_ms"] = self.elapsed_ms
        log.info("request", **line)


def plain(header: str) -> str:
    """A header's value that can be written down. Bytes that are no UTF-8 are half surrogate pairs in it."""
    return header if header.isascii() else header.encode("ascii", "replace").decode()


def client_name(origin: str, agent: str) -> str:
    """Who asks, in a word: Obsidian's pages by their origin, else the program at the head of its `User-Agent`."""
    if origin.startswith(("app://obsidian", "capacitor://")):
        return "Obsidian"
    return agent.split(" ", maxsplit=1)[0].partition("/")[0][:40]


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)
