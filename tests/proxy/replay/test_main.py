"""The command line of the replay app-server."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.replay.__main__ import main
from tests.proxy.replay.child import answered, asked, replay_child, write_fixture


def test_a_damaged_fixture_is_told_and_ends_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"There is no folder {tmp_path / 'none'} to play fixtures from.\n"


@pytest.mark.parametrize("options", [["--chunk", "-1"], ["--chunk", "many"], ["--speed", "20"]])
def test_what_is_no_length_or_speed_is_refused(options: list[str]) -> None:
    with pytest.raises(SystemExit):
        main([".", *options])


async def test_the_names_of_what_is_played_are_noted_and_what_nothing_answers(tmp_path: Path) -> None:
    fixtures, played = tmp_path / "fixtures", tmp_path / "played"
    fixtures.mkdir()
    for name in ("bye", "hi", "hi again"):
        write_fixture(fixtures, name, [asked(name.split()[0]), *answered(["Well."])])
    async with replay_child(fixtures, "--played", str(played)) as child:
        await child.initialize()
        await child.ask("hi")
        thread, _ = await child.start_turn("nothing of that")
        await child.finish(thread)
        await child.ask("hi")
    first, missed, last = played.read_text("utf-8").splitlines()
    assert (first, last) == ("hi", "hi again")
    assert missed.startswith("No fixture answers this turn. The nearest is ")
