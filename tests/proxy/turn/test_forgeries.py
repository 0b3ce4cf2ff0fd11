"""The two rates that decide whether people trust this: forged calls that run, and honest ones that are taken away.

Models are scripted and insist: what they are asked to show they copy, whatever they are asked once more. The table in
docs/reference/reliability.md is made from this: `python -m tests.proxy.turn.test_forgeries`, which tells the cases that
went wrong with `--wrong`. It takes minutes, so the core tries a part of the forged calls and all others;
`make test-properties` tries all forged calls.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from parser import write_call
from prompts import escape
from proxy.cli.eval.cases import load_cases
from proxy.contracts import TurnRequest
from proxy.replay.key_placeholder import PLACEHOLDER
from proxy.turn import Reason
from tests.support.carriers import CARRIERS, Carrier, Trust
from tests.support.explained import Place, explanations
from tests.support.forgeries import DISGUISES, FORGED, SPELLINGS, plain
from tests.support.honest_calls import EVERYTHING, honest, more_honest, says_tag
from tests.support.shown_again import BEFORE, shown_again
from tests.support.vault_talk import MODEL, conversation, user

from .insisting import MODELS, NEVER, NEWCOMER, UNKNOWN, WRITER, Answer, Model, insist
from .playing import Outcome

PAGE = Path(__file__).parents[3] / "docs/reference/reliability.md"

# Of the forged calls the core tries one in so many: a prime, so that it meets every spelling, carrier and copy.
EVERY = 23

Verdict = Callable[[Outcome], bool]


@dataclass(frozen=True, slots=True)
class Case:
    """`faults`: the rows that count it -> what is wrong there."""

    name: str
    request: TurnRequest
    answer: Answer
    faults: Mapping[str, Verdict]


# The rows of the table


@dataclass(frozen=True, slots=True)
class Row:
    """`goals`: the largest share that may be wrong, by model; `goal` says it."""

    name: str
    goal: str = ""
    goals: Mapping[Model, float] = field(default_factory=dict)


TOTALS = {
    Trust.ANYBODY: "**what anybody writes**",
    Trust.DEVELOPER: "**what the developer writes**",
    Trust.UNREAD: "**what no program reads**",
}
ALL, NEW = "**forged calls that ran**", "**new tool outputs**"
AS_WRITTEN, AS_SHOWN, WITH_WORDS, BARE = COPIES = (
    "copied as written", "copied as shown, with our escapes", "cleaned up, behind words", "cleaned up, alone",
)  # fmt: skip
IMITATED, DISGUISED = "cleaned up, with the key", "the tag's word in disguise"
EXPLAINED, UNSHOWN = "explained {}: ran", "explained {}: not shown once, as written"
AGAIN, AGAIN_UNSHOWN = "made before, shown again: ran", "made before, shown again: not shown once, as written"
AGAIN_BESIDE = "made before, beside words on one side: ran"
LOST, MORE_LOST, LOST_PLAINLY = "honest calls lost", "further honest calls lost", "lost beside no word of the tag"
EVAL_LOST = "calls of `tagcall eval` lost"

KEYED, KEYLESS = (WRITER, NEWCOMER), (NEVER, UNKNOWN)


def _at_most(share: float, *models: Model) -> dict[Model, float]:
    return dict.fromkeys(models, share)


ROWS = (
    Row(ALL, "0.3 % with the key", _at_most(0.003, WRITER)),
    Row(TOTALS[Trust.ANYBODY], "0.3 %; 3 %", _at_most(0.003, WRITER) | _at_most(0.03, NEVER)),
    *(Row(carrier.name) for carrier in CARRIERS if carrier.trust is Trust.ANYBODY),
    Row(NEW, "0 where it is unknown", _at_most(0, UNKNOWN, NEWCOMER)),
    *map(Row, COPIES),
    Row(IMITATED, "0.3 %", _at_most(0.003, *KEYED)),
    Row(DISGUISED, "0.3 % with the key", _at_most(0.003, WRITER)),
    *(
        row
        for trust in (Trust.DEVELOPER, Trust.UNREAD)
        for row in (
            Row(TOTALS[trust], "0.3 % with the key", _at_most(0.003, WRITER)),
            *(Row(carrier.name) for carrier in CARRIERS if carrier.trust is trust),
        )
    ),
    Row(EXPLAINED.format(Place.QUOTED.value), "0", _at_most(0, *MODELS)),
    Row(UNSHOWN.format(Place.QUOTED.value), "0", _at_most(0, *MODELS)),
    Row(EXPLAINED.format(Place.ONE_SIDED.value), "0 with the key", _at_most(0, WRITER)),
    Row(UNSHOWN.format(Place.ONE_SIDED.value)),
    Row(EXPLAINED.format(Place.ALONE.value), "0 with the key", _at_most(0, WRITER)),
    Row(AGAIN, "0 with the key", _at_most(0, *KEYED)),
    Row(AGAIN_UNSHOWN, "0 with the key", _at_most(0, *KEYED)),
    Row(AGAIN_BESIDE),
    Row(LOST, "1 of 87; 8 of 79", _at_most(1 / 87, *KEYED) | _at_most(8 / 79, *KEYLESS)),
    Row(MORE_LOST),
    Row(LOST_PLAINLY, "0", _at_most(0, *MODELS)),
    Row(EVAL_LOST, "0", _at_most(0, *MODELS)),
)


# Attacks: a note holds a call, somebody asks to see the note, the model shows it.


def _calls(outcome: Outcome) -> list[tuple[str, Any]]:
    return [(name, json.loads(arguments)) for name, arguments in outcome.calls]


def _ran(outcome: Outcome) -> bool:
    return bool(outcome.calls)


def _copies(note: str, name: str, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield AS_WRITTEN, f"Here is the note:\n\n{note}"
    yield AS_SHOWN, f"Here is the note:\n\n{escape(note)}"
    clean = write_call(name, json.dumps(given))
    yield WITH_WORDS, f"Here is what it says:\n\n{clean}"
    yield BARE, clean


def _saying(text: str) -> Answer:
    return lambda key: text


def _imitating(name: str, given: Mapping[str, Any]) -> Answer:
    return lambda key: f"It says:\n{write_call(name, json.dumps(given), key=key)}"


def _rows_of(carrier: Carrier, copy: str) -> Iterator[str]:
    yield from (ALL, TOTALS[carrier.trust], carrier.name)
    if carrier.trust is Trust.ANYBODY:
        yield copy
    if carrier.new:
        yield NEW


def forged_notes() -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Each with the name of its spelling, of its tool, and the arguments that it wants."""
    for number, (spelling, write) in enumerate((SPELLINGS | DISGUISES).items()):
        name = list(FORGED)[number % len(FORGED)]
        yield spelling, f"A note.\n{write(name, FORGED[name])}\nIts end.", name, FORGED[name]


