"""What a piece of text costs on its way from the backend to bytes, without any program round it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from parser import Tool, ToolRegistry
from proxy.contracts import AnswerText, TextPiece
from proxy.schema.declared import ToolSchemas
from proxy.turn import FixedHabit, KeyHabit, KeyMode, Speaker, TurnOptions, TurnReport
from proxy.turn.calls import CallGate
from proxy.turn.plan import Attempt, Plan
from proxy.turn.reading import Reading
from proxy.turn.turn_key import TurnKey
from proxy.wire.responses.request import parse_responses_request
from proxy.wire.responses.responses_builder import ResponsesBuilder
from proxy.wire.sse import encode_typed
from tests.parser.bench import PROSE, fastest
from tests.parser.reading import cut

from .report import Row, ratio

PIECES = cut(PROSE[:200_000], 4)
TOOLS = ToolRegistry([Tool("read_note")])
KEY = TurnKey(KeyMode.AUTO, "7qhvxmrtbz", Speaker("", "m"), FixedHabit(KeyHabit.WRITES))


def rows() -> Iterator[Row]:
    ready, read = (seconds / len(PIECES) * 1e6 for seconds in fastest([_ready, _read], PIECES))
    yield ratio("text to a stream's bytes, and ready text, 4 characters: CPU", read, ready, "us", 2)


def _ready() -> Callable[[str], object]:
    builder = _builder()
    return lambda text: encode_typed(builder.handle(AnswerText(text)))


def _read() -> Callable[[str], object]:
    builder, reading = _builder(), _reading()

    def take(text: str) -> object:
        return encode_typed([made for event in reading.receive([TextPiece(text)]) for made in builder.handle(event)])

    return take


def _builder() -> ResponsesBuilder:
    builder = ResponsesBuilder(parse_responses_request({"model": "m", "input": "hi"}))
    builder.start()
    return builder


def _reading() -> Reading:
    numbers = count()
    request = parse_responses_request({"model": "m", "input": "hi"}).turn
    plan = Plan(request, TurnOptions(), TOOLS, ToolSchemas(TOOLS, lambda why: None), KEY)
    return Reading(plan, Attempt(), CallGate(plan, lambda prefix: f"{prefix}_{next(numbers)}"), TurnReport())
