"""Coding agents read a file, write another one and answer, set up by the lines of their page."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from parser import write_call
from tests.support.codex_programs import ROOT, child_environment, installed_programs
from tests.support.conversation import all_shown, results_shown
from tests.support.node_clients import missing
from tests.support.processes import said_by
from tests.support.scripted_model import Failed, Message, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_server

PAGE = (ROOT / "docs" / "howto" / "agents.md").read_text("utf-8")
PAGE_URL = "http://127.0.0.1:8787/v1"
INSTALLED = ROOT / "tests" / "end_to_end" / "agents" / "node_modules"

QUESTION = "When does Alpha start? Write it down in start.txt."
NOTE, STARTS, ANSWER = "# Alpha\nstarts on Monday\n", "Monday", "Alpha starts on Monday, and start.txt says so."


@dataclass(frozen=True, slots=True)
class Agent:
    """`title` is that of its section on the page. `read` and `write` are calls of its tools, for a file's path."""

    name: str
    title: str
    command: tuple[str, ...]
    read: Callable[[Path], tuple[str, Mapping[str, object]]]
    write: Callable[[Path], tuple[str, Mapping[str, object]]]
    environment: Mapping[str, str] = field(default_factory=dict)


# By what opencode uses either API.
BY_CHAT, BY_RESPONSES = '"npm": "@ai-sdk/openai-compatible"', '"npm": "@ai-sdk/openai"'