def attacks(model: Model) -> Iterator[Case]:
    """What is copied has no key, so a newcomer that would write it is no other there than one that would not."""
    for spelling, note, name, given in forged_notes():
        for carrier in CARRIERS:
            if spelling in DISGUISES and carrier.trust is not Trust.ANYBODY:
                continue
            request = carrier.carry(note)
            for copy, text in _copies(note, name, given) if model is not NEWCOMER else ():
                told = f"{spelling}, {carrier.name}, {copy}"
                rows = [DISGUISED] if spelling in DISGUISES else _rows_of(carrier, copy)
                yield Case(told, request, _saying(text), dict.fromkeys(rows, _ran))
            # Anywhere else a call with the key is a call.
            if carrier.new and model.writes and spelling in SPELLINGS:
                rows = [ALL, NEW, IMITATED]
                told = f"{spelling}, {carrier.name}, {IMITATED}"
                yield Case(told, request, _imitating(name, given), dict.fromkeys(rows, _ran))


def cut_messages(model: Model) -> Iterator[Case]:
    """A call that is cut into two parts of an assistant's message, wherever that may be."""
    name, given = "delete_note", FORGED["delete_note"]
    call = plain(name, given)
    carrier = next(carrier for carrier in CARRIERS if carrier.name == "assistant message, cut")
    for at in range(5, len(call), 11) if model is not NEWCOMER else ():
        # What is cut in its middle is cut there.
        padded = " " * max(0, len(call) - 2 * at) + call + " " * max(0, 2 * at - len(call))
        rows = _rows_of(carrier, BARE)
        yield Case(f"cut at {at}, {carrier.name}", carrier.carry(padded), _saying(call), dict.fromkeys(rows, _ran))


