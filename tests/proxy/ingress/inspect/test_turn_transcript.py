"""The words of a turn as they are kept: together, whole, and counted."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.contracts import Prompt, ReasoningPiece, TextPiece
from proxy.errors import BackendError
from proxy.ingress.inspect import HeardTurn, KeptWords
from proxy.ingress.inspect.turn_transcript import COUNTED_TOGETHER, JOINED, PIECE, TOGETHER

PROMPT = Prompt("m", None, ())


class Kept:
    """Words, and how much they have grown."""

    def __init__(self) -> None:
        self.grew: list[int] = []
        self.words = KeptWords("me", b"{}", self.grew.append)

    def heard(self, *pieces: tuple[float, Any]) -> list[tuple[float, Any]]:
        turn = self.words.note_asked(PROMPT, 0.0)
        for at, event in pieces:
            self.words.note_heard(turn, [event], at)
        self.words.settle()
        return turn.told


def said(text: object | None) -> str | None:
    return None if text is None else str(text)


def delta(text: str, type: str = "response.output_text.delta") -> dict[str, object]:
    return {"type": type, "delta": text}


def test_text_that_comes_soon_after_other_text_is_one_piece_with_its_time() -> None:
    told = Kept().heard((1.0, TextPiece("one ")), (1.0 + TOGETHER / 2, TextPiece("two")), (2.0, TextPiece("three")))
    assert told == [(1.0, TextPiece("one two")), (2.0, TextPiece("three"))]


def test_reasoning_is_kept_apart_from_text_and_each_part_of_it_from_the_others() -> None:
    told = Kept().heard(
        (1.0, ReasoningPiece(0, "a")), (1.0, ReasoningPiece(0, "b")), (1.0, ReasoningPiece(1, "c")),
        (1.0, TextPiece("d")), (1.0, ReasoningPiece(1, "e")),
    )  # fmt: skip
    assert [event for _, event in told] == [
        ReasoningPiece(0, "ab"), ReasoningPiece(1, "c"), TextPiece("d"), ReasoningPiece(1, "e"),
    ]  # fmt: skip


def test_a_piece_does_not_grow_without_end() -> None:
    told = Kept().heard(*[(1.0, TextPiece("x" * 100))] * 50)
    assert "".join(event.text for _, event in told) == "x" * 5_000
    assert {len(event.text) for _, event in told[:-1]} == {PIECE}


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.05, 1.0]), st.text(max_size=20)), max_size=200))
def test_however_text_comes_none_of_it_is_lost_and_what_it_takes_is_told(pieces: list[tuple[float, str]]) -> None:
    kept, at = Kept(), 0.0
    timed = [(at := at + pause, TextPiece(text)) for pause, text in pieces]
    told = kept.heard(*timed)
    assert "".join(event.text for _, event in told) == "".join(text for _, text in pieces)
    size = sum(kept.grew)
    other = Kept()
    other.heard(*told)
    assert size == sum(other.grew)


def test_deltas_that_leave_are_one_row_until_another_event_leaves() -> None:
    kept = Kept()
    kept.words.note_left([delta("Hel"), delta("lo"), {"type": "response.in_progress"}, delta("!")], 1.0)
    kept.words.note_left([delta(" Why", "response.reasoning.delta")], 2.0)
    kept.words.settle()
    assert [(row.name, row.count, said(row.text), row.at) for row in kept.words.left] == [
        ("response.output_text.delta", 2, "Hello", 1.0),
        ("response.in_progress", 1, None, 1.0),
        ("response.output_text.delta", 1, "!", 1.0),
        ("response.reasoning.delta", 1, " Why", 2.0),
    ]
    assert orjson.loads(kept.words.left[0].data) == delta("Hel")


def test_an_event_is_kept_as_it_was_when_it_left() -> None:
    kept = Kept()
    event: dict[str, object] = {"type": "response.created", "response": {"status": "queued"}}
    kept.words.note_left([event], 1.0)
    event["response"] = {"status": "completed"}
    kept.words.settle()
    assert b"queued" in kept.words.left[0].data


def chunk(delta: dict[str, object], finish: str | None = None) -> dict[str, object]:
    return {"object": "chat.completion.chunk", "choices": [{"delta": delta, "finish_reason": finish}]}


@pytest.mark.parametrize(
    "event",
    [chunk({"content": "b", "role": "assistant"}), chunk({"content": "b"}, "stop"), chunk({"content": ""}), chunk({})],
)
def test_of_chat_only_a_chunk_that_brings_text_and_nothing_else_is_joined(event: dict[str, object]) -> None:
    kept = Kept()
    kept.words.note_left([chunk({"content": "a"}), chunk({"content": "a"}), event], 1.0)
    kept.words.settle()
    assert [(row.name, row.count, said(row.text)) for row in kept.words.left] == [
        ("chat.completion.chunk", 2, "aa"), ("chat.completion.chunk", 1, None),
    ]  # fmt: skip


def test_lines_of_a_method_that_bring_text_are_one_and_others_are_kept_each() -> None:
    kept = Kept()
    turn = kept.words.note_asked(PROMPT, 0.0)
    piece = {"method": "item/delta", "params": {"delta": "a"}}
    for ours, message in ((True, {"method": "turn/start"}), (False, piece), (False, piece), (False, {"result": 1})):
        kept.words.note_line(turn, 1.0, ours, message)
    kept.words.settle()
    assert [(line.ours, line.method, said(line.text)) for line in turn.lines] == [
        (True, "turn/start", None), (False, "item/delta", "aa"), (False, None, None),
    ]  # fmt: skip


def test_a_piece_that_goes_on_is_whole_once_somebody_looks() -> None:
    kept = Kept()
    turn = kept.words.note_asked(PROMPT, 0.0)
    kept.words.note_heard(turn, [TextPiece("one "), TextPiece("two")], 1.0)
    kept.words.note_heard(turn, [TextPiece(" three")], 1.0)
    kept.words.settle()
    assert turn.told == [(1.0, TextPiece("one two three"))]


def test_what_small_pieces_take_is_counted_together_and_soon() -> None:
    kept = Kept()
    turn = kept.words.note_asked(PROMPT, 0.0)
    pieces = 50_000
    for _ in range(pieces):
        kept.words.note_heard(turn, [TextPiece("x")], 1.0)
        kept.words.note_left([delta("x")], 1.0)
    assert 2 * (pieces - PIECE) - COUNTED_TOGETHER < sum(kept.grew)
    assert len(kept.grew) < pieces / PIECE


@given(st.lists(st.text(max_size=3), max_size=3 * JOINED), st.sampled_from(["", "\ud83d"]))
def test_text_is_joined_as_it_came_half_an_emoji_too(texts: list[str], half: str) -> None:
    kept = Kept()
    kept.words.note_left(map(delta, ["", *texts, half]), 1.0)
    assert [said(row.text) for row in kept.words.left] == ["".join(texts) + half]


def test_a_turn_says_how_it_ended() -> None:
    broken, left = HeardTurn(PROMPT, 0.0), HeardTurn(PROMPT, 0.0)
    with pytest.raises(BackendError), broken.until_over():
        raise BackendError("It broke.")
    with left.until_over():
        pass
    assert (str(broken.error), broken.left_early) == ("It broke.", False)
    assert (left.error, left.left_early) == (None, True)
    assert left.over > 0.0
    left.read_to_its_end = True
    assert not left.left_early
