"""The set: `cases.jsonl`, a request and what a right answer is on each line, and the tools they have in `tools.jsonl`.

A request has the `input` of the Responses API. A right answer makes exactly these `calls`, in any order, or it makes
none and is a text with what it has to say (`says`). A wording is chosen on the first half, and has to win on the
second. The second half has as many cases of a category, but after results half as many, because the others have been
looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct, field

from ...contracts import TurnRequest
from ...wire.responses.request import parse_responses_request

HALVES = ("tuning", "confirmation")

# Category -> what it asks, in the words of the table.
CATEGORIES: Mapping[str, str] = {
    "single": "one call",
    "parallel": "several calls",
    "turns": "several turns",
    "optional": "optional parameters",
    "escaping": "hard escaping",
    "no_tool": "no tool fits",
    "refusal": "must not call",
    "answer": "answer from results",
    "second_call": "second call",
}
# Of these, the ones whose newest entry is a tool's result.
AFTER_RESULTS = frozenset({"answer", "second_call"})

_FOLDER = Path(__file__).parent


class WantedCall(Struct, frozen=True):
    """A call of the tool `name`, with these arguments and no other but those that it `may` have.

    One in `exact` equals one of the values there; one in `holds` is a text with one of the words there in it, which
    stand with `|` between them.
    """

    name: str
    exact: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    holds: Mapping[str, str] = field(default_factory=dict)
    may: Sequence[str] = ()

    @property
    def example(self) -> dict[str, Any]:
        """Arguments that are right."""
        exact = {name: values[0] for name, values in self.exact.items()}
        return exact | {name: words.partition("|")[0] for name, words in self.holds.items()}


class EvalCase(Struct, frozen=True):
    """`tools` names its tools; `says` are words as in `WantedCall.holds`, each of which the answer has."""

    id: str
    category: str
    half: str
    tools: str
    request: TurnRequest
    calls: Sequence[WantedCall]
    says: Sequence[str]


def load_cases() -> list[EvalCase]:
    """All cases, in the order of the file. Which model is asked is not said here."""
    tools = _tools()
    return [_case(row, tools[row["tools"]]) for row in _rows("cases.jsonl")]


def chosen(
    cases: Sequence[EvalCase], *, half: str | None = None, categories: Sequence[str] = (), every: int = 1
) -> list[EvalCase]:
    """Of each category and half the first case and every `every`th after it.

    Those with the same tools stand together: a local model reads them once then.
    """
    places: dict[tuple[str, str], int] = {}
    found: list[EvalCase] = []
    for case in cases:
        if (half or case.half) != case.half or (categories and case.category not in categories):
            continue
        group = case.category, case.half
        place = places[group] = places.get(group, -1) + 1
        if place % every == 0:
            found.append(case)
    return sorted(found, key=lambda case: case.tools)


def _rows(name: str) -> Iterator[Any]:
    return map(orjson.loads, (_FOLDER / name).read_bytes().splitlines())


def _tools() -> Mapping[str, list[Any]]:
    rows = groupby(_rows("tools.jsonl"), key=lambda row: row.pop("set"))
    return {name: list(tools) for name, tools in rows}


def _case(row: Mapping[str, Any], tools: Sequence[Any]) -> EvalCase:
    request = parse_responses_request({"model": "any", "input": row["input"], "tools": list(tools)}).turn
    calls = [WantedCall(**call) for call in row["calls"]]
    return EvalCase(row["id"], row["category"], row["half"], row["tools"], request, calls, row.get("says", ()))