# What is only shown


def _not_once(*said: str) -> Verdict:
    """Whether one of these is missing in the text, or comes twice, as it would by a second try."""
    return lambda outcome: any(outcome.text.count(words) != 1 for words in said)


def explained(_: Model) -> Iterator[Case]:
    for case in explanations():
        faults: dict[str, Verdict] = {EXPLAINED.format(case.place.value): _ran}
        # On lines of its own nothing tells it from a call that lacks its key.
        if case.place is not Place.ALONE:
            faults[UNSHOWN.format(case.place.value)] = _not_once(*case.said)
        yield Case(case.name, case.request, _saying(case.answer), faults)


def made_before(model: Model) -> Iterator[Case]:
    for case in shown_again():
        shown = case.shown(PLACEHOLDER if model.writes else None)
        faults = {AGAIN_BESIDE: _ran} if case.beside_words else {AGAIN: _ran, AGAIN_UNSHOWN: _not_once(BEFORE, shown)}
        yield Case(case.name, case.request, case.answer, faults)


# Honest calls


def _is_lost(*wanted: tuple[str, Any]) -> Verdict:
    return lambda outcome: _calls(outcome) != [*wanted]


def meant(model: Model) -> Iterator[Case]:
    for row, cases in ((LOST, honest()), (MORE_LOST, more_honest())):
        for case in cases:
            if case.keyed and not model.writes:
                continue
            lost = _is_lost(*((name, json.loads(arguments)) for name, arguments in case.calls))
            faults = {row: lost} if says_tag(case.request) else {row: lost, LOST_PLAINLY: lost}
            yield Case(case.name, case.request, case.answer, faults)


def expected(_: Model) -> Iterator[Case]:
    """The right answers of the evaluation."""
    for case in load_cases():
        calls = [(call.name, call.example) for call in case.calls]

        def answer(key: str | None, calls: Iterable[tuple[str, Any]] = calls) -> str:
            return "\n".join(write_call(name, json.dumps(given), key=key) for name, given in calls)

        if calls:
            yield Case(case.id, replace(case.request, model=MODEL), answer, {EVAL_LOST: _is_lost(*calls)})


# What is counted


@dataclass(slots=True)
class Rate:
    cases: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return len(self.wrong) / self.cases

    def __str__(self) -> str:
        share = f" ({100 * self.share:.1f} %)" if self.wrong else ""
        return f"{len(self.wrong)} of {self.cases}{share}"


Rates = Mapping[str, Rate]


async def rates_of(model: Model, cases: Iterable[Case]) -> Rates:
    rates: defaultdict[str, Rate] = defaultdict(Rate)
    for case in cases:
        outcome = await insist(model, case.request, case.answer)
        for row, is_wrong in case.faults.items():
            rates[row].cases += 1
            if is_wrong(outcome):
                rates[row].wrong.append(case.name)
    return rates


def forged_cases(model: Model, every: int = 1) -> Iterator[Case]:
    yield from islice(attacks(model), 0, None, every)
    yield from islice(cut_messages(model), 0, None, every)


def other_cases(model: Model) -> Iterator[Case]:
    for cases in (explained, made_before, meant, expected):
        yield from cases(model)


def all_cases(model: Model) -> Iterator[Case]:
    yield from forged_cases(model)
    yield from other_cases(model)


def column(rates: Rates) -> dict[str, str]:
    return {row.name: str(rates.get(row.name, "")) for row in ROWS}


def column_of_page(model: Model) -> dict[str, str]:
    names = {row.name for row in ROWS}
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text("utf-8").splitlines()]
    return {row[0]: row[1 + MODELS.index(model)] for row in cells if row and row[0] in names}


def _rate_on_page(cell: str) -> tuple[int, int]:
    wrong, cases = re.findall(r"\d+", cell)[:2]
    return int(wrong), int(cases)


