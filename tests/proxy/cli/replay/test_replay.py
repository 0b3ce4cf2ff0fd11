"""`tagcall replay` as a person sees it, and every fixture of the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from proxy.cli.replay import ReplayOptions, run_replay
from proxy.replay.fixture import load_messages
from proxy.replay.transcript import transcript
from tests.support.command import Command
from tests.support.one_cut import replay_at_one_cut
from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[4]
FIXTURES = ROOT / "fixtures"
ONE = "codex-0.169.0-two-calls"


async def test_every_fixture_of_the_repository_is_as_promised(capsys: pytest.CaptureFixture[str]) -> None:
    assert await run_replay(FIXTURES, ReplayOptions()) == 0, capsys.readouterr().out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (ONE, "codex-0.169.0-rate-limit"):
        shutil.copytree(FIXTURES / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def replay(tagcall: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    replay_at_one_cut(monkeypatch)
    return partial(tagcall, "replay")


def change(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / ONE / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_what_is_as_promised_is_one_line(folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TAGCALL_")}
    done = subprocess.run(
        [sys.executable, "-m", "proxy.cli", "replay", str(folder)],
        cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 fixtures in ")
    assert done.stdout.endswith(" s, all as promised\n")


def test_a_difference_is_shown_with_its_place_and_ends_with_1(replay: Command, folder: Path) -> None:
    change(folder, "response.sse", "I will check the weather", "I will ask the weather")
    done = replay(folder)
    assert done.returncode == 1
    assert f"{ONE}\n  event 5, response.output_text.delta\n    delta\n" in done.stdout
    assert '- "I will ask the weather.' in done.stdout
    assert '+ "I will check the weather.' in done.stdout
    assert done.stdout.endswith(" s, 1 not as promised\n")


def test_update_writes_what_came(replay: Command, folder: Path) -> None:
    promised = (folder / ONE / "response.sse").read_bytes()
    change(folder, "response.sse", "I will check the weather", "I will ask the weather")
    assert replay(folder, "--update").stdout.endswith(", 1 not as promised, 1 rewritten\n")
    assert (folder / ONE / "response.sse").read_bytes() == promised
    assert replay(folder).returncode == 0


def test_a_folder_that_cannot_be_written_is_one_sentence(replay: Command, folder: Path) -> None:
    change(folder, "response.sse", "I will check the weather", "I will ask the weather")
    (folder / ONE / ".response.sse.unfinished").mkdir()  # as a read-only folder is to root, too
    done = replay(folder, "--update")
    assert (done.returncode, done.stderr) == (
        2,
        f"tagcall: Nothing can be written to {folder / ONE} (Is a directory): make it writable.\n",
    )


def test_an_update_may_turn_a_stream_into_an_error(replay: Command, folder: Path) -> None:
    (folder / ONE / "response.sse").rename(folder / "codex-0.169.0-rate-limit" / "response.sse")
    assert replay(folder, "--update").returncode == 0
    assert (folder / ONE / "response.sse").is_file()
    assert sorted(path.name for path in (folder / "codex-0.169.0-rate-limit").iterdir()) == [
        "backend.jsonl", "request.json", "response.json",
    ]  # fmt: skip


def test_an_error_that_came_late_in_the_recording_may_come_at_once(replay: Command, folder: Path) -> None:
    case = folder / "codex-0.169.0-rate-limit"
    error = json.dumps({"error": json.loads((case / "response.json").read_bytes())["body"]["error"]})
    (case / "response.json").unlink()
    stream = ["event: response.created", "data: {}", "", "event: response.failed", f"data: {error}", "", "data: [DONE]"]
    (case / "response.sse").write_text("\n".join([*stream, "", ""]), "utf-8")
    assert replay(folder, "--update").stdout.endswith("all as promised, 0 rewritten\n")
    assert (case / "response.sse").is_file()


def test_a_request_that_its_fixture_does_not_answer_is_told(replay: Command, folder: Path) -> None:
    change(folder, "request.json", "Weather in Paris and Rome?", "Weather in Oslo?")
    done = replay(folder)
    assert done.returncode == 1
    assert f"No fixture answers this turn. The nearest is {ONE}" in done.stdout

    promised = (folder / ONE / "response.sse").read_bytes()
    done = replay(folder, "--update")
    assert (done.returncode, done.stdout.endswith(", 1 not as promised, 0 rewritten\n")) == (1, True)
    assert (folder / ONE / "response.sse").read_bytes() == promised


def test_only_some_may_be_run(replay: Command, folder: Path) -> None:
    change(folder, "response.sse", "I will check the weather", "I will ask the weather")
    assert replay(folder, "--only", "*-rate-*", "--jobs", "1").returncode == 0
    nothing = replay(folder, "--only", "none")
    assert nothing.returncode == 2
    assert "no fixture of such a name" in nothing.stderr


def test_junit_has_a_case_for_each(replay: Command, folder: Path, tmp_path: Path) -> None:
    change(folder, "response.sse", "I will check the weather", "I will ask the weather")
    shutil.copytree(folder / ONE, folder / "played-only")
    (folder / "played-only" / "request.json").unlink()
    done = replay(folder, "--junit", tmp_path / "junit.xml")
    assert "played-only was not run: it has no request.json" in done.stdout
    assert "played-only" not in replay(folder, "--only", "*-rate-*").stdout
    suite = ET.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 -- our own
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert [case.get("name") for case in suite.iter("testcase")] == ["codex-0.169.0-rate-limit", ONE, "played-only"]
    assert "I will ask" in "".join(failure.text or "" for failure in suite.iter("failure"))


def test_another_setting_may_be_a_part_of_the_promise(replay: Command, folder: Path) -> None:
    meta, _, rest = (folder / ONE / "backend.jsonl").read_text("utf-8").partition("\n")
    live = json.dumps(json.loads(meta) | {"settings": {"calls": "live"}})
    (folder / ONE / "backend.jsonl").write_text(f"{live}\n{rest}", "utf-8")
    assert replay(folder).returncode == 0
    (folder / ONE / "backend.jsonl").write_text(f"{live.replace('calls', 'port')}\n{rest}", "utf-8")
    assert "no answer depends on the setting port" in replay(folder).stderr


@pytest.mark.parametrize(
    ("value", "sentence"),
    [("tiny", "the setting profile must be one of auto, frontier, small, not 'tiny'."), (True, "is not a text.")],
)
def test_a_setting_with_no_such_value_is_one_sentence(
    replay: Command, folder: Path, value: str | bool, sentence: str
) -> None:
    setting = f'{{"settings": {json.dumps({"profile": value})}, "tagcall_fixture": 1'
    change(folder, "backend.jsonl", '{"tagcall_fixture": 1', setting)
    done = replay(folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr


def test_line_ends_do_not_count(replay: Command, folder: Path) -> None:
    (folder / ONE / "transcript.txt").write_text(transcript(load_messages(folder / ONE)), "utf-8")
    for file in folder.glob("*/*"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert replay(folder).stdout.endswith("all as promised\n")


DAMAGE = [
    ("backend.jsonl", "{", "backend.jsonl: line 1 is not JSON: unexpected end of data (column 2)."),
    ("backend.jsonl", '{"tagcall_fixture": 2}', "backend.jsonl: it is of format 2; this tagcall reads format 1."),
    ("request.json", "hello", "request.json is not JSON"),
    ("response.sse", "hello", "response.sse is not an event stream"),
    ("backend.jsonl", "<<<<<<< HEAD\n", "backend.jsonl has a merge conflict in line 1: keep one side, or "),
    ("request.json", "{\n<<<<<<< HEAD\n", "request.json has a merge conflict in line 2: keep one side, or "),
    ("response.sse", "\n<<<<<<< HEAD\n", "response.sse has a merge conflict in line 2: keep one side, or "),
]


@pytest.mark.parametrize(("file", "text", "sentence"), DAMAGE, ids=[sentence[:24] for _, _, sentence in DAMAGE])
def test_damage_is_one_sentence_and_ends_with_2(
    replay: Command, folder: Path, file: str, text: str, sentence: str
) -> None:
    (folder / ONE / file).write_text(text, "utf-8")
    done = replay(folder)
    assert done.returncode == 2
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert done.stderr.startswith(f"tagcall: {folder}/{ONE}/")
    assert sentence in done.stderr
