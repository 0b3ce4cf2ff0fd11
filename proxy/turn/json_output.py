"""An answer that has to be JSON: taken out of what the model wrote round it, and checked by its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

import orjson
from msgspec import Struct

from prompts import unescape_json

from ..contracts import AnswerMessageEnded, AnswerText, OutputFormat, ToolCallStarted, TurnEvent
from ..schema.coercion import read_parameter_types, readings
from ..schema.declared import declared_schema, misfit
from .outlet import text_of
from .reason import Reason
from .report import Count, TurnReport

_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")


class Unfit(Struct, frozen=True):
    """`problem` is a short sentence without its stop."""

    problem: str


class JsonOutput:
    """What `wanted` asks of an answer's text. Raises `RequestError` when its schema is none."""

    def __init__(self, wanted: OutputFormat, report: TurnReport) -> None:
        self._report, self._wanted = report, wanted
        self._schema = None
        if wanted.schema is not None:
            of, code = f"response_format '{wanted.name or 'json_schema'}'", "invalid_json_schema"
            self._schema = declared_schema(
                wanted.schema, of, strict=wanted.strict, code=code, param="text.format.schema"
            )

    def read(self, answer: str, *, alone: bool = False) -> str | Unfit:
        """The JSON text in `answer`, made to fit as the arguments of a call are if it does not, or why none fits.

        `alone`: nothing but blanks stands round it, and nothing of it may change but escaped tags.
        """
        unfit = Unfit("it is not one JSON value")
        types = read_parameter_types("" if alone else self._wanted.schema or "")
        places = dict.fromkeys([answer.strip()] if alone else _candidates(answer))
        for fitted in (reading for place in places for reading in readings(place, types)):
            text = unescape_json(fitted.arguments)
            try:
                value = orjson.loads(text)
            except orjson.JSONDecodeError:
                continue
            if (problem := self._problem(value)) is None:
                self._report.count(Count.REPAIRED, *fitted.coercions)
                return text
            unfit = Unfit(problem)
        return unfit

    def _problem(self, value: object) -> str | None:
        if self._schema is None:
            # Without a schema JSON mode is asked for, and that is an object.
            return None if isinstance(value, dict) else "it is not a JSON object"
        unchecked = partial(self._report.count, Count.UNCHECKED)
        return misfit(self._schema, value, unchecked, strict=self._wanted.strict, fit="it fits")


def _candidates(answer: str) -> Iterator[str]:
    """The whole answer, then what stands in its last code fence, then what its outermost brackets hold."""
    # In this order, since an answer that is JSON may hold a fence or brackets in its strings.
    yield answer.strip()
    if fenced := _FENCED.findall(answer):
        yield fenced[-1].strip()
    if opening := _OPENING.search(answer):
        yield answer[opening.start() : max(answer.rfind("}"), answer.rfind("]")) + 1]


class BesideCalls:
    """Takes out text beside calls: SDKs parse all text that they get as the JSON asked for, and raise on any other.

    Shown all events of a turn as they are to leave. Without a call in it, an answer is the verdict's.
    """

    def __init__(self, output: JsonOutput, report: TurnReport) -> None:
        self._output = output
        self._report = report
        self._called = False

    def fitting(self, events: Sequence[TurnEvent], *, streamed: bool) -> list[TurnEvent]:
        """`events` without text beside calls that is not the JSON asked for.

        `streamed`: what came before the first call is JSON that left while it was written, as far as it came.
        """
        calls = [place for place, event in enumerate(events) if isinstance(event, ToolCallStarted)]
        if not (self._called or calls):
            return [*events]
        first = calls[0] if streamed and not self._called else 0
        self._called = True
        left, beside = events[:first], events[first:]
        text = text_of(beside)
        if not text or not isinstance(self._output.read(text, alone=True), Unfit):
            return [*events]
        if not (text.isspace() or self._report.counts[Count.TAKEN_OUT][Reason.BESIDE_CALLS]):
            self._report.count(Count.TAKEN_OUT, Reason.BESIDE_CALLS)
            self._report.warn("Text beside a call was left out: it is not the JSON that was asked for.")
        return [*left, *(event for event in beside if not isinstance(event, AnswerText | AnswerMessageEnded))]