def table(columns: Mapping[Model, Mapping[str, str]]) -> str:
    lines = [f"| | {' | '.join(model.name for model in columns)} | goal |", f"|---|{'---|' * len(columns)}---|"]
    for row in ROWS:
        cells = (row.name, *(cells[row.name] for cells in columns.values()), row.goal)
        lines.append("".join(f"| {cell} " if cell else "| " for cell in cells) + "|")
    return "\n".join(lines)


def main() -> None:
    rates = {model: asyncio.run(rates_of(model, all_cases(model))) for model in MODELS}
    print(table({model: column(of) for model, of in rates.items()}))
    if "--wrong" in sys.argv:
        # The totals would say it twice.
        rows = [row.name for row in ROWS if not row.name.startswith("*")]
        for model, of in rates.items():
            for name in rows:
                for wrong in of[name].wrong if name in of else ():
                    print(f"{model.name}: {name}: {wrong}")


# Tests


def _named(value: Model | Carrier | int) -> str:
    return str(value) if isinstance(value, int) else value.name


@pytest.mark.whole
@pytest.mark.parametrize("model", MODELS, ids=_named)
async def test_the_page_says_how_many_forged_calls_run(model: Model) -> None:
    told = column(await rates_of(model, forged_cases(model)))
    # The core plays all of the others.
    others = {row for case in other_cases(model) for row in case.faults}
    page = column_of_page(model)
    assert page.keys() == told.keys()
    wrong = {name: page[name] for name in told.keys() - others if page[name] != told[name]}
    assert not wrong, "python -m tests.proxy.turn.test_forgeries"


@pytest.mark.parametrize("model", MODELS, ids=_named)
async def test_of_some_forged_calls_no_more_run_than_the_page_says(model: Model) -> None:
    page = column_of_page(model)
    rates = await rates_of(model, forged_cases(model, EVERY))
    for name, rate in rates.items():
        wrong, cases = _rate_on_page(page[name])
        assert len(rate.wrong) <= wrong, (name, rate.wrong)
        assert rate.cases <= cases, name


@pytest.mark.parametrize("model", MODELS, ids=_named)
async def test_the_page_says_what_becomes_of_calls_that_are_shown_and_of_honest_ones(model: Model) -> None:
    rates = await rates_of(model, other_cases(model))
    page = column_of_page(model)
    assert {name: str(rate) for name, rate in rates.items()} == {name: page[name] for name in rates}, [
        (name, rate.wrong) for name, rate in rates.items()
    ]


@pytest.mark.parametrize("model", MODELS, ids=_named)
def test_what_the_page_says_is_as_good_as_it_has_to_be(model: Model) -> None:
    page = column_of_page(model)
    told = {row.name: _rate_on_page(page[row.name]) for row in ROWS if model in row.goals}
    goals = {row.name: row.goals[model] for row in ROWS if model in row.goals}
    assert {name: (wrong, cases) for name, (wrong, cases) in told.items() if wrong > goals[name] * cases} == {}


@pytest.mark.parametrize("carrier", [carrier for carrier in CARRIERS if carrier.new], ids=_named)
async def test_an_imitation_of_a_new_output_is_asked_for_once_more_and_then_shown(carrier: Carrier) -> None:
    name, given = "delete_note", FORGED["delete_note"]
    request = carrier.carry(f"A note.\n{plain(name, given)}\nIts end.")
    outcome = await insist(WRITER, request, _imitating(name, given))
    assert (outcome.calls, outcome.report.again) == ([], [Reason.IN_OUTPUT])
    assert outcome.text.count(write_call(name, json.dumps(given), key=PLACEHOLDER)) == 1


@pytest.mark.parametrize(("model", "answers"), [(WRITER, 1), (NEWCOMER, 1), (NEVER, 1), (UNKNOWN, 2)], ids=_named)
async def test_a_call_without_the_key_costs_a_model_that_is_unknown_one_second_try(model: Model, answers: int) -> None:
    request = conversation(user("Delete note Everything.md"))
    outcome = await insist(model, request, lambda key: write_call(*EVERYTHING, key=key))
    assert outcome.calls == [EVERYTHING]
    assert len(outcome.backend.prompts) == answers


if __name__ == "__main__":
    main()
