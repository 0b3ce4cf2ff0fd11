"""Somebody else's project, whose tests ask an OpenAI endpoint, with codex and a scripted model to record it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from parser import write_call

from .codex_homes import informed_home
from .codex_programs import child_environment, installed_programs
from .processes import said_by
from .scripted_model import Message, Refusal, Reply, ScriptedModel

CONFTEST = """
def pytest_tagcall_redact():
    return ["Project (\\\\w+)"]
"""
# Without an SDK, which takes longer to load than all the rest of such a run.
ASK = """
import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

def ask(tagcall_server, **body):
    body = json.dumps({"model": "gpt-5.5", **body}).encode()
    url = tagcall_server("recorded") + "/responses"
    try:
        with urlopen(Request(url, body, {"content-type": "application/json"})) as answer:
            return json.load(answer)["output"]
    except HTTPError as error:
        raise RuntimeError(error.read().decode()) from None
"""
TEST = (
    ASK
    + """
TOOL = {"type": "function", "name": "read_note", "parameters": {"type": "object"}}
QUESTION = {"role": "user", "content": "What is planted for Project Falcon? My password: hunter2"}

def text_of(output):
    return "".join(part["text"] for item in output if item["type"] == "message" for part in item["content"])

def test_the_note_is_read(tagcall_server):
    output = ask(tagcall_server, input=[QUESTION], tools=[TOOL])
    (call,) = [item for item in output if item["type"] == "function_call"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "Project Falcon: see below."}
    output = ask(tagcall_server, input=[QUESTION, call, result], tools=[TOOL])
    assert text_of(output) == "There is garlic in the north bed of the garden."

def test_small_talk(tagcall_server):
    assert text_of(ask(tagcall_server, input="Hello")) == "Hello to you."
"""
)
PLANT = "garlic"


def answers(model: ScriptedModel, plant: str = PLANT) -> None:
    """What the project's tests ask for; the garden has that plant in it."""

    def choose(body: object) -> Reply | Refusal:
        text = orjson.dumps(body).decode()
        if "see below" in text:
            return Reply([Message(f"There is {plant} in the north bed of the garden.")])
        if "Falcon" in text:
            return Reply(
                [Message(f"I look.\n{write_call('read_note', orjson.dumps({'password': 'swordfish'}).decode())}")]
            )
        return Reply([Message("Hello to you.")])

    model.choose = choose


@dataclass(frozen=True, slots=True)
class SampleProject:
    """`pytest` is how it is started there, `home` where codex keeps its own."""

    folder: Path
    home: Path
    pytest: Sequence[str | Path]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def recorded(self) -> Path:
        return self.folder / "recorded"

    @classmethod
    def make(cls, folder: Path, pytest: Sequence[str | Path], **environment: str) -> SampleProject:
        project = cls(folder / "project", folder / "home", pytest, environment)
        project.folder.mkdir()
        project.home.mkdir()
        (project.folder / "conftest.py").write_text(CONFTEST, "utf-8")
        (project.folder / "test_agent.py").write_text(TEST, "utf-8")
        (project.folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", "utf-8")
        return project

    async def test(self, *flags: str, model: ScriptedModel | None = None) -> tuple[int, str]:
        """The exit status and the words of its tests. Without a `model` there is no codex."""
        program = installed_programs()[0].path
        assert program is not None, "openai-codex-cli-bin is not installed"
        behind = {
            "TAGCALL_CODEX": "/bin/false" if model is None else str(program),
            "TAGCALL_CODEX_HOME": str(informed_home(self.home / "codex", program)),
            "TAGCALL_API_KEY": "not for tests",
            **({} if model is None else {"TAGCALL_UPSTREAM": model.url}),
        }
        environment = {**child_environment(self.home), "XDG_CONFIG_HOME": str(self.home), **behind, **self.environment}
        process = await asyncio.create_subprocess_exec(
            *self.pytest, "-q", *flags, cwd=self.folder, env=environment,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said, _ = await said_by(process)
        assert process.returncode is not None
        return process.returncode, said

    def at_home(self) -> set[Path]:
        """What others than codex have left there."""
        return {path for path in self.home.rglob("*") if not path.is_relative_to(self.home / "codex")}

    def files(self) -> dict[str, bytes]:
        return {
            os.path.relpath(file, self.recorded): file.read_bytes()
            for file in self.recorded.rglob("*")
            if file.is_file()
        }