ADD_FILE = "*** Begin Patch\n*** Add File: start.txt\n+Monday\n*** End Patch"
AGENTS = (
    Agent(
        "opencode",
        "opencode",
        ("run", "--auto"),
        lambda path: ("read", {"filePath": str(path)}),
        lambda _: ("apply_patch", {"patchText": ADD_FILE}),
        {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
    ),
    Agent(
        "qwen",
        "Qwen Code",
        ("--yolo",),
        lambda path: ("read_file", {"file_path": str(path)}),
        lambda path: ("write_file", {"file_path": str(path), "content": STARTS}),
    ),
    Agent(
        "pi",
        "pi",
        ("--print", "--provider", "tagcall", "--model", "gpt-5.5"),
        lambda path: ("read", {"path": path.name}),
        lambda path: ("write", {"path": path.name, "content": STARTS}),
        {"PI_OFFLINE": "1"},
    ),
    Agent(
        "codex",
        "codex",
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        lambda path: ("exec_command", {"cmd": f"cat {path.name}"}),
        lambda _: ("apply_patch", {"input": ADD_FILE}),
        {"CODEX_API_KEY": "any"},
    ),
)


def program(agent: Agent) -> Path:
    if agent.name == "codex":
        bundled = installed_programs()[0].path
        assert bundled is not None, "openai-codex-cli-bin is not installed"
        return bundled
    if shutil.which("node") is None or not (INSTALLED / ".installed").is_file():
        missing("The coding agents are not installed: run `make agents`.")
    return INSTALLED / ".bin" / agent.name


def set_up(agent: Agent, home: Path, work: Path, url: str, *, responses: bool = False) -> None:
    """Writes the files of the page, each to the first place that is named in front of it.

    `responses`: opencode is told to use the Responses API, as the page says.
    """
    section = PAGE.split(f"\n## {agent.title}\n")[1].split("\n## ")[0]
    files = re.findall(r"^`([^`\n]+)`[^\n]*\n\n```\w+\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert files, f"the page has nothing to paste for {agent.title}"
    for name, text in files:
        path = home / name.removeprefix("~/") if name.startswith("~/") else work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        assert PAGE_URL in text
        if responses:
            assert BY_RESPONSES in section
        pasted = text.replace(BY_CHAT, BY_RESPONSES) if responses else text
        path.write_text(pasted.replace(PAGE_URL, url), "utf-8")


def clerk(agent: Agent, work: Path) -> Callable[[Mapping[str, Any]], Reply]:
    """Reads the note, writes what it says, and answers; what else an agent asks is worth a word."""

    def choose(body: Mapping[str, Any]) -> Reply:
        name, arguments = agent.write(work / "start.txt")
        results, shown = results_shown(body), all_shown(body)
        if QUESTION not in shown or f'"name":"{name}"' not in shown:
            return Reply([Message("Alpha")])
        if not results:
            name, arguments = agent.read(work / "note.md")
        elif STARTS not in results[0]:
            return Reply([Message(f"I cannot read it: {results[0]}")])
        elif len(results) > 1:
            return Reply([Message(ANSWER)], chunk=3)
        return Reply([Message(f"I will do that.\n{write_call(name, json.dumps(arguments))}")], chunk=3)

    return choose


def test_the_page_names_the_agents_and_the_versions_that_are_tested() -> None:
    told = dict(re.findall(r"^\| \[(.+?)\].*\| (.+?) \|$", PAGE, re.MULTILINE))
    assert list(told) == ["Claude Code", *(agent.title for agent in AGENTS)]
    tested = json.loads((INSTALLED.parent / "package.json").read_text("utf-8"))["dependencies"]
    versions = {name: version.rpartition("@")[2] for name, version in tested.items()}
    assert told.pop("Claude Code") == f"{versions.pop('claude-code')}, {versions.pop('claude-code-before')}"
    assert {told[title] for title in list(told)[:-1]} == set(versions.values())


async def ask(agent: Agent, tmp_path: Path, model: ScriptedModel, *, responses: bool = False) -> tuple[int | None, str]:
    """Its exit status and what it prints, when it has done its task."""
    executable = program(agent)
    home, work = tmp_path / "client", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (work / "note.md").write_text(NOTE, "utf-8")
    async with tagcall_server(model, tmp_path / "home", store="memory") as url:
        set_up(agent, home, work, url, responses=responses)
        process = await asyncio.create_subprocess_exec(
            str(executable),
            *agent.command,
            QUESTION,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=work,
            env={**child_environment(home), **agent.environment},
        )
        out, err = await said_by(process)
    assert (work / "start.txt").read_text("utf-8").strip() == STARTS, err
    return process.returncode, out


@pytest.mark.agents
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
async def test_a_coding_agent_reads_a_file_writes_one_and_answers(
    model: ScriptedModel, agent: Agent, tmp_path: Path
) -> None:
    model.choose = clerk(agent, tmp_path / "work")
    status, out = await ask(agent, tmp_path, model)
    assert status == 0
    assert ANSWER in out


# By Chat Completions opencode knows an overflow in mid-stream by no form of it, codex fails its turn.
COMPACTING = [
    ("opencode", False, False),
    ("opencode", False, True),
    ("opencode", True, True),
    ("pi", False, False),
    ("pi", True, False),
]


@pytest.mark.agents
@pytest.mark.parametrize(("name", "begun", "responses"), COMPACTING)
async def test_a_coding_agent_compacts_when_it_is_told_that_its_conversation_is_too_long(
    model: ScriptedModel, name: str, begun: bool, responses: bool, tmp_path: Path
) -> None:
    """`begun`: it is told in mid-stream."""
    agent = next(agent for agent in AGENTS if agent.name == name)
    work = tmp_path / "work"
    overflow = Failed("context_length_exceeded", "Your input exceeds the context window of this model.")
    overflows = [Reply([Message("It says, as far as I can see,")] if begun else [], end=overflow)]
    as_usual = clerk(agent, work)

    def choose(body: Mapping[str, Any]) -> Reply:
        tool, arguments = agent.write(work / "start.txt")
        if f'"name":"{tool}"' not in all_shown(body):
            return Reply([Message(f"The note says: {STARTS}. It is to be written to start.txt.")])
        if overflows:
            return overflows.pop() if results_shown(body) else as_usual(body)
        if (work / "start.txt").exists():
            return Reply([Message(ANSWER)])
        return Reply([Message(write_call(tool, json.dumps(arguments)))])

    model.choose = choose
    # What an agent prints of an overflow that it mends, and how it ends then, is its own.
    await ask(agent, tmp_path, model, responses=responses)
    assert not overflows
