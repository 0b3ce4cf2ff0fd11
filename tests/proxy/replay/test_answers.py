"""Answers, and their files."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from proxy.replay.answers import FixtureBody, FixtureEvent, FixtureStream, load_answer, read_events, without_comments
from proxy.replay.fixture import FixtureError
from proxy.wire.sse import DONE, KEEP_ALIVE, encode_typed

DELTA = {"type": "delta", "delta": ": no\n\n: comment"}


def test_signs_of_life_are_left_out() -> None:
    data = KEEP_ALIVE + b"".join(encode_typed([DELTA])) + KEEP_ALIVE + DONE
    assert [event.data for event in read_events(without_comments(data))] == [DELTA, "[DONE]"]


@pytest.mark.parametrize(
    "answer",
    [
        FixtureStream((FixtureEvent("delta", DELTA),)),
        FixtureStream((FixtureEvent(None, {"id": "x"}), FixtureEvent(None, "[DONE]"))),
        FixtureBody(429, {"retry-after": "1"}, {}),
    ],
)
def test_a_file_is_read_as_it_was_written(answer: FixtureStream | FixtureBody, tmp_path: Path) -> None:
    name = "response.sse" if isinstance(answer, FixtureStream) else "response.json"
    (tmp_path / name).write_bytes(answer.encode())
    assert load_answer(tmp_path) == answer


def test_a_fixture_may_promise_nothing(tmp_path: Path) -> None:
    assert load_answer(tmp_path) is None


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("response.sse", b"hello", "response.sse is not an event stream: no line of an event: 'hello'."),
        ("response.sse", b"data: {\n\n", "response.sse is not an event stream"),
        ("response.json", b"{", "response.json is not JSON"),
        ("response.json", orjson.dumps({"status": "200"}), 'response.json is not {"status": number'),
    ],
)
def test_damage_is_told_in_one_sentence(tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FixtureError) as caught:
        load_answer(tmp_path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
