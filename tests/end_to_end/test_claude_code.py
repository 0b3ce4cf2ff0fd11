"""Claude Code, the newest one and the one before, pointed here by its base URL alone."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from parser import write_call
from tests.support.codex_programs import ROOT, child_environment
from tests.support.conversation import all_shown, results_shown
from tests.support.lanes import continued
from tests.support.node_clients import missing
from tests.support.processes import said_by
from tests.support.scripted_model import Failed, Message, Refusal, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_server

pytestmark = pytest.mark.agents

PAGE = (ROOT / "docs" / "howto" / "agents.md").read_text("utf-8")
INSTALLED = ROOT / "tests" / "end_to_end" / "agents" / "node_modules"
VERSIONS = ("claude-code", "claude-code-before")

QUESTION, ANSWER = "When does Alpha start? Write it down.", "Alpha starts on Monday, and start.txt says so."
AGAIN, REPLY = "And what is the password?", "The note does not say it."
# One pixel.
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018dd8db0"
    "0000000049454e44ae426082"
)

Call = tuple[str, Mapping[str, object]]


class Claude:
    """One installation of it, which works in a folder of its own, in a home of its own."""

    def __init__(self, version: str, folder: Path) -> None:
        if shutil.which("node") is None or not (INSTALLED / ".installed").is_file():
            missing("The coding agents are not installed: run `make agents`.")
        self._program = INSTALLED / version / "bin" / "claude.exe"
        self._home, self.work = folder / "client", folder / "work"
        self._home.mkdir()
        self.work.mkdir()
        (self.work / "note.md").write_text("# Alpha\nstarts on Monday\n", "utf-8")
        (self.work / "picture.png").write_bytes(PICTURE)

    def path(self, name: str) -> str:
        return str(self.work / name)

    async def ask(self, url: str, *words: str) -> dict[str, Any]:
        """What it prints of a turn."""
        told = re.findall(r"^export (\w+)=(.*)$", PAGE.split("\n## Claude Code\n")[1].split("\n## ")[0], re.MULTILINE)
        environment = {name: value.replace("http://127.0.0.1:8787", url.removesuffix("/v1")) for name, value in told}
        process = await asyncio.create_subprocess_exec(
            str(self._program), "-p", *words, "--output-format", "json",
            "--allowedTools", "Bash", "Read", "Write", "Edit", "ToolSearch", "CronList", "WebSearch",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            cwd=self.work, env={**child_environment(self._home), **environment},
        )  # fmt: skip
        out, err = await said_by(process)
        assert out, err
        answer: dict[str, Any] = json.loads(out)
        return answer


def working(*answers: tuple[Call, ...]) -> Callable[[Mapping[str, Any]], Reply]:
    """Makes these calls, answer by answer, and answers then. What else is asked is worth a word."""

    def choose(body: Mapping[str, Any]) -> Reply:
        shown, results = all_shown(body), len(results_shown(body))
        if '"name":"ToolSearch"' not in shown:
            return Reply([Message('{"title": "Alpha"}')])
        for calls in answers:
            if results <= 0:
                written = [write_call(name, json.dumps(arguments)) for name, arguments in calls]
                return Reply([Message("\n".join(["I will look.", *written]))], chunk=7)
            results -= len(calls)
        return Reply([Message(REPLY if AGAIN in shown else ANSWER)], chunk=3)

    return choose


def asked_with_tools(model: ScriptedModel) -> list[Any]:
    """Its requests but for those beside the conversation, for a title and the like."""
    return [request for request in model.requests if '"name":"ToolSearch"' in all_shown(request.body)]


@pytest.mark.parametrize("version", VERSIONS)
async def test_it_goes_through_a_conversation_with_all_that_it_has_on_one_lane(
    model: ScriptedModel, version: str, tmp_path: Path
) -> None:
    claude = Claude(version, tmp_path)
    model.choose = working(
        (
            ("Read", {"file_path": claude.path("note.md")}),
            # It takes the folder off, and runs the rest.
            ("Bash", {"command": f"cd {claude.work} && exit 3", "description": "Fails"}),
        ),
        (("ToolSearch", {"query": "select:CronList,WebSearch", "max_results": 5}),),
        (("CronList", {}), ("WebSearch", {"query": "Alpha"})),
        (("Read", {"file_path": claude.path("picture.png")}),),
        # It takes the blanks off, and adds `replace_all`.
        (
            ("Write", {"file_path": claude.path("start.txt"), "content": "Monday  \n"}),
            ("Edit", {"file_path": claude.path("note.md"), "old_string": "Alpha", "new_string": "Beta"}),
        ),
    )
    async with tagcall_server(model, tmp_path / "home", store="memory") as url:
        first = await claude.ask(url, QUESTION)
        second = await claude.ask(url, AGAIN, "--resume", first["session_id"])
    assert (first["result"], first["is_error"]) == (ANSWER, False)
    assert (second["result"], second["is_error"]) == (REPLY, False)
    assert (claude.work / "start.txt").read_text("utf-8") == "Monday\n"
    assert (claude.work / "note.md").read_text("utf-8").startswith("# Beta\n")
    requests = asked_with_tools(model)
    results = results_shown(requests[-1].body)
    assert "starts on Monday" in results[0]
    assert results[1].startswith("error: Exit code 3")
    assert '{"name":"CronList"' in results[2]
    assert "No scheduled jobs" in results[3]
    assert "Nothing here can search the web" in results[4]
    assert any(part["type"] == "input_image" for item in requests[-1].body["input"] for part in item["content"])
    assert len(requests) == 7
    assert continued(requests) == len(requests) - 1


async def test_it_counts_its_context_without_a_turn(model: ScriptedModel, tmp_path: Path) -> None:
    claude = Claude(VERSIONS[0], tmp_path)
    async with tagcall_server(model, tmp_path / "home", store="memory") as url:
        told = await claude.ask(url, "/context")
    assert re.search(r"\*\*Tokens:\*\* [\d.]+k / 272k", told["result"])
    assert model.requests == []


async def test_it_gets_over_a_backend_that_is_full_and_one_that_fails_in_mid_stream(
    model: ScriptedModel, tmp_path: Path
) -> None:
    claude = Claude(VERSIONS[0], tmp_path)
    as_usual = working((("Write", {"file_path": claude.path("start.txt"), "content": "Monday"}),))
    full = Refusal(503, {"message": "At capacity.", "code": "server_is_overloaded"})
    faults: list[Reply | Refusal] = [Reply([Message("I w")], end=Failed("server_is_overloaded", "At capacity.")), full]

    def choose(body: Mapping[str, Any]) -> Reply | Refusal:
        return faults.pop() if faults and '"name":"ToolSearch"' in all_shown(body) else as_usual(body)

    model.choose = choose
    async with tagcall_server(model, tmp_path / "home", store="memory") as url:
        told = await claude.ask(url, QUESTION)
    assert not faults
    assert (told["result"], told["is_error"]) == (ANSWER, False)
    assert (claude.work / "start.txt").read_text("utf-8") == "Monday"


async def test_its_auto_mode_asks_the_model_for_a_verdict(model: ScriptedModel, tmp_path: Path) -> None:
    claude = Claude(VERSIONS[0], tmp_path)
    as_usual = working((("Bash", {"command": "python3 -c 'print(1)' > start.txt", "description": "Writes"}),))
    verdicts = 0

    def choose(body: Mapping[str, Any]) -> Reply:
        nonlocal verdicts
        if "<block>" in all_shown(body) and '"name":"ToolSearch"' not in all_shown(body):
            verdicts += 1
            return Reply([Message("<block>no</block>")])
        return as_usual(body)

    model.choose = choose
    async with tagcall_server(model, tmp_path / "home", store="memory") as url:
        told = await claude.ask(url, QUESTION, "--permission-mode", "auto")
    assert told["result"] == ANSWER
    assert verdicts
