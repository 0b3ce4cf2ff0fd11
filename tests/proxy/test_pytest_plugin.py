"""The pytest plugin in somebody else's project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.cli.main import build_parser
from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"

TEST = """
import pytest
from openai import BadRequestError, OpenAI

TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}

def client_of(url):
    return OpenAI(base_url=url, api_key="any", max_retries=0)

def test_calls(tagcall_server):
    client = client_of(tagcall_server("fixtures"))
    answer = client.responses.create(model="gpt-5.5", input="Weather in Paris and Rome?", tools=[TOOL])
    assert [item.name for item in answer.output if item.type == "function_call"] == ["get_weather"] * 2

def test_the_server_is_shared_unless_a_fresh_one_is_wanted(tagcall_server):
    assert tagcall_server("fixtures") == tagcall_server("fixtures")
    assert tagcall_server("fixtures", fresh=True) != tagcall_server("fixtures")

def test_what_nothing_answers_is_told(tagcall_server):
    with pytest.raises(BadRequestError, match="The nearest is codex-0.169.0-two-calls"):
        client_of(tagcall_server("fixtures")).responses.create(model="gpt-5.5", input="Weather in Oslo and Rome?")

def test_damage(tagcall_server):
    tagcall_server("damaged")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "codex-0.169.0-two-calls").symlink_to(FIXTURES / "codex-0.169.0-two-calls")
    (tmp_path / "damaged" / "case").mkdir(parents=True)
    (tmp_path / "damaged" / "case" / "backend.jsonl").write_text("{", "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", "utf-8")
    (tmp_path / "test_agent.py").write_text(TEST, "utf-8")
    return tmp_path


def test_tests_get_recorded_answers_and_damage_is_one_sentence(project: Path) -> None:
    # Here it is found under its name in the project, as no wheel has been built; other plugins want their own settings.
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "proxy.pytest_plugin", "-q"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TAGCALL_PORT": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert f"tagcall: {project}/damaged/case/backend.jsonl: line 1 is not JSON" in done.stdout


def test_the_docs_show_what_the_plugin_and_the_commands_have() -> None:
    page = (ROOT / "docs" / "howto" / "replay-in-ci.md").read_text("utf-8")
    assert "def test_the_agent_looks_into_the_notes(tagcall_server):" in page
    (commands,) = (action for action in build_parser()._actions if action.dest == "command")
    for command in ("record", "replay", "serve"):
        assert command in (commands.choices or ())
        assert f"tagcall {command} " in page
