"""A fixture is there as a whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proxy.cli.record.shelf import Replaceable, next_number, replace_fixture, slug, sweep, write_fixture
from proxy.replay.answers import FixtureBody
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
    assert names_in(tmp_path) == ["001-hi"]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fixture(*pieces: str, at: float = 0.0, request: bytes = b"{}") -> dict[str, bytes]:
    said = [asked("hi"), *answered(pieces, at)]
    answer = FixtureBody(200, {}, {"output": "".join(pieces), "usage": {"output_tokens": len(pieces)}})
    return {"request.json": request, "backend.jsonl": jsonl(said), "response.json": answer.encode()}


def test_what_says_the_same_stays_as_it_is(tmp_path: Path) -> None:
    write_fixture(tmp_path, "hi", fixture("Hel", "lo"))
    assert not replace_fixture(tmp_path, "hi", fixture("Hello", at=1.0))
    assert (tmp_path / "hi" / "backend.jsonl").read_bytes() == fixture("Hel", "lo")["backend.jsonl"]
    assert names_in(tmp_path) == ["hi"]


@pytest.mark.parametrize("new", [fixture("Hello!"), fixture("Hel", "lo", request=b'{"n": 1}')])
def test_what_says_something_else_takes_the_place_and_leaves_what_is_not_its_own(
    tmp_path: Path, new: dict[str, bytes]
) -> None:
    (write_fixture(tmp_path, "hi", fixture("Hel", "lo")) / "NOTES").write_text("mine", "utf-8")
    assert replace_fixture(tmp_path, "hi", new)
    assert {file.name: file.read_bytes() for file in (tmp_path / "hi").iterdir()} == {**new, "NOTES": b"mine"}
    assert names_in(tmp_path) == ["hi"]


def test_line_ends_say_nothing_and_neither_does_a_damaged_answer(tmp_path: Path) -> None:
    old = write_fixture(tmp_path, "hi", fixture("Hello", request=b'{\n  "n": 1\n}\n'))
    for file in old.iterdir():
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert not replace_fixture(tmp_path, "hi", fixture("Hello", request=b'{\n  "n": 1\n}\n'))
    (old / "response.json").write_text("<<<<<<< HEAD", "utf-8")
    assert replace_fixture(tmp_path, "hi", fixture("Hello"))
    assert (old / "response.json").read_bytes() == fixture("Hello")["response.json"]


def test_of_a_recorder_that_was_killed_between_the_two_the_old_one_comes_back(tmp_path: Path) -> None:
    write_fixture(tmp_path, ".hi.replaced", fixture("Hello"))
    write_fixture(tmp_path, ".bye.replaced", fixture("Bye"))
    write_fixture(tmp_path, "bye", fixture("Bye!"))
    sweep(tmp_path)
    assert list(load_fixtures(tmp_path)) == ["bye", "hi"]
    assert names_in(tmp_path) == ["bye", "hi"]


def test_each_is_replaced_once_in_the_order_of_the_names(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_fixture(tmp_path, name, fixture("Hello"))
    replaceable = Replaceable(tmp_path)
    other = {"backend.jsonl": jsonl([asked("bye"), *answered(["Bye"])])}
    assert [replaceable.take(files) for files in (fixture("a"), other, fixture("b"), fixture("c"))] == [
        "first", None, "second", None,
    ]  # fmt: skip
    assert Replaceable(tmp_path / "none").take(other) is None
