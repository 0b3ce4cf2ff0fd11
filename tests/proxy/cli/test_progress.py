"""What a terminal shows while a command does one thing after the other."""

from __future__ import annotations

import pytest

from proxy.cli.progress import Progress


@pytest.mark.parametrize(("terminal", "kind"), [(True, "xterm"), (True, "dumb"), (False, "xterm")])
def test_a_terminal_has_one_line_that_counts_and_a_file_has_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool, kind: str
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setenv("TERM", kind)
    progress = Progress(3, "differ")
    progress.count("one", bad=False)
    progress.count("two", bad=True)
    progress.clear()
    shown = capsys.readouterr().err.split("\r\x1b[K")
    assert shown == (["", "1/3  one", "2/3, 1 differ  two", ""] if terminal and kind == "xterm" else [""])


def test_the_line_is_no_longer_than_the_terminal_is_wide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "10")
    Progress(3, "differ").count("a-long-name", bad=False)
    assert capsys.readouterr().err == "\r\x1b[K1/3  a-lo"
