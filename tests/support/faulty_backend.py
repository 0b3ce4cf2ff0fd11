"""The backend over an app-server that goes wrong, and what its consumer sees of that."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from proxy.backends.codex import CodexBackend, Deadlines, RestartPolicy, SessionOptions
from proxy.contracts import TextBackend, TextPiece, TurnEnded
from proxy.errors import BackendError
from proxy.rpc import ChildTransport, Launch, Transport
from tests.support.backend_events import prompt

# As a module, whose byte code is kept: as a script it would be compiled at each start.
PROGRAM = f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]; from faulty_app_server import main; main()"
PATIENT = Deadlines()
AT_ONCE = RestartPolicy(backoff=(0.0,), ends=1000, starts_in_vain=1000)


@dataclass(slots=True)
class FaultyAppServer:
    """Starts `faulty_app_server.py` with a fault; `folder` is its own."""

    fault: str
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)

    async def connect(self) -> Transport:
        argv = [sys.executable, "-I", "-S", "-c", PROGRAM, self.fault, str(self.folder), "app-server"]
        return await ChildTransport.start(Launch(argv, self.env))

    def backend(
        self, deadlines: Deadlines = PATIENT, *, idle_timeout: float = 300.0, policy: RestartPolicy = AT_ONCE
    ) -> CodexBackend:
        options = SessionOptions(idle_timeout=idle_timeout, deadlines=deadlines)
        return CodexBackend(self.connect, options, policy=policy)

    @property
    def pids(self) -> list[int]:
        """Of its lives, in order."""
        return [int((self.folder / f"life-{life}").read_text()) for life in range(self.lives)]

    @property
    def lives(self) -> int:
        return sum(1 for _ in self.folder.glob("life-*"))

    @property
    def stuck(self) -> int:
        """How often it has left its client waiting."""
        file = self.folder / "stuck"
        return file.stat().st_size if file.exists() else 0

    @property
    def answers(self) -> list[dict[str, Any]]:
        """What it was answered when it asked."""
        return [orjson.loads(line) for line in (self.folder / "answers").read_bytes().splitlines()]

    def script(self) -> Path:
        """A program that can be started as codex is."""
        path, draft = self.folder / "codex", self.folder / "codex.new"
        arguments = [self.fault, str(self.folder)]
        draft.write_text(f"#!{sys.executable} -IS\nimport sys\nsys.argv[1:1] = {arguments!r}\n{PROGRAM}\n")
        draft.chmod(0o700)
        return draft.replace(path)  # one that is just starting reads it whole


@dataclass(frozen=True, slots=True)
class Seen:
    """A turn as its consumer saw it: its text, and its one end, "ended" or an error's code."""

    text: str
    end: str


async def see_turn(backend: TextBackend) -> Seen:
    """Reads a turn past its end, which nothing may follow."""
    text: list[str] = []
    ends: list[str] = []
    try:
        async with backend.stream(prompt()) as batches:
            async for batch in batches:
                for event in batch:
                    assert not ends, f"{event} after the end"
                    if isinstance(event, TextPiece):
                        text.append(event.text)
                    elif isinstance(event, TurnEnded):
                        ends.append("ended")
    except BackendError as error:
        ends.append(str(error.code))
    assert len(ends) == 1, f"ends: {ends}"
    return Seen("".join(text), ends[0])
