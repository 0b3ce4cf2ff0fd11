"""What a terminal shows while fixtures run."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.cli.replay.printing import Progress
from proxy.cli.replay.run import Case, Outcome
from proxy.replay.answers import FixtureBody
from proxy.replay.fixture import Fixture


def outcome(name: str, *lines: str) -> Outcome:
    case = Case(Fixture(name, {}, ()), Path(), {}, None)
    return Outcome(case, FixtureBody(200, {}, {}), lines, (), 0.1)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_has_one_line_that_counts_and_a_file_has_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    progress = Progress(3)
    for done in (outcome("one"), outcome("two", "- a", "+ b")):
        progress.count(done)
    progress.clear()
    shown = capsys.readouterr().err.split("\r\x1b[K")
    assert shown == (["", "1/3  one", "2/3, 1 differ  two", ""] if terminal else [""])
