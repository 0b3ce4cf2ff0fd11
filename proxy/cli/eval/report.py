"""The report of a run: tables for a terminal, or everything as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from .results import CaseResult, EvalRun, Figures, best, compare, rows

# Column -> what stands in it. Time and tokens are those of one case.
_COLUMNS = ("right", "lost", "markup", "beside", "no key", "2nd try", "failed", "sec", "tok in", "tok out")
_LEGEND = (
    "lost: wanted calls that the model wrote and that did not come. markup: answers that show a person tags, headers, "
    "lines of ours or the JSON of a call. beside: answers with text beside a call. no key: calls that were written "
    "without the key of their conversation. 2nd try: answers that tagcall asked for once more. Seconds and tokens are "
    "of one case."
)
# Columns of the terminal.
_WIDTH = 100
# Characters that are shown of one answer.
_EXCERPT = 160
# From which probability on a difference is said to be chance.
_CHANCE = 0.05


def table(run: EvalRun) -> str:
    return "\n".join(_table_lines(rows(run.results)))


def _table_lines(found: Mapping[str, Figures]) -> Iterator[str]:
    yield _line("", _COLUMNS)
    for name, one in found.items():
        if name == "first turns" or (name == "all" and len(found) == 1):
            yield ""
        counts = (one.lost, one.markup, one.beside, one.without_key, one.second_tries, one.failed)
        tokens = (round(count / one.cases) for count in (one.input_tokens, one.output_tokens))
        means = (f"{one.seconds / one.cases:.1f}", *tokens)
        yield _line(name, (f"{one.right}/{one.cases}", *(count or "-" for count in counts), *means))


def _line(name: str, cells: Sequence[object]) -> str:
    return f"{name:<20}" + "".join(f"{cell!s:>8}" for cell in cells)


def legend() -> str:
    return textwrap.fill(_LEGEND, _WIDTH)


def wrong(run: EvalRun) -> str:
    """A paragraph for each case that is not right."""
    return "\n".join(line for result in run.results if not result.right for line in _wrong_lines(result))


def _wrong_lines(result: CaseResult) -> Iterator[str]:
    yield f"{result.case.id}: {', '.join(result.mistakes)}"
    for call in result.played.calls:
        yield f"    called {call.name}({_cut(call.arguments)})"
    if result.played.text.strip():
        yield f"    said {_cut(result.played.text)}"
    if result.played.failed:
        yield f"    failed: {_cut(result.played.failed)}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else f"{line[: _EXCERPT - 3]}..."


def names(runs: Sequence[EvalRun]) -> list[str]:
    """What tells each run from the others: its model, its flags, or both."""
    models, flags = {run.model for run in runs}, {run.flags for run in runs}
    if len(models) == 1:
        return [run.flags for run in runs]
    return [run.model if len(flags) == 1 else f"{run.model} {run.flags}" for run in runs]


def side_by_side(runs: Sequence[EvalRun]) -> str:
    """Right answers of each category in each run, and who is better."""
    return "\n".join(_comparison_lines(runs))


def _comparison_lines(runs: Sequence[EvalRun]) -> Iterator[str]:
    labels = names(runs)
    widths = [max(len(label), 7) + 3 for label in labels]
    found = [rows(run.results) for run in runs]

    def line(name: str, cells: Sequence[str]) -> str:
        return f"{name:<20}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))

    yield line("right", labels)
    for name in dict.fromkeys(name for one in found for name in one):
        yield line(name, [f"{one[name].right}/{one[name].cases}" if name in one else "-" for one in found])
    yield ""
    winner = best(runs)
    for run, label in zip(runs, labels, strict=True):
        if run is not winner:
            yield textwrap.fill(_verdict(winner, labels[runs.index(winner)], run, label), _WIDTH)


def _verdict(winner: EvalRun, name: str, other: EvalRun, other_name: str) -> str:
    found = compare(winner, other)
    counts = f"{found.right[0]} cases right against {found.right[1]}"
    alone = f"{found.alone[0]} with the one alone, {found.alone[1]} with the other"
    if found.right[0] == found.right[1]:
        return f"{name} and {other_name} serve alike: {counts}, {alone}."
    sentence = f"{name} serves better than {other_name}: {counts}, {alone}."
    if found.chance > _CHANCE:
        return f"{sentence} That may be chance (p = {found.chance:.2f}): more cases would tell."
    return f"{sentence} That is hardly chance (p = {found.chance:.2g})."


def document(runs: Sequence[EvalRun], about: Mapping[str, Any]) -> dict[str, Any]:
    """All that was found, as a JSON object that begins with `about`."""
    found = {**about, "runs": [_run(run) for run in runs]}
    if len(runs) > 1:
        labels = names(runs)
        winner = best(runs)
        found["best"] = labels[runs.index(winner)]
        found["compared"] = {
            label: asdict(compare(winner, run)) for run, label in zip(runs, labels, strict=True) if run is not winner
        }
    return found


def _run(run: EvalRun) -> dict[str, Any]:
    figures = {name: asdict(one) for name, one in rows(run.results).items()}
    told = {"model": run.model, "profile": run.profile, "without": run.without}
    return {**told, "figures": figures, "cases": [*map(_result, run.results)]}


def _result(result: CaseResult) -> dict[str, Any]:
    played = result.played
    return {
        "id": result.case.id,
        "category": result.case.category,
        "half": result.case.half,
        "right": result.right,
        "mistakes": list(result.mistakes),
        "lost": result.lost,
        "markup": result.markup,
        "beside": result.beside,
        "without_key": result.without_key,
        "text": played.text,
        "calls": [asdict(call) for call in played.calls],
        "failed": played.failed,
        "written": list(played.written),
        "second_tries": [*played.report.again],
        "refused": {str(why): count for why, count in played.report.counts["refused"].items()},
        "warnings": played.report.warnings,
        "seconds": round(played.seconds, 2),
        "usage": asdict(played.usage),
    }
