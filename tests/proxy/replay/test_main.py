"""The command line of the replay app-server."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.replay.__main__ import main


def test_a_damaged_fixture_is_told_and_ends_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"There is no folder {tmp_path / 'none'} to play fixtures from.\n"


@pytest.mark.parametrize("options", [["--chunk", "-1"], ["--chunk", "many"], ["--speed", "20"]])
def test_what_is_no_length_or_speed_is_refused(options: list[str]) -> None:
    with pytest.raises(SystemExit):
        main([".", *options])
