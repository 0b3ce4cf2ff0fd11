"""One case through tagcall's own turn: what the client gets, what the model wrote for it, and what that cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import aclosing

import orjson
from msgspec import Struct
from msgspec.structs import replace

from parser import KEY, CallCompleted, SentinelParser
from prompts import Text

from ...contracts import (
    AnswerText,
    TextPiece,
    ToolCallArguments,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnRequest,
    Usage,
)
from ...ingress.inspect import HeardTurn
from ...turn import TurnOptions, TurnReport, run_turn
from ..record.turns import RecordedBackend, recorded_request
from .grade import MadeCall

# As the form of a call shows it, behind which an example may follow.
_KEY = re.compile(rf'"{KEY}": "([^"]+)"')


class PlayedTurn(Struct, frozen=True):
    """What the client got (`failed` is an error's sentence), and the turns at the backend that it took.

    `usage` is that of all of these, and so are `seconds`.
    """

    text: str
    calls: Sequence[MadeCall]
    failed: str | None
    usage: Usage
    heard: Sequence[HeardTurn]
    report: TurnReport

    @property
    def written(self) -> Sequence[str]:
        """What the model wrote, a text an answer."""
        return ["".join(event.text for _, event in turn.told if isinstance(event, TextPiece)) for turn in self.heard]

    @property
    def seconds(self) -> float:
        return sum(turn.over - turn.begun for turn in self.heard)

    @property
    def own_lines(self) -> set[str]:
        """What the model was told by us at the end of the conversation."""
        ours = (item for turn in self.heard for item in turn.prompt.items if item.ours is not None)
        return {part.text for item in ours for part in item.parts if isinstance(part, Text)}

    @property
    def key(self) -> str | None:
        """The key that the model was asked to write."""
        found = self.heard and _KEY.search(self.heard[0].prompt.developer or "")
        return found[1] if found else None

    @property
    def read(self) -> Sequence[CallCompleted]:
        """The calls that can be read in what the model wrote first, whatever became of them."""
        parser = SentinelParser()
        events = [*parser.receive_text("".join(self.written[:1])), *parser.receive_eof()]
        return [event for event in events if isinstance(event, CallCompleted)]


def key_of(call: CallCompleted) -> str | None:
    """What the model wrote as the call's key."""
    written = dict(call.extra).get(KEY)
    return None if written is None else str(orjson.loads(written))


async def play(backend: RecordedBackend, model: str, request: TurnRequest, options: TurnOptions) -> PlayedTurn:
    """`backend` has been entered."""
    report, events = TurnReport(), list[TurnEvent]()
    with recorded_request() as recorded:
        async with aclosing(run_turn(replace(request, model=model), backend, options, report)) as turn:
            async for batch in turn:
                events += batch
    failed = next((event.error.message for event in events if isinstance(event, TurnFailed)), None)
    usage = next((event.usage for event in events if isinstance(event, TurnFinished)), Usage())
    text = "".join(event.text for event in events if isinstance(event, AnswerText))
    return PlayedTurn(text, _calls(events), failed, usage, recorded.turns, report)


def _calls(events: Sequence[TurnEvent]) -> list[MadeCall]:
    calls: list[MadeCall] = []
    for event in events:
        match event:
            case ToolCallStarted(_, name):
                calls.append(MadeCall(name, ""))
            case ToolCallArguments(piece):
                calls[-1] = replace(calls[-1], arguments=calls[-1].arguments + piece)
            case _:
                pass
    return calls
