"""One turn of the real model through `run_turn`, and what it is measured by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from parser import KEY, CallCompleted, SentinelParser, Tool, ToolRegistry
from prompts import ToolChoice, Transcript
from proxy.contracts import AnswerText, ToolCallArguments, ToolCallStarted, TurnEvent, TurnFailed, TurnRequest
from proxy.turn import TurnOptions, TurnReport, run_turn
from tests.support.gguf_backend import GgufBackend, Written

# As the form of a call shows it, behind which an example may follow.
_KEY = re.compile(rf'"{KEY}": "([^"]+)"')


@dataclass(frozen=True, slots=True)
class Played:
    """What the client got of one turn (`calls` are names and JSON texts), and all that the model wrote for it."""

    text: str
    calls: Sequence[tuple[str, str]]
    failed: str | None
    answers: Sequence[Written]
    report: TurnReport

    @property
    def seconds(self) -> float:
        return sum(answer.seconds for answer in self.answers)

    @property
    def key(self) -> str | None:
        """The key that the model was asked to write."""
        found = _KEY.search(self.answers[0].prompt.developer or "")
        return found and found[1]

    @property
    def read(self) -> list[CallCompleted]:
        """The calls that can be read in the first answer, whatever became of them."""
        parser = SentinelParser()
        events = [*parser.receive_text(self.answers[0].text), *parser.receive_eof()]
        return [event for event in events if isinstance(event, CallCompleted)]

    def as_json(self) -> dict[str, object]:
        return {
            "answers": [answer.text for answer in self.answers],
            "cut": any(answer.cut for answer in self.answers),
            "text": self.text,
            "calls": self.calls,
            "failed": self.failed,
            "again": self.report.again,
            "refused": self.report.refused,
            "warnings": self.report.warnings,
            "key": self.key,
            "tokens": [(u.input_tokens, u.cached_tokens, u.output_tokens) for u in (a.usage for a in self.answers)],
            "seconds": round(self.seconds, 1),
        }


def key_of(call: CallCompleted) -> str | None:
    """What the model wrote as the call's key."""
    written = dict(call.extra).get(KEY)
    return None if written is None else str(json.loads(written))


def tool(name: str, description: str, /, **parameters: str) -> Tool:
    """A tool with these parameters, each given by its JSON type and, behind a blank, what it is; `?` is optional."""
    described = {
        parameter: {"type": kind.rstrip("?"), "description": what}
        for parameter, (kind, _, what) in ((parameter, told.partition(" ")) for parameter, told in parameters.items())
    }
    required = [parameter for parameter, told in parameters.items() if not told.partition(" ")[0].endswith("?")]
    schema = {"type": "object", "properties": described, "required": required}
    return Tool(name, description, json.dumps(schema, separators=(",", ":")))


async def play(backend: GgufBackend, transcript: Transcript, tools: ToolRegistry, options: TurnOptions) -> Played:
    request = TurnRequest("local", transcript, tools, ToolChoice())
    report, events = TurnReport(), list[TurnEvent]()
    before = len(backend.written)
    async with aclosing(run_turn(request, backend, options, report)) as turn:
        async for batch in turn:
            events += batch
    failed = next((event.error.message for event in events if isinstance(event, TurnFailed)), None)
    text = "".join(event.text for event in events if isinstance(event, AnswerText))
    return Played(text, list(_calls(events)), failed, backend.written[before:], report)


def _calls(events: Sequence[TurnEvent]) -> Iterator[tuple[str, str]]:
    name, arguments = "", ""
    for event in events:
        match event:
            case ToolCallStarted():
                if name:
                    yield name, arguments
                name, arguments = event.name, ""
            case ToolCallArguments(piece):
                arguments += piece
            case _:
                pass
    if name:
        yield name, arguments
