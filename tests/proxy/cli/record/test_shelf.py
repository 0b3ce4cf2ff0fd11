"""A fixture is there as a whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proxy.cli.record.shelf import next_number, slug, sweep, write_fixture
from proxy.replay.fixture import load_fixtures
from tests.proxy.replay.child import answered, asked, jsonl
from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[4]
WHOLE = {"backend.jsonl": jsonl([asked("hi"), *answered(["Hello"])])}


def test_names_are_numbered_and_say_what_was_asked(tmp_path: Path) -> None:
    assert slug("What did I plant in the north bed?") == "what-did-i-plant-in"
    assert slug("???") == "turn"
    assert next_number(tmp_path / "none") == 1
    (tmp_path / "041-hi").mkdir()
    assert next_number(tmp_path) == 42


KILLED = """\
import os, signal, sys
from pathlib import Path
from proxy.cli.record import shelf
class Dying(dict):
    def items(self):
        yield "backend.jsonl", b"{"
        os.kill(os.getpid(), signal.SIGKILL)
shelf.write_fixture(Path(sys.argv[1]), "001-hi", Dying())
"""


def test_a_recorder_that_is_killed_leaves_no_half_fixture(tmp_path: Path) -> None:
    write_fixture(tmp_path, "000-whole", WHOLE)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, timeout=PATIENCE, check=False)
    assert done.returncode == -9
    assert list(load_fixtures(tmp_path)) == ["000-whole"]
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["000-whole"]


def test_no_fixture_is_written_over(tmp_path: Path) -> None:
    write_fixture(tmp_path, "001-hi", {"backend.jsonl": b"first"})
    with pytest.raises(OSError, match="001-hi"):
        write_fixture(tmp_path, "001-hi", {"backend.jsonl": b"second"})
    assert (tmp_path / "001-hi" / "backend.jsonl").read_bytes() == b"first"
