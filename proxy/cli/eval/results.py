"""The results of the cases, as values and counts. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from math import comb
from operator import attrgetter

from msgspec import Struct, field

from prompts import ModelRule

from .cases import AFTER_RESULTS, CATEGORIES, EvalCase
from .grade import Mistake, mistakes
from .play import PlayedTurn, key_of

# What only the model and we write, where a person reads it: tags, headers of the conversation, a call as JSON.
_MARKUP = re.compile(
    r"""</?tool_?call | ^\[(?:tool|tool_call|user|assistant)\b | ^Result\ of\ \S+\ \( | \{\s*"(?:key|name)"\s*:\s*" """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


class CaseResult(Struct, frozen=True):
    case: EvalCase
    mistakes: Sequence[Mistake]
    played: PlayedTurn

    @property
    def right(self) -> bool:
        return not self.mistakes

    @property
    def lost(self) -> int:
        """Wanted calls that did not come although the model wrote the name of their tool as in a call."""
        wanted = Counter(call.name for call in self.case.calls)
        wanted.subtract(call.name for call in self.played.calls)
        written = "\n".join(self.played.written)
        return sum(
            count for name, count in wanted.items() if count > 0 and re.search(rf"[\"'<=]{re.escape(name)}\b", written)
        )

    @property
    def markup(self) -> bool:
        """Whether a person is shown what is no prose, a line of ours, or a result that the model invented."""
        text, names = self.played.text, (re.escape(tool.name) for tool in self.case.request.registry)
        return (
            _MARKUP.search(text) is not None
            or re.search(rf"^\[(?:{'|'.join(names)})\b", text, re.MULTILINE) is not None
            or any(line in text for line in self.played.own_lines)
        )

    @property
    def beside(self) -> bool:
        """Whether a person is shown text beside a call."""
        return bool(self.played.calls) and bool(self.played.text.strip())

    @property
    def without_key(self) -> int:
        """Calls that the model wrote without the key that it was asked for."""
        key = self.played.key
        return 0 if key is None else sum(key_of(call) != key for call in self.played.read)


def judged(case: EvalCase, played: PlayedTurn) -> CaseResult:
    if played.failed is not None:
        return CaseResult(case, (Mistake.FAILED,), played)
    # Whoever repeats what we told it says nothing by that.
    said = reduce(lambda text, line: text.replace(line, ""), played.own_lines, played.text)
    found = mistakes(case.calls, case.says, case.request.registry, played.calls, said)
    return CaseResult(case, found, played)


class EvalRun(Struct, frozen=True):
    """One way through the set, with a profile and `without` a rule of it. `results` grow while it goes on."""

    model: str
    profile: str
    results: list[CaseResult] = field(default_factory=list)
    without: ModelRule | None = None

    @property
    def flags(self) -> str:
        """What it takes to have it."""
        return f"--profile {self.profile}" + (f" --without {self.without}" if self.without else "")


class Figures(Struct, frozen=True):
    """Of some cases: how many there are and how many were answered rightly; the others count what was not good.

    `seconds` and tokens are those of all of them together, second tries included.
    """

    cases: int
    right: int
    lost: int
    markup: int
    beside: int
    without_key: int
    second_tries: int
    failed: int
    seconds: float
    input_tokens: int
    output_tokens: int


def figures(results: Iterable[CaseResult]) -> Figures:
    found = list(results)
    return Figures(
        cases=len(found),
        right=sum(result.right for result in found),
        lost=sum(result.lost for result in found),
        markup=sum(result.markup for result in found),
        beside=sum(result.beside for result in found),
        without_key=sum(result.without_key for result in found),
        second_tries=sum(len(result.played.report.again) for result in found),
        failed=sum(result.played.failed is not None for result in found),
        seconds=sum(result.played.seconds for result in found),
        input_tokens=sum(result.played.usage.input_tokens for result in found),
        output_tokens=sum(result.played.usage.output_tokens for result in found),
    )


def rows(results: Sequence[CaseResult]) -> dict[str, Figures]:
    """The table's rows by their names: a category each, then first turns, turns after results, and all."""
    by_category = {
        words: [result for result in results if result.case.category == name] for name, words in CATEGORIES.items()
    }
    first = [result for result in results if result.case.category not in AFTER_RESULTS]
    after = [result for result in results if result.case.category in AFTER_RESULTS]
    named = {**by_category, "first turns": first, "after results": after, "all": list(results)}
    return {name: figures(found) for name, found in named.items() if found}


class Comparison(Struct, frozen=True):
    """Two runs on the cases that both have: how many are right in each, in it `alone`, and whether that is chance.

    `chance` is the probability of a split at least as uneven if both were equally good (sign test, two-sided).
    """

    right: tuple[int, int]
    alone: tuple[int, int]
    chance: float


def compare(first: EvalRun, second: EvalRun) -> Comparison:
    results = [{result.case.id: result.right for result in run.results} for run in (first, second)]
    both = [(results[0][name], results[1][name]) for name in results[0].keys() & results[1].keys()]
    alone = sum(one and not other for one, other in both), sum(other and not one for one, other in both)
    differ = sum(alone)
    tail = sum(comb(differ, count) for count in range(min(alone) + 1)) / 2**differ
    return Comparison((sum(one for one, _ in both), sum(other for _, other in both)), alone, min(1.0, 2 * tail))


def best(runs: Sequence[EvalRun]) -> EvalRun:
    """The run with the most right answers, the first of equals."""
    return max(runs, key=lambda run: sum(map(attrgetter("right"), run.results)))
