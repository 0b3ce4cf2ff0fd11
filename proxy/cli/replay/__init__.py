"""`tagcall replay DIR`: runs fixtures through the whole proxy, and compares the answers with the recorded ones.

run       asks for each fixture over HTTP, at several cuts of the model's text
printing  its report
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import fields

from ...errors import UsageError, reason_of
from ...logs import configure
from ...replay.answers import BODY_FILE, STREAM_FILE, FixtureAnswer, file_of
from ...replay.fixture import TRANSCRIPT_FILE
from ..command_line import count
from ..progress import Progress
from .printing import print_outcomes, write_junit
from .run import Outcome, load_cases, run_cases

# Fixtures that are run at a time unless `--jobs` says otherwise.
JOBS = 4


class ReplayOptions(Struct, frozen=True, kw_only=True):
    """`only` are patterns of names, of which one has to fit; none: all do."""

    update: bool = False
    jobs: int = JOBS
    only: list[str] = field(default_factory=list)
    junit: Path | None = None


def add_replay_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--update", action="store_true", help="write the new answers into the fixtures")
    parser.add_argument(
        "--jobs", type=count, default=JOBS, metavar="N", help=f"how many fixtures to run at a time [{JOBS}]"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PATTERN",
        help="run only fixtures whose names match, such as 'codex-*'. Repeatable",
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the outcome to FILE as JUnit XML, too")


def replay_options(arguments: Mapping[str, Any]) -> ReplayOptions:
    return ReplayOptions(**{item.name: arguments[item.name] for item in fields(ReplayOptions)})


async def run_replay(folder: Path, options: ReplayOptions) -> int:
    """0: everything came as promised, or was updated; 1: something did not. Raises `UsageError`."""
    configure("error", "console")
    cases, unasked = load_cases(folder)
    cases = [case for case in cases if _wanted(case.fixture.name, options.only)]
    unasked = [name for name in unasked if _wanted(name, options.only)]
    if not cases:
        which = "fixture of such a name" if options.only else "fixture"
        raise UsageError(f"Nothing in {folder} can be run, because no {which} has a request.json", "name another")
    begin = time.monotonic()
    progress = Progress(len(cases), "differ")

    def on_outcome(outcome: Outcome) -> None:
        progress.count(outcome.case.fixture.name, bad=not outcome.good)

    try:
        outcomes = await run_cases(folder, cases, jobs=options.jobs, on_outcome=on_outcome)
    finally:
        progress.clear()
    updated = sum(map(_update, outcomes)) if options.update else None
    print_outcomes(outcomes, unasked, time.monotonic() - begin, updated)
    if options.junit is not None:
        try:
            write_junit(options.junit, outcomes, unasked)
        except OSError as error:
            raise UsageError(f"{options.junit} cannot be written ({reason_of(error)})", "name another file") from None
    # An update mends what is promised, not what depends on the cuts or was not answered at all.
    mended = [options.update and outcome.answered for outcome in outcomes]
    left = [each.against_cuts if done else each.lines for each, done in zip(outcomes, mended, strict=True)]
    return 1 if any(left) else 0


def _wanted(name: str, patterns: list[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _update(outcome: Outcome) -> bool:
    """Whether the fixture's answer was written anew. Raises `UsageError`."""
    if not (outcome.against_promise and outcome.answered):
        return False
    folder = outcome.case.folder
    kept, other = (folder / name for name in _files(outcome.got))
    try:
        _replace(kept, outcome.got.encode())
        other.unlink(missing_ok=True)
        if outcome.case.stale:
            _replace(folder / TRANSCRIPT_FILE, outcome.case.transcript.encode())
    except OSError as error:
        raise UsageError(f"Nothing can be written to {folder} ({reason_of(error)})", "make it writable") from None
    return True


def _files(answer: FixtureAnswer) -> tuple[str, str]:
    """The file of an answer, and the one that is not beside it."""
    name = file_of(answer)
    return name, BODY_FILE if name == STREAM_FILE else STREAM_FILE


def _replace(file: Path, data: bytes) -> None:
    """As a whole or not at all."""
    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.write_bytes(data)
    unfinished.replace(file)
