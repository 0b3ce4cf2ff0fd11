"""`tagcall eval`: does this model call tools rightly through tagcall, and with which profile?

    cases --play--> run_turn --> any backend
              |
              '---> grade --> results --> report

cases    the set, which lies beside it as data
grade    whether an answer is right
play     one case through the turn
run      all of them, a few at a time
results  what came of them, counted and compared
report   tables, and JSON
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import fields, replace

from prompts import PROFILES, ModelRule

from ...backends import make_backend
from ...contracts import TextBackend
from ...errors import UsageError, reason_of
from ...server import turn_options
from ...settings import Settings
from ...turn import EmptyAnswers, Habits, TurnOptions
from ..command_line import count, one_of
from ..progress import Progress
from .cases import CATEGORIES, HALVES, EvalCase, chosen, load_cases
from .report import document, legend, side_by_side, table, wrong
from .results import CaseResult, EvalRun
from .run import model_of, run_eval_cases


class EvalOptions(Struct, frozen=True, kw_only=True):
    """`compare` are profiles and models, `without` rules; no `half` or `category`: all of them."""

    compare: Sequence[str] = ()
    without: Sequence[ModelRule] = ()
    half: str | None = None
    category: Sequence[str] = ()
    every: int = 1
    jobs: int = 1
    wrong: bool = False
    json: Path | None = None


def add_eval_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compare", action="append", default=[], metavar="PROFILE|MODEL",
        help="run the cases with this profile or model, too. Repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--without", action="append", default=[], type=_rule, metavar="RULE",
        help="run the cases without this rule for models, too. Repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--half",
        type=one_of(HALVES),
        metavar="|".join(HALVES),
        help="run one half of the set: tune on one half, confirm on the other",
    )
    parser.add_argument(
        "--category",
        action="append",
        default=[],
        type=one_of(CATEGORIES),
        metavar="NAME",
        help="run only the cases of this category. Repeatable",
    )
    parser.add_argument(
        "--every", type=count, default=1, metavar="N", help="run only every Nth case of each category and half [1]"
    )
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="how many cases to run at a time [1]")
    parser.add_argument("--wrong", action="store_true", help="show the wrong answers, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE as JSON, too")


def _rule(typed: str) -> ModelRule:
    try:
        return ModelRule(typed)
    except ValueError:
        raise UsageError(f"'{typed}' is not a rule for models. The rules are {', '.join(ModelRule)}.") from None


def eval_options(arguments: Mapping[str, Any]) -> EvalOptions:
    return EvalOptions(**{item.name: arguments[item.name] for item in fields(EvalOptions)})


async def run_eval(settings: Settings, options: EvalOptions, backend: TextBackend | None = None) -> int:
    """0: all cases were answered, rightly or not; 1: some were not. Raises `UsageError`.

    `backend` replaces the one that the settings name. What there is so far is told also when it ends early.
    """
    known = PROFILES[settings.profile_name].rules
    if missing := next((rule for rule in options.without if rule not in known), None):
        there = ", ".join(rule for rule in ModelRule if rule in known)
        raise UsageError(f"The profile {settings.profile_name} has no rule '{missing}': there are {there}.")
    cases = chosen(load_cases(), half=options.half, categories=options.category, every=options.every)
    # Learnt anew, so that a run does not depend on what was asked before it.
    # A sentence of ours is no answer of the model.
    turn = replace(turn_options(settings, Habits()), empty_answers=EmptyAnswers.EMPTY)
    if options.json is not None:
        _write(options.json, b"", "ab")  # so that what takes hours is not lost for a slip of the pen
    started = time.time()
    runs: list[EvalRun] = []
    async with backend or make_backend(settings) as entered:
        try:
            for run in _runs(await model_of(entered, settings.model), settings.profile_name, options):
                runs.append(run)
                await _play(run, cases, entered, turn, options)
        finally:
            _tell([run for run in runs if run.results], settings, options, started)
    return 1 if any(result.played.failed for run in runs for result in run.results) else 0


def _runs(model: str, profile: str, options: EvalOptions) -> list[EvalRun]:
    """One for the settings, and one for each profile or model that it is compared with, and each rule left out."""
    compared = [(model, name) if name in PROFILES else (name, profile) for name in options.compare]
    ways = dict.fromkeys([(model, profile), *compared])
    rules = dict.fromkeys(options.without)
    return [*(EvalRun(*way) for way in ways), *(EvalRun(model, profile, without=rule) for rule in rules)]


async def _play(
    run: EvalRun, cases: Sequence[EvalCase], backend: TextBackend, turn: TurnOptions, options: EvalOptions
) -> None:
    progress = Progress(len(cases), "not right")

    def on_result(result: CaseResult) -> None:
        progress.count(f"{run.model} {run.profile} {result.case.id}", bad=not result.right)

    try:
        await run_eval_cases(cases, backend, turn, run, jobs=options.jobs, on_result=on_result)
    finally:
        progress.clear()


def _tell(runs: Sequence[EvalRun], settings: Settings, options: EvalOptions, started: float) -> None:
    kind = settings.backend.partition(":")[0]
    for run in runs:
        print(f"{run.model}, backend {kind}, {run.flags}, --call-key {settings.call_key}\n")
        print(table(run), end="\n\n")
        if options.wrong:
            print(wrong(run), end="\n\n")
    if runs:
        print(legend())
    if len(runs) > 1:
        print(f"\n{side_by_side(runs)}")
    print(end="", flush=True)
    if options.json is not None:
        about = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "backend": kind,
            "call_key": settings.call_key,
            "base_instructions": settings.base_instructions,
        }
        _write(options.json, orjson.dumps(document(runs, about), option=orjson.OPT_INDENT_2))


def _write(file: Path, data: bytes, mode: str = "wb") -> None:
    try:
        with file.open(mode) as opened:
            opened.write(data)
    except OSError as error:
        raise UsageError(f"{file} cannot be written ({reason_of(error)})", "name another file") from None
