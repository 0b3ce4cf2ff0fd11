"""The cases at a backend, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from prompts import PROFILES

from ...contracts import TextBackend
from ...errors import ApiError, UsageError
from ...turn import TurnOptions
from ..record.turns import RecordedBackend
from .cases import EvalCase
from .play import play
from .results import CaseResult, EvalRun, judged

# So many failures in a row are no matter of the cases: the backend has gone, or the account has nothing left.
MOST_FAILURES = 3


async def model_of(backend: TextBackend, named: Sequence[str]) -> str:
    """The model to ask: the first of those that are named, else the first that is listed. Raises `UsageError`."""
    problem = (await backend.health()).problem
    if problem is not None:
        raise UsageError(problem)
    if named:
        return named[0]
    try:
        listed = await backend.models()
    except ApiError as error:
        raise UsageError(error.message) from None
    if not listed:
        raise UsageError("The backend lists no model: name one with --model NAME.")
    return listed[0].id


async def run_eval_cases(
    cases: Sequence[EvalCase],
    backend: TextBackend,
    options: TurnOptions,
    run: EvalRun,
    *,
    jobs: int,
    on_result: Callable[[CaseResult], None],
) -> None:
    """Adds to `run` what comes of the cases; `backend` has been entered.

    Raises `UsageError` when nothing is answered any more; what there is by then stands in `run`.
    """
    heard = RecordedBackend(backend)
    profile = PROFILES[run.profile]
    chosen = replace(options, profile=profile.without(run.without) if run.without else profile)
    left = iter(cases)
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(min(jobs, len(cases))):
                group.create_task(_work(left, heard, chosen, run, on_result), name=f"eval worker {number}")
        if _is_hopeless(run):
            why = run.results[-1].played.failed
            raise UsageError(f"{MOST_FAILURES} cases in a row were not answered, the last one because: {why}")
    finally:
        run.results.sort(key=lambda result: cases.index(result.case))


async def _work(
    left: Iterator[EvalCase],
    backend: RecordedBackend,
    options: TurnOptions,
    run: EvalRun,
    on_result: Callable[[CaseResult], None],
) -> None:
    for case in left:
        result = judged(case, await play(backend, run.model, case.request, options))
        run.results.append(result)
        on_result(result)
        if _is_hopeless(run):
            break


def _is_hopeless(run: EvalRun) -> bool:
    newest = run.results[-MOST_FAILURES:]
    return len(newest) == MOST_FAILURES and all(result.played.failed is not None for result in newest)
