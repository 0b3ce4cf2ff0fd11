"""What the server does, as numbers for Prometheus.

    requests --RequestLog--.                        one line each in the log, and counted here
    turns ----TurnReport---+--> numbers --exposition--> text
    backend ----Load-------'                        looked at when somebody asks

Every label has few values that are known beforehand: nothing that a client or a model wrote becomes one.
What each number is: docs/reference/metrics.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Literal, Self, TypeAlias

from aiohttp import web

from parser import Rule, Tier

from ..contracts import TextBackend, TurnEvent, TurnFailed, TurnFinished, Usage
from ..schema.coercion import Coercion
from ..turn import Count, TurnReport
from ..wire.pairing import REPAIRS as PAIRING
from .counts import Counts, Durations, Gauge
from .request_log import RequestLog

# What a value is counted as that is none of those known beforehand.
OTHER = "other"

# The known methods (`WS` is a turn on a WebSocket) and rules.
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "WS"})
REPAIRS = frozenset({*(rule.value for rule in Rule), *(coercion.value for coercion in Coercion)})

# A block that cannot be read has many reasons besides.
REFUSALS = frozenset({"arguments_misfit", "in_output", "no_key", "quoted", "undeclared", "wrong_key"})
MALFORMED = "malformed"

# As the turn's report says it -> as it is counted.
INTERRUPTIONS: Mapping[str, str] = {
    "max_output_tokens": "max_output_tokens",
    "--max-answer": "max_answer",
    "a stop string came": "stop_string",
    "one call was asked for": "one_call",
    "the answer goes on with a result of its own call": "invented_result",
}

# Why a conversation has the lane that it has, and why it loses it.
LANE_REASONS = frozenset({"history", "first", "effort", "held", "other_history", "none_idle"})
SPOILING = frozenset({
    "second_try", "interrupted", "refused", "repaired", "rewritten", "failed", "left",
    "max_output_tokens", "content_filter",
})  # fmt: skip

# What can be lost when the store fails: an answer, what it would have added to a conversation, a background response;
# or in its bounds: events for those who follow in other processes, who get them late.
Loss: TypeAlias = Literal["response", "items", "background", "events"]

# What becomes of a background response whose process has gone.
TakenOver: TypeAlias = Literal["begun_again", "failed"]

# As the parser says how it read a call -> as it is counted.
TIERS = {Tier.VALID.value: "valid", Tier.REPAIRED.value: "repaired", Tier.BARE.value: "bare", Tier.HELD.value: "held"}

# Of the input a part is read from the provider's cache, and a part written to it; of the output one is reasoning.
TOKEN_KINDS = ("input", "cached", "cache_write", "output", "reasoning")

# Seconds. A turn takes from a moment to the hour after which it is interrupted.
FIRST_EVENT_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300)
LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
TURN_BUCKETS = (0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)


def _known(value: str, values: Collection[str]) -> str:
    return value if value in values else OTHER


class TurnClock:
    """One turn while it runs. `outcome` is `left` until its end was seen: whoever asked for it has gone.

    `over` is called when it is over.
    """

    def __init__(self, over: Callable[[TurnClock], None]) -> None:
        self.began = time.monotonic()
        self.first: float | None = None
        self.outcome = "left"
        self._over = over

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over(self)

    def saw(self, batch: Sequence[TurnEvent]) -> None:
        """A batch of the turn. Its end is the last event of one."""
        end = batch[-1]
        if isinstance(end, TurnFailed):
            self.outcome = "failed"
        elif isinstance(end, TurnFinished):
            self.outcome = "completed" if end.incomplete is None else "incomplete"
        if self.first is None and (len(batch) > 1 or self.outcome == "left"):
            self.first = time.monotonic()


class Metrics:
    """The numbers of one server."""

    def __init__(self, backend: TextBackend) -> None:
        self.counters: list[Counts] = []
        self.histograms: list[Durations] = []
        self.gauges: list[Gauge] = []

        def counter(name: str, what: str, *labels: str) -> Counts:
            self.counters.append(made := Counts(f"tagcall_{name}", what, labels))
            return made

        def histogram(name: str, what: str, buckets: Sequence[float]) -> Durations:
            self.histograms.append(made := Durations(f"tagcall_{name}_seconds", what, buckets))
            return made

        self._requests = counter(
            "requests", "Requests that were answered, or whose client left.", "route", "method", "status"
        )
        self._turns = counter("turns", "Turns that are over.", "outcome")
        self._calls = counter("calls", "Tool calls that were read, by how much repair they needed.", "tier")
        self._repairs = counter("repairs", "Rules that repaired a call.", "rule")
        self._refusals = counter("refusals", "Blocks that did not leave as calls.", "reason")
        self._taken_out = counter("taken_out", "Pieces taken out of answers that no client may see.", "what")
        self._markup = counter("markup_shown", "Blocks that left as text.", "why")
        self._again = counter("second_answers", "Second answers that tagcall asked for.", "reason")
        self._paired = counter("paired_results", "Tool results that did not match their calls.", "kind")
        self._unheld = counter(
            "unheld", "Calls and answers that were sent although they do not fit their schema.", "reason"
        )
        self._interrupts = counter("interrupts", "Answers that tagcall ended before the model did.", "reason")
        self._lanes = counter("lanes", "How turns found their conversation at the backend.", "state", "reason")
        self._spoilt = counter("lanes_spoilt", "Conversations that cannot go on at the backend.", "reason")
        self._taken_over = counter("taken_over", "Background responses whose server had ended.", "outcome")
        self._not_stored = counter("not_stored", "Records that could not be stored.", "what")
        self._tokens = counter(
            "tokens", "Tokens that the backend told, those of failed turns included.", "kind", "model", "key"
        )
        self._first_event = histogram(
            "first_event", "Seconds from the beginning of a turn to its first event.", FIRST_EVENT_BUCKETS
        )
        self._duration = histogram("turn_duration", "Seconds from the beginning of a turn to its end.", TURN_BUCKETS)
        self.loop_lag = histogram(
            "loop_lag", "Seconds by which the event loop was late, measured ten times a second.", LAG_BUCKETS
        )
        self.load = backend.load
        self._running = 0
        self._gauge("turns_running", "Turns that are running.", lambda: self._running)

    def _gauge(self, name: str, what: str, value: Callable[[], float]) -> None:
        self.gauges.append(Gauge(f"tagcall_{name}", what, value))

    def watch(self, upstream: Callable[[], bool], store: Callable[[], bool]) -> None:
        """Who is asked whether they are there, when somebody wants to know."""
        self._gauge(
            "upstream_up",
            "0 when three turns in a row failed at the provider, the last of them in the last 30 s, else 1.",
            upstream,
        )
        self._gauge("store_up", "1 when the last attempt to reach the store succeeded, else 0.", store)

    def request(self, entry: RequestLog, status: int | None) -> None:
        """Counts one request, when its line is written. `status` as there."""
        answered = f"{(status or 200) // 100}xx" if entry.was_told(status) else "gone"
        self._requests.add(entry.route, _known(entry.method, METHODS), answered)

    def not_stored(self, what: Loss) -> None:
        """Counts a loss, once it is one."""
        self._not_stored.add(what)

    def taken_over(self, outcome: TakenOver) -> None:
        """Counts a background response of a process that has gone."""
        self._taken_over.add(outcome)

    def tokens(self, usage: Usage, model: str, key: str) -> None:
        """Counts what a turn took. `model` and `key` are names that the owner knows, `key` perhaps ""."""
        for kind in TOKEN_KINDS:
            self._tokens.add(kind, model, key or OTHER, by=getattr(usage, f"{kind}_tokens"))

    def turn(self, report: TurnReport) -> TurnClock:
        """A turn runs from now on, and is counted when its clock is left. The clock is shown its events."""
        self._running += 1
        return TurnClock(partial(self._count, report))

    def _count(self, report: TurnReport, clock: TurnClock) -> None:
        self._running -= 1
        self._turns.add(clock.outcome)
        self._duration.observe(time.monotonic() - clock.began)
        if clock.first is not None:
            self._first_event.observe(clock.first - clock.began)
        for tier, count in report.counts[Count.TIERS].items():
            self._calls.add(TIERS.get(tier, OTHER), by=count)
        for rule, count in report.counts[Count.REPAIRED].items():
            self._repairs.add(_known(rule, REPAIRS), by=count)
        for reason, count in report.counts[Count.REFUSED].items():
            self._refusals.add(reason if reason in REFUSALS else MALFORMED, by=count)
        for kind, count in report.counts[Count.PAIRED].items():
            self._paired.add(_known(kind, PAIRING), by=count)
        for reason, count in (
            ("misfit", report.counts[Count.MISFITS].total()),
            ("unchecked", report.counts[Count.UNCHECKED].total()),
        ):
            if count:
                self._unheld.add(reason, by=count)
        self._count_shown(report)
        for reason in report.again:
            self._again.add(reason.value)
        lane, spoilt = report.conversation.lane, report.conversation.spoilt
        if lane is not None:
            self._lanes.add("continued" if lane.continued else "fresh", _known(lane.why, LANE_REASONS))
            if spoilt is not None:
                self._spoilt.add(_known(spoilt, SPOILING))
        if report.interrupted is not None:
            self._interrupts.add(INTERRUPTIONS.get(report.interrupted, OTHER))

    def _count_shown(self, report: TurnReport) -> None:
        for what, count in report.counts[Count.TAKEN_OUT].items():
            self._taken_out.add(what, by=count)
        for why, count in report.counts[Count.MARKUP].items():
            self._markup.add(why, by=count)


METRICS = web.AppKey("metrics", Metrics)
