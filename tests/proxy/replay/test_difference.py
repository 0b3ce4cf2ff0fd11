"""How differences read."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.answers import FixtureBody, FixtureEvent, FixtureStream
from proxy.replay.difference import differences

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def stream(*events: tuple[str, object]) -> FixtureStream:
    return FixtureStream(tuple(FixtureEvent(name, data) for name, data in events))


def test_a_member_is_told_with_its_path() -> None:
    one, other = ({"output": [{"text": text}], "same": 1} for text in ("north", "south"))
    assert differences(FixtureBody(200, {}, one), FixtureBody(200, {}, other)) == [
        "body.output[0].text",
        '- "north"',
        '+ "south"',
    ]


def test_a_long_text_is_shown_where_it_differs() -> None:
    lines = differences(FixtureBody(200, {}, "x" * 500 + "a"), FixtureBody(200, {}, "x" * 500 + "b"))
    assert lines == ["body", f'- ...{"x" * 30}a"', f'+ ...{"x" * 30}b"']


def test_members_that_only_one_has_are_absent_in_the_other() -> None:
    assert differences(FixtureBody(200, {}, {"a": 1}), FixtureBody(200, {}, {"b": 1})) == [
        "body.a", "- 1", "+ (absent)", "body.b", "- (absent)", "+ 1",
    ]  # fmt: skip


def test_events_are_laid_beside_those_of_their_kind() -> None:
    wanted = stream(("start", {"n": 0}), ("delta", {"text": "a"}), ("end", {}))
    came = stream(("start", {"n": 0}), ("delta", {"text": "b"}), ("more", {"x": 1}), ("end", {}))
    assert differences(wanted, came) == [
        "event 2, delta",
        "  text",
        '  - "a"',
        '  + "b"',
        '+ event 3, more {"x": 1}',
    ]


def test_a_stream_and_an_error_are_told_as_what_they_are() -> None:
    assert differences(stream(("start", {})), FixtureBody(400, {}, {"error": "no"})) == [
        "- a stream of 1 events",
        '+ status 400: {"error": "no"}',
    ]


def test_an_error_is_told_in_its_whole_sentence_and_not_member_by_member() -> None:
    sentence = f"No fixture answers this turn. {'The nearest is another. ' * 9}"
    error = FixtureBody(400, {"x-should-retry": "false"}, {"error": {"message": sentence, "code": None}})
    answer = FixtureBody(200, {}, {"id": "resp_1", "output": []})
    assert differences(answer, error) == ['- status 200: {"id": "resp_1", "output": []}', f"+ status 400: {sentence}"]
    assert differences(stream(("start", {})), error)[1] == f"+ status 400: {sentence}"


def test_true_is_not_one() -> None:
    assert differences(FixtureBody(200, {}, True), FixtureBody(200, {}, 1)) == ["body", "- true", "+ 1"]


def test_status_and_headers_count() -> None:
    lines = differences(FixtureBody(429, {"retry-after": "1"}, {}), FixtureBody(503, {}, {}))
    assert lines[:3] == ["status", "- 429", "+ 503"]
    assert "headers.retry-after" in lines


@given(JSON, JSON)
def test_there_are_differences_exactly_where_two_answers_differ(one: object, other: object) -> None:
    lines = differences(FixtureBody(200, {}, one), FixtureBody(200, {}, other))
    assert bool(lines) == (json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))
    assert not differences(stream(("a", one)), stream(("a", one)))


def test_a_changed_word_is_told_once_however_often_a_stream_says_it() -> None:
    def answer(text: str) -> FixtureStream:
        message = {"content": [{"text": text}]}
        return stream(("delta", {"delta": text}), ("done", {"text": text}), ("completed", {"output": [message]}))

    assert differences(answer("I planted garlic."), answer("I planted onions.")) == [
        "event 1, delta",
        "  delta",
        '  - "I planted garlic."',
        '  + "I planted onions."',
        "and the same in 2 more places",
    ]


def test_what_is_told_once_more_is_one_place_more() -> None:
    one, other = (stream(("delta", {"delta": text}), ("done", {"text": text})) for text in ("north", "south"))
    assert differences(one, other)[-1] == "and the same in 1 more place"


def test_a_long_stream_of_equal_events_is_told_by_the_one_that_differs() -> None:
    same = [("delta", {"delta": "x"})] * 150
    wanted, came = stream(*same, *same), stream(*same, ("more", {}), *same)
    assert differences(wanted, came) == ["+ event 151, more {}"]


def test_an_event_more_is_no_difference_of_those_behind_it() -> None:
    wanted = stream(*((name, {"sequence_number": at}) for at, name in enumerate(("start", "end"))))
    came = stream(*((name, {"sequence_number": at}) for at, name in enumerate(("start", "more", "end"))))
    assert [line.partition(" {")[0] for line in differences(wanted, came)] == ["+ event 2, more"]
    astray = stream(("start", {"sequence_number": 0}), ("end", {"sequence_number": 2}))
    assert differences(wanted, astray) == ["event 2, end", "  sequence_number", "  - 1", "  + 2"]
