"""`tagcall demo` as people see it: a child process with its output piped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.cli.demo.vault import samples_folder
from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[3]


def run_demo(*python: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *python, "-m", "proxy.cli", "demo"],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, encoding="utf-8", timeout=PATIENCE,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def output() -> str:
    # A proxy in the environment must not catch the way to the own port.
    done = run_demo(HTTP_PROXY="http://127.0.0.1:9", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_every_hop_is_shown(output: str) -> None:
    hops = output.split("-- Request ")[1:]
    assert len(hops) == 3
    for hop in hops:
        assert set(re.findall(r"^The ((?:client|model) [a-z ]+):", hop, re.MULTILINE)) >= {
            "client sends",
            "model is shown",
            "model writes",
            "client receives",
        }
    assert re.findall(r"^The client runs: (\w+)", output, re.MULTILINE) == ["search_notes", "read_note", "read_note"]


def test_the_model_is_shown_the_messages_of_its_thread(output: str) -> None:
    """And not the one text that backends without threads are given."""
    shown = re.findall(r"\n  \| (user|assistant): (.*)", output.split("-- Request ")[2])
    assert [role for role, _ in shown] == ["user", "assistant", "user"]
    assert shown[1][1] == "I'll look in your notes."
    assert shown[2][1].startswith("[tool:call_")
    assert "[user]" not in output


def test_the_text_of_the_model_and_the_events_of_the_client_stand_side_by_side(output: str) -> None:
    unwrapped = " ".join(output.replace("\n  | ", " ").split())
    call = r'<tool_call>\{"key": "\w{10}", "name": "search_notes", "arguments": \{"query": "north bed"\}\}</tool_call>'
    assert re.search(call, unwrapped)
    assert "discarded" not in unwrapped  # the model writes the key, so nothing is asked for once more
    assert "function_call_arguments.done" in output
    assert "output_text.delta" in unwrapped


def test_the_answer_stands_in_the_notes(output: str) -> None:
    answer = " ".join(output.split("-- The answer ")[1].split("-- Done ", maxsplit=1)[0].split())
    notes = "".join(path.read_text(encoding="utf-8") for path in (samples_folder() / "vault").rglob("*.md"))
    for fact in ("Charlotte potatoes", "10 July", "Aquadulce broad beans", "28 June", "12 April"):
        assert fact in answer
        assert fact in notes


def test_it_ends_with_what_to_do_next(output: str) -> None:
    end = output.split("The tool loop is done.")[1]
    assert re.findall(r"(?:tagcall|proxy\.cli) (\w+)", end) == ["setup", "serve"]


def test_a_pipe_gets_plain_lines_that_fit(output: str) -> None:
    assert output.isascii()
    assert "\x1b" not in output
    assert max(len(line) for line in output.splitlines()) <= 80


def test_it_leaves_no_note_of_a_model_that_was_never_asked(tmp_path: Path) -> None:
    done = run_demo(XDG_DATA_HOME=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in tmp_path.rglob("*.json")] == []


def test_a_missing_package_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['openai'] = None\n", encoding="utf-8")
    done = run_demo(PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"The demo needs the package openai: `{sys.executable} -m pip install openai`.\n"


def test_a_reader_who_has_seen_enough_is_told_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "proxy.cli", "demo"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.close()
        assert demo.stderr.read() == b""
        assert demo.wait(PATIENCE) == 141
