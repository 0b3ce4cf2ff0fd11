"""The fixture format, and the sentences on damaged fixtures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.asks import Ask, Seen
from proxy.replay.fixture import FixtureError, RecordedTurn, load_fixtures, load_request, parse_fixture
from tests.proxy.replay.child import (
    Message,
    answered,
    asked,
    counted,
    injected,
    item,
    jsonl,
    said,
    shown,
    write_fixture,
)


def sentence_on(data: bytes) -> str:
    with pytest.raises(FixtureError) as caught:
        parse_fixture("case", data)
    return str(caught.value)


def turn_of(data: bytes) -> RecordedTurn:
    (turn,) = parse_fixture("case", data).turns
    return turn


def methods(data: bytes) -> list[object]:
    return [step.message["method"] for step in turn_of(data).steps]


def test_a_recorded_turn_is_asked_for_by_its_input() -> None:
    turn = turn_of(jsonl([asked("hi"), *answered(["Hel", "lo"])]))
    assert turn.ask == Ask("hi", seen=Seen(shown("hi")))
    assert (turn.thread_id, turn.turn_id, turn.interrupted) == ("T", "U", False)


def test_the_ask_of_the_first_line_goes_before_the_input() -> None:
    data = jsonl([asked("hi"), *answered(["Hello"])], ask={"last_user": "ho", "after_tools": ["search"]})
    assert turn_of(data).ask == Ask("ho", ("search",), seen=Seen(shown("hi")))


def test_a_fixture_with_an_ask_needs_no_turn_start() -> None:
    turn = turn_of(jsonl(answered(["Hello"], at=5.0), model="m", ask={"last_user": "hi", "with_tools": True}))
    assert turn.ask == Ask("hi", model="m", with_tools=True)
    assert turn.steps[0].at == 0.0


def test_time_runs_from_the_start_of_the_turn() -> None:
    turn = turn_of(jsonl([asked("hi", at=2.0), *answered(["Hello"], at=3.5)]))
    assert {step.at for step in turn.steps} == {1.5}


def test_a_request_that_was_asked_again_has_a_turn_for_each_attempt() -> None:
    again = [asked("hi\n\nTry again."), *answered(["Better"])]
    for line in again:
        line["msg"]["params"]["threadId"] = "T2"
    first = answered(["Bad"])
    lines = [asked("hi"), *first[:-1], *again, first[-1]]
    turns = parse_fixture("case", jsonl(lines, ask={"last_user": "hi"})).turns
    assert [(turn.thread_id, turn.ask.last_user, len(turn.steps)) for turn in turns] == [
        ("T", "hi", 4),
        ("T2", "hi", 4),
    ]


def test_a_turn_asks_what_its_thread_holds() -> None:
    question, call = item("user", "Where are the beans?"), '<tool_call>{"name": "search", "arguments": {}}</tool_call>'
    turn = turn_of(jsonl([injected(question, item("assistant", call)), asked("[tool:c1] North."), *answered(["x"])]))
    assert (turn.ask.last_user, turn.ask.after_tools) == ("Where are the beans?", ("search",))


def test_a_turn_without_input_asks_what_was_injected() -> None:
    opening = asked("")
    opening["msg"]["params"]["input"] = []
    turn = turn_of(jsonl([injected(item("user", "hi")), opening, *answered(["x"])]))
    assert turn.ask == Ask("hi", seen=Seen(shown("hi")))


def test_a_later_turn_of_a_thread_asks_with_the_earlier_ones() -> None:
    call = '<tool_call>{"name": "search", "arguments": {}}</tool_call>'
    lines = [asked("hi"), *answered([call[:20], call[20:]]), asked("[tool:c1] North."), *answered(["Hello"])]
    first, second = parse_fixture("case", jsonl(lines)).turns
    assert (first.ask.last_user, first.ask.after_tools) == ("hi", ())
    assert (second.ask.last_user, second.ask.after_tools) == ("hi", ("search",))
    assert second.ask.seen is not None
    assert len(second.ask.seen.messages) == 3


def test_the_tokens_of_a_turn_are_its_own() -> None:
    first, second = answered(["a"]), answered(["b"])
    lines = [asked("hi"), *first[:-1], counted(10, 10), first[-1]]
    lines += [asked("ho"), *second[:-1], counted(7, 17), second[-1]]
    totals = [
        step.message["params"]["tokenUsage"]["total"]  # type: ignore[index]  # as `counted` wrote it
        for turn in parse_fixture("case", jsonl(lines)).turns
        for step in turn.steps
        if step.message["method"] == "thread/tokenUsage/updated"
    ]
    assert totals == [{"totalTokens": 10, "inputTokens": 10}, {"totalTokens": 7, "inputTokens": 7}]


def test_a_turn_that_the_proxy_left_is_known() -> None:
    lines = [asked("hi"), *answered(["Hello"])]
    interrupt = {"id": 4, "method": "turn/interrupt", "params": {"threadId": "T", "turnId": "U"}}
    lines.insert(3, {"t": 0.0, "dir": "client", "msg": interrupt})
    assert turn_of(jsonl(lines)).interrupted
    assert "turn/interrupt" not in methods(jsonl(lines))


def test_a_text_that_its_deltas_contradict_is_told_with_its_line() -> None:
    lines = [asked("hi"), *answered(["Hel", "lo, you"])]
    lines[-2]["msg"]["params"]["item"]["text"] = "Hello, all"
    assert sentence_on(jsonl(lines)) == (
        'line 7: at character 8 the text has "all", and its deltas have "you": '
        "write it in both, or take out the deltas."
    )


@pytest.mark.parametrize("whole", ["", "Hello", "Hello again"])
def test_a_text_that_goes_on_behind_its_deltas_or_is_left_out_contradicts_nothing(whole: str) -> None:
    lines = [asked("hi"), *answered(["Hel", "lo"])]
    lines[-2]["msg"]["params"]["item"]["text"] = whole
    assert len(methods(jsonl(lines))) == 5


@pytest.mark.parametrize(
    "again",
    [
        said(0.0, "error", turnId="U", willRetry=True, error={"message": "lost"}),
        said(0.0, "item/started", turnId="U", item={"type": "agentMessage", "id": "I", "text": ""}),
    ],
)
def test_a_message_that_is_begun_again_is_compared_with_its_own_deltas(again: Message) -> None:
    lines = [asked("hi"), *answered(["Hel", "lo"])]
    lines[3:3] = [said(0.0, "item/agentMessage/delta", turnId="U", itemId="I", delta="Broken"), again]
    assert len(methods(jsonl(lines))) == 7


def test_unknown_members_of_the_first_line_are_kept() -> None:
    fixture = parse_fixture("case", jsonl(answered(["x"]), ask={"last_user": "hi"}, model="gpt-x", recorded="today"))
    assert fixture.meta["recorded"] == "today"
    assert fixture.model == "gpt-x"
    assert fixture.path == "/v1/responses"


def test_only_the_turn_itself_is_played() -> None:
    handshake: Message = {"t": 0.0, "dir": "client", "msg": {"id": 1, "method": "initialize", "params": {}}}
    answer: Message = {"t": 0.0, "dir": "server", "msg": {"id": 3, "result": {"turn": {"id": "U"}}}}
    stranger = said(0.0, "turn/completed", turn={"id": "U"})
    stranger["msg"]["params"]["threadId"] = "other"
    echo = said(0.0, "item/started", turnId="U", item={"type": "userMessage", "id": "u1"})
    data = jsonl([handshake, asked("hi"), answer, stranger, echo, *answered(["Hello"]), said(9.0, "warning")])
    assert methods(data) == ["item/started", "item/agentMessage/delta", "item/completed", "turn/completed"]


def test_empty_lines_may_part_the_others() -> None:
    data = jsonl([asked("hi"), *answered(["Hello"])])
    assert methods(data.replace(b"\n", b"\n\r\n\n")) == methods(data)


BAD_ASK = 'its "ask" is not {"last_user": text, "after_tools": [names], "with_tools": true or false}.'
DAMAGED: list[tuple[bytes, str]] = [
    (b"\n \n", "the file is empty."),
    (b"[]\n", "line 1 is not a JSON object."),
    (b'{"t": 0}\n', 'its first line is not {"tagcall_fixture": 1, ...}.'),
    (b'{"tagcall_fixture": 2}\n', "it is of format 2; this tagcall reads format 1."),
    (jsonl([]) + b'{"t": 0,', "line 2 is not JSON: unexpected end of data (column 9)."),
    (jsonl([{"t": 0}]), 'line 2 is not {"t": seconds, "dir": "client" or "server", "msg": {...}}.'),
    (
        jsonl(answered(["x"]), ask={"last_user": "hi"}, path=1),
        'its "path" is not the path of a request, as "/v1/responses".',
    ),
    (
        jsonl(answered(["x"]), ask={"last_user": "hi"}, key_habit="often"),
        'its "key_habit" is not one of unknown, writes, never.',
    ),
    (
        jsonl(answered(["x"]), ask={"last_user": "hi"}, settings={"calls": 1}),
        'its "settings" are not {"name": text, true or false}.',
    ),
    (jsonl(answered(["x"])), 'it has neither a turn/start line nor an "ask" in its first line.'),
    (jsonl([], ask={"user": "hi"}), BAD_ASK),
    (jsonl([], ask={"last_user": "hi", "after_tools": [1]}), BAD_ASK),
    (
        jsonl([asked("hi"), *answered(["x"])[:-1]]),
        "it has no turn/completed that names its thread and turn; is the recording cut off?",
    ),
]


@pytest.mark.parametrize(("data", "sentence"), DAMAGED, ids=[sentence[:30] for _, sentence in DAMAGED])
def test_damage_is_told_in_one_sentence(data: bytes, sentence: str) -> None:
    assert sentence_on(data) == sentence


@given(st.binary() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(
    lambda value: jsonl([value], ask={"last_user": "hi"})
))  # fmt: skip
def test_no_bytes_do_worse_than_a_fixture_error(data: bytes) -> None:
    try:
        parse_fixture("case", data)
    except FixtureError as error:
        assert "\n" not in str(error)  # noqa: PT017  most of these bytes are refused, some may not be


def test_a_folder_gives_its_fixtures_by_name_and_skips_the_rest(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_fixture(tmp_path, name, [asked(name), *answered([name])])
    (tmp_path / "vault").mkdir()
    (tmp_path / "README.md").write_text("notes", encoding="utf-8")
    assert list(load_fixtures(tmp_path)) == ["a", "b"]


def test_what_is_still_being_written_is_no_fixture(tmp_path: Path) -> None:
    write_fixture(tmp_path, "a", [asked("hi"), *answered(["Hello"])])
    (tmp_path / ".b.unfinished").mkdir()
    (tmp_path / ".b.unfinished" / "backend.jsonl").write_text("{", encoding="utf-8")
    assert list(load_fixtures(tmp_path)) == ["a"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("{", "is not JSON: unexpected end of data (line 1, column 2)."), ("[]", "is not a JSON object.")],
)
def test_a_damaged_request_is_told(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "request.json").write_text(text, encoding="utf-8")
    with pytest.raises(FixtureError) as caught:
        load_request(tmp_path)
    assert str(caught.value) == f"{tmp_path / 'request.json'} {sentence}"


def test_a_single_fixture_is_a_folder_too(tmp_path: Path) -> None:
    write_fixture(tmp_path, "a", [asked("hi"), *answered(["Hello"])])
    assert list(load_fixtures(tmp_path / "a")) == ["a"]


def test_the_file_is_named_when_it_is_damaged(tmp_path: Path) -> None:
    write_fixture(tmp_path, "a", [])
    with pytest.raises(FixtureError, match=r"a/backend\.jsonl: it has neither"):
        load_fixtures(tmp_path)


def test_half_a_fixture_is_told(tmp_path: Path) -> None:
    write_fixture(tmp_path, "a", [asked("hi"), *answered(["Hello"])])
    (tmp_path / "b").mkdir()
    for file in ("request.json", "transcript.txt"):
        (tmp_path / "b" / file).write_text("{}", encoding="utf-8")
    with pytest.raises(FixtureError, match=r"b has no backend\.jsonl, which every fixture has"):
        load_fixtures(tmp_path)


def test_a_folder_with_one_file_of_those_names_is_none(tmp_path: Path) -> None:
    write_fixture(tmp_path, "a", [asked("hi"), *answered(["Hello"])])
    for name, file in (("b", "request.json"), ("c", "transcript.txt")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("{}", encoding="utf-8")
    assert list(load_fixtures(tmp_path)) == ["a"]


@pytest.mark.parametrize("model", ["gpt-x", None])
def test_a_turn_was_asked_of_the_model_that_its_first_line_names(model: str | None) -> None:
    named = {} if model is None else {"model": model}
    (turn,) = parse_fixture("case", jsonl([asked("hi"), *answered(["Hello"])], **named)).turns
    assert turn.ask.model == model


@pytest.mark.parametrize(("name", "sentence"), [("none", "There is no folder"), ("", "There is no fixture in")])
def test_a_folder_without_fixtures_is_told(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(FixtureError, match=sentence):
        load_fixtures(tmp_path / name)


def test_the_lines_of_a_fixture_may_be_written_by_hand_with_other_spacing() -> None:
    data = jsonl([asked("hi"), *answered(["Hello"])])
    spaced = b"\n".join(
        json.dumps(json.loads(line), indent=None, separators=(" , ", " : ")).encode() for line in data.splitlines()
    )
    assert parse_fixture("case", spaced) == parse_fixture("case", data)
