"""What is kept of the last turns, and how much."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import ToolRegistry
from prompts import AssistantText, Item, Text, ToolChoice, Transcript, UserTurn
from proxy.contracts import BackendEvent, Prompt, ReasoningPiece, TextPiece, TurnFinished, TurnRequest, Usage
from proxy.ingress.inspect import TurnLog, TurnRecord
from proxy.ingress.inspect.detail import detail
from proxy.settings import Settings
from proxy.turn import BlockNote, Fate, Reason, Ruling


def request(*said: str) -> TurnRequest:
    entries = tuple(AssistantText(text) if number % 2 else UserTurn((Text(text),)) for number, text in enumerate(said))
    return TurnRequest("m", Transcript(entries), ToolRegistry(), ToolChoice())


def begun(log: TurnLog, id: str, *said: str, body: bytes = b"{}", owner: str = "me") -> TurnRecord:
    record = TurnRecord(id, at=0.0, began=0.0, route="/responses", client="c", model="m")
    log.begin(record, request(*said), owner, body)
    return record


def test_the_oldest_turn_goes() -> None:
    log = TurnLog(2, 1 << 20, words=True)
    for name in "abc":
        begun(log, name, "hi")
    assert [record.id for record in log.records] == ["b", "c"]


def test_requests_that_go_on_are_one_group() -> None:
    log = TurnLog(10, 1 << 20, words=False)
    first = begun(log, "a", "hi")
    other = begun(log, "b", "hi")
    third = begun(log, "c", "hi", "Hello.", "And?")
    strange = begun(log, "d", "hi", "Hello.", "And?", "Yes.", "Who?", owner="another")
    assert first.group != other.group
    assert third.group == other.group
    assert strange.group == "d"


def test_without_words_nothing_is_kept_of_them() -> None:
    log = TurnLog(10, 1 << 20, words=False)
    record = begun(log, "a", "hi")
    record.left([{"type": "response.output_text.delta", "delta": "secret"}], 1.0)
    ruling = Ruling(Fate.GONE, Reason.MALFORMED, problem="the secret is broken")
    record.judged(BlockNote(attempt=0, ruling=ruling, name="", problem=ruling.problem), "secret")
    assert record.asked(Prompt("m", None, ()), 0.0) is None
    assert record.words is None
    assert log.used == 0
    assert "secret" not in str(detail(record))


@given(st.lists(st.tuples(st.integers(0, 4_000), st.integers(0, 4_000)), max_size=40))
def test_the_words_never_take_more_than_they_may(turns: list[tuple[int, int]]) -> None:
    log = TurnLog(5, 10_000, words=True)
    for number, (asked, wrote) in enumerate(turns):
        record = begun(log, str(number), "hi", body=b"x" * asked)
        heard = record.asked(Prompt("m", "d" * 100, ()), 0.0)
        if heard is not None:
            record.heard(heard, [TextPiece("w" * wrote)], 1.0)
        record.left([{"type": "delta", "delta": "w" * wrote}], 1.0)
        record.close(2.0)
        assert log.used <= 10_000
        assert log.used == sum(each.words.size for each in log.records if each.words is not None)


def test_deltas_are_kept_together_and_lose_nothing() -> None:
    log = TurnLog(5, 1 << 20, words=True)
    record = begun(log, "a", "hi")
    heard = record.asked(Prompt("m", None, ()), 0.0)
    assert heard is not None
    text = "".join(f"{number} " for number in range(5_000))
    for at in range(0, len(text), 4):
        record.heard(heard, [TextPiece(text[at : at + 4])], at / 10_000)
        record.left([{"type": "response.output_text.delta", "delta": text[at : at + 4]}], at / 10_000)
    record.saw([TurnFinished(Usage())], 3.0)
    record.close(3.0)
    told: Any = detail(record)
    assert told["answers"][0]["wrote"] == text
    (row,) = told["left"]
    assert (row["text"], row["count"]) == (text, -(-len(text) // 4))
    assert len(heard.told) < 100


def test_a_thousand_turns_of_100_kb_stay_within_the_bounds_as_shipped() -> None:
    settings = Settings()
    log = TurnLog(settings.inspect_turns, settings.inspect_bytes, words=True)
    piece = "w" * 9_990
    tracemalloc.start()
    try:
        for number in range(1_000):
            body = b'"%d %b"' % (number, b"q" * 100_000)
            record = begun(log, str(number), f"{number} " + "q" * 100_000, body=body)
            heard = record.asked(Prompt("m", "d" * 1_000, ()), 0.0)
            assert heard is not None
            for at in range(10):
                text = f"{at:10}" + piece
                record.heard(heard, [TextPiece(text)], at / 50)
                record.heard_line(heard, at / 50, False, {"method": "delta", "params": {"delta": text}})
                record.left([{"type": "delta", "delta": text}], at / 50)
            record.close(2.0)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    kept = [each for each in log.records if each.words is not None]
    assert len(list(log.records)) == settings.inspect_turns
    assert len(kept) > 50
    assert taken < settings.inspect_bytes + (2 << 20)


def written(log: TurnLog, id: str, kind: Callable[[str], BackendEvent], pieces: Iterable[str]) -> None:
    record = begun(log, id, "hi")
    heard = record.asked(Prompt("m", None, ()), 0.0)
    assert heard is not None
    for at, text in enumerate(pieces):
        record.heard(heard, [kind(text)], at / 100_000)
        record.left([{"type": "delta", "delta": text}], at / 100_000)
        record.heard_line(heard, at / 100_000, False, {"method": "delta", "params": {"delta": text}})
    record.close(9.0)


def marked(log: TurnLog, id: str) -> None:
    record = begun(log, id, "hi")
    for number in range(2_000):
        ruling = Ruling(Fate.GONE, Reason.MALFORMED, problem="it is not JSON")
        record.judged(BlockNote(attempt=0, ruling=ruling, name=""), f"<tool_call>{number}")
    record.close(9.0)


def asked_of_many(log: TurnLog, id: str) -> None:
    items = tuple(Item("user", (Text(f"{id} {number}"),)) for number in range(500))
    begun(log, id, "hi", body=b"x" * 10_000).asked(Prompt("m", None, (), items=items), 0.0)


SHAPES: dict[str, Callable[[TurnLog, str], None]] = {
    "wide letters": lambda log, turn: written(log, turn, TextPiece, ["\N{GRINNING FACE}" * 10] * 1_000),
    "a wide one now and then": lambda log, turn: written(log, turn, TextPiece, ["wwwwwwwww\N{GRINNING FACE}"] * 1_000),
    "long thoughts": lambda log, turn: written(log, turn, partial(ReasoningPiece, 0), ["r" * 20_000] * 3),
    "short thoughts": lambda log, turn: written(log, turn, partial(ReasoningPiece, 0), ["hm"] * 1_000),
    "tags": marked,
    "messages": asked_of_many,
}


@pytest.mark.parametrize("turns", [10, pytest.param(30, marks=pytest.mark.whole)])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_what_is_counted_is_what_is_kept_whatever_a_model_writes(
    shape: Callable[[TurnLog, str], None], turns: int
) -> None:
    log = TurnLog(100, 1 << 19, words=True)
    tracemalloc.start()
    try:
        for number in range(turns):
            shape(log, str(number))
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert log.used <= 1 << 19
    assert taken < log.used + (1 << 20)
