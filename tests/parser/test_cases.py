"""The corpus: `cases.jsonl`, one answer of a model a line, with the readings that are right.

`expect` is the visible text, the calls and the status; `alt` are answers that are as good. The status is `ok` where
nothing was helped or left out, `repaired` where a rule helped or markup was left out, `malformed` where a block could
not be read. `arguments` is the exact text or, as `{"json": value}`, its value. A call that is `incomplete` must not
look finished. `cat` says what it is a case of, `source` where it was seen.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

import pytest

from tests.parser.reading import Answer, answer_of, cut, merged, read


class Call(TypedDict, total=False):
    name: str
    arguments: str | dict[str, object]
    incomplete: bool


class Expected(TypedDict):
    text: str
    calls: list[Call]
    status: str


class Case(TypedDict, total=False):
    id: str
    text: str
    expect: Expected
    alt: list[Expected]


CASES: list[Case] = [json.loads(line) for line in Path(__file__).with_name("cases.jsonl").read_text().splitlines()]
SHORT = 160


def fits(answer: Answer, expected: Expected) -> bool:
    whole = [call for call in expected["calls"] if not call.get("incomplete")]
    if (answer.text, answer.status, len(answer.calls)) != (expected["text"], expected["status"], len(whole)):
        return False
    return all(
        name == call["name"] and same(arguments, call["arguments"])
        for (name, arguments), call in zip(answer.calls, whole, strict=True)
    )


def same(arguments: str, expected: str | dict[str, object]) -> bool:
    return json.loads(arguments) == expected["json"] if isinstance(expected, dict) else arguments == expected


@pytest.mark.parametrize("size", [1, 3, 7, 0])
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_case_of_the_corpus_is_read_as_expected(case: Case, size: int) -> None:
    answer = answer_of(read(cut(case["text"], size)))
    assert any(fits(answer, expected) for expected in [case["expect"], *case.get("alt", [])]), answer


@pytest.mark.parametrize(
    "case", [case for case in CASES if len(case["text"]) <= SHORT], ids=lambda case: str(case["id"])
)
def test_a_case_reads_the_same_at_every_cut_in_two(case: Case) -> None:
    text = case["text"]
    whole = merged(read([text]))
    for at in range(len(text)):
        assert merged(read([text[:at], text[at:]])) == whole
