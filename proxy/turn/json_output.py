"""An answer that has to be JSON: taken out of what the model wrote round it, and held against its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from prompts import unescape_json

from ..contracts import OutputFormat
from .report import TurnReport
from .strictness import declared_schema, misfit

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
        self._strict = wanted.strict
        self._schema = None
        if wanted.schema is not None:
            of, code = f"response_format '{wanted.name or 'json_schema'}'", "invalid_json_schema"
            self._schema = declared_schema(
                wanted.schema, of, strict=wanted.strict, code=code, param="text.format.schema"
            )
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
        if self._schema is None:
            return None
        return misfit(self._schema, value, self._report, strict=self._strict, fit="it fits")


def _candidates(answer: str) -> Iterator[str]:
    """The whole answer, then what stands in its last code fence, then what its outermost brackets hold."""
    # In this order, since an answer that is JSON may hold a fence or brackets in its strings.
    yield answer.strip()
    if fenced := _FENCED.findall(answer):
        yield fenced[-1].strip()
    if opening := _OPENING.search(answer):
        yield answer[opening.start() : max(answer.rfind("}"), answer.rfind("]")) + 1]
