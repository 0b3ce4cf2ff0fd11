"""An answer that has to be JSON: taken out of what the model wrote round it, and held against its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from prompts import unescape_json

from .. import schema
from ..contracts import OutputFormat
from ..errors import RequestError
from .report import TurnReport

_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")


@dataclass(frozen=True, slots=True)
class Unfit:
    """`problem` is a short sentence without its stop."""

    problem: str


class JsonOutput:
    """What `wanted` asks of an answer's text. Raises `RequestError` when its schema is none."""

    def __init__(self, wanted: OutputFormat, report: TurnReport) -> None:
        self._report = report
        try:
            self._schema = None if wanted.schema is None else schema.read_schema(wanted.schema)
        except schema.SchemaError as error:
            raise _invalid(wanted, str(error)) from error
        self._strict = wanted.strict
        if self._schema is not None and self._strict and self._schema.unusable_pattern is not None:
            raise _invalid(wanted, schema.pattern_problem(self._schema.unusable_pattern))
        # Without a schema JSON mode is asked for, and that is an object.
        self._object = wanted.schema is None

    def read(self, answer: str, *, alone: bool = False) -> str | Unfit:
        """The JSON text in `answer`, in the model's own characters but for escaped tags, or why none fits.

        `alone`: nothing but blanks stands round it.
        """
        unfit = Unfit("it is not one JSON value")
        candidates = [answer.strip()] if alone else _candidates(answer)
        for text in dict.fromkeys(map(unescape_json, candidates)):
            try:
                value = orjson.loads(text)
            except orjson.JSONDecodeError:
                continue
            problem = self._problem(value)
            if problem is None:
                return text
            unfit = Unfit(problem)
        return unfit

    def _problem(self, value: object) -> str | None:
        if self._object and not isinstance(value, dict):
            return "it is not a JSON object"
        try:
            return None if self._schema is None else self._schema.misfit(value)
        except schema.SchemaUnusable as error:
            if self._strict:
                # What was asked to fit and may not is no better than what does not.
                return f"whether it fits cannot be told, as {error}"
            self._report.give_up_check(str(error))
            return None


def _invalid(wanted: OutputFormat, problem: str) -> RequestError:
    return RequestError(
        f"Invalid schema for response_format '{wanted.name or 'json_schema'}': {problem}.",
        code="invalid_json_schema",
        param="text.format.schema",
    )


def _candidates(answer: str) -> Iterator[str]:
    """The whole answer, then what stands in its last code fence, then what its outermost brackets hold."""
    # In this order, since an answer that is JSON may hold a fence or brackets in its strings.
    yield answer.strip()
    if fenced := _FENCED.findall(answer):
        yield fenced[-1].strip()
    if opening := _OPENING.search(answer):
        yield answer[opening.start() : max(answer.rfind("}"), answer.rfind("]")) + 1]
