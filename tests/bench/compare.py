"""Two commits on one machine: `make bench-compare REF=COMMIT`, the benchmark of each in turn.

Each has the best of its runs. A commit measures with its own benchmark, so a row that only one of them has is left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNS = 2
# A row of either table: what it is about, and its first figure. The names of rows have single blanks.
_ROW = re.compile(r"( *\S+(?: \S+)*) +(-?[\d,]*\.?\d+(?:e-?\d+)?)(?: |$)")
_HEADING = re.compile(r"\S[^\[\]]*\Z")
# Rows of which more is better.
_RATE = "pieces a second"


def figures(printed: str) -> dict[str, float]:
    """The figures of a report by what they are about: heading, row, and for an indented row the one above it."""
    found: dict[str, float] = {}
    heading = above = ""
    for line in printed.splitlines():
        row = _ROW.match(line)
        if row is None:
            heading = line.strip() if _HEADING.match(line) else heading
            continue
        what = row[1].strip()
        if line[:1] == " ":
            what = f"{above}: {what}"
        else:
            above = what
        found[f"{heading}\n{what}"] = float(row[2].replace(",", ""))
    return found


def best(runs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    merged: dict[str, float] = {}
    for run in runs:
        for what, figure in run.items():
            pick = max if _RATE in what else min
            merged[what] = pick(figure, merged.get(what, figure))
    return merged


def told(before: Mapping[str, float], now: Mapping[str, float], ref: str) -> Iterator[str]:
    heading = ""
    for what in (what for what in now if what in before):
        group, _, row = what.partition("\n")
        if group != heading:
            heading = group
            yield f"\n{heading}\n{'':90}{ref:>12}{'now':>12}{'':>8}"
        ratio = f"{now[what] / before[what]:.2f} x" if before[what] else ""
        yield f"{row:90}{before[what]:>12,.4g}{now[what]:>12,.4g}{ratio:>8}"


def run(checkout: Path) -> dict[str, float]:
    """What the benchmark of this checkout prints. Raises `CalledProcessError`."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    return figures(done.stdout)


def main(ref: str) -> None:
    with tempfile.TemporaryDirectory(prefix="tagcall-") as folder:
        there = Path(folder) / "checkout"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(there), ref], check=True)
        try:
            pairs = [(run(there), run(ROOT)) for _ in range(RUNS)]
        finally:
            subprocess.run([*git, "remove", "--force", str(there)], check=True)
    before, now = (best(runs) for runs in zip(*pairs, strict=True))
    sys.stdout.writelines(f"{line}\n" for line in told(before, now, ref[:12]))


if __name__ == "__main__":
    main(*sys.argv[1:])
