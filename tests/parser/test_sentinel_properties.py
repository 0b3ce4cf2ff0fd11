"""What holds for every text, however it is cut."""

from __future__ import annotations

import itertools
import json
import sys
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parser import (
    CallCompleted,
    CallStarted,
    ReadingEnded,
    SentinelParser,
    StrayCloser,
    write_call,
)
from parser.body import MAX_OPENING_CHARS, MAX_TAIL_CHARS
from parser.prose import MAX_HELD_BLANK
from parser.sentinel import MAX_PIECE
from tests.parser.reading import NAMES, arguments_told, completed, cut, merged, outside, read, received
from tests.support.cpu_time import any_round, cpu_seconds

CALL = '{"name": "read_note", "arguments": {"path": "a.md"}}'

# Pieces that meet each other badly: every state of the parser can be reached by joining some of them.
FRAGMENTS = st.sampled_from(
    [
        '<tool_call>{"name": "x", "arguments": {"a": "',
        "<tool_call>", "</tool_call>", "<TOOL_CALL >", "</tool_call ", "<tool_", "<", "</", ">", "<think>", "</think>",
        "<tool_response>", "[tool:call_1] x", "\n", "\r\n", " ", "   ", "`", "```", "~~~", "````json\n", "\\", '"', "'",
        "{", "}", "[", "]", ",", ":", "//", "/*", "*/", "1", "-0.5e+3", "9" * 40, "true", "True", "None", "nul",
        '"name"', '"arguments"', '"parameters"', '"id": "c1"', '{"name": "x", "arguments": ', '{"a": "b"}',
        "...", "<name>", "{{ .X }}", '{"name": "...", "arguments": {...}}', "So: ",
        CALL, f"<tool_call>{CALL}</tool_call>", f"<tool_call>\n[{CALL}, {CALL}]\n</tool_call>", "'k': 'v'", "\\u00e9",
        "\\ud83d\\ude00", "\\ud83d", '\\"', "\x00", "\t", "é", "😀", "plain words ", "Now a < b.",
        '{"name": "x", "arguments": "{\\"a\\": \\"b\\\\n\\"}"}', "</tool>", "{{", "}}",
    ]
)  # fmt: skip
TEXTS = st.lists(FRAGMENTS | st.text(max_size=4), max_size=24).map("".join)
# Calls, and what makes a difference right beside them.
NEAR_CALLS = st.lists(
    st.sampled_from(
        [
            f"<tool_call>{CALL}</tool_call>", f"<tool_call>{CALL}", "</tool_call>", "</TOOL_CALL >", "</tool", "\n",
            " ", "\n[tool:x] y", "\n<tool_response>", "[too", "words",
        ]
    ),
    max_size=10,
).map("".join)  # fmt: skip


@st.composite
def cut_texts(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS) -> tuple[str, list[str]]:
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    bounds = [0, *cuts, len(text)]
    return text, [text[start:end] for start, end in itertools.pairwise(bounds)]


FAR_IN = " " * 40 + '<tool_call>"<tool_call>{{ .X }}'


@given(cut_texts(TEXTS | NEAR_CALLS))
@settings(max_examples=5 * settings().max_examples)
@example((FAR_IN, [FAR_IN]))
def test_how_the_text_is_cut_does_not_show(case: tuple[str, list[str]]) -> None:
    text, pieces = case
    whole = merged(read([text]))
    assert merged(read(pieces)) == whole
    assert merged(read(cut(text, 1))) == whole


@given(cut_texts(TEXTS | NEAR_CALLS))
@settings(max_examples=5 * settings().max_examples)
@example(("<tool_call>{]}</tool_call>", ["<tool_call>{]}</tool_call>"]))
def test_nothing_is_lost_but_white_space_after_the_last_call(case: tuple[str, list[str]]) -> None:
    text, pieces = case
    events = read(pieces)
    told = received(events)
    assert text.startswith(told)
    if lost := text[len(told) :]:
        assert lost.isspace()
        assert isinstance(events[-1], CallCompleted | StrayCloser)


@pytest.mark.parametrize("size", [1, 100, MAX_PIECE, 0])
def test_all_that_follows_a_made_up_result_is_handed_back(size: int) -> None:
    rest = "\n [tool:call_1] x\n" + "And so on. " * 3 * MAX_PIECE
    events = read(cut(f"<tool_call>{CALL}</tool_call>{rest}", size))
    assert events[-1] == ReadingEnded("the answer goes on with a result of its own call", rest)


@given(cut_texts())
@settings(max_examples=3 * settings().max_examples)
def test_every_call_is_started_then_told_then_ended_once(case: tuple[str, list[str]]) -> None:
    events = read(case[1])  # which checks it
    told = arguments_told(events)
    assert [told[call.index] for call in completed(events)] == [call.arguments for call in completed(events)]


@given(cut_texts())
@settings(max_examples=3 * settings().max_examples)
def test_arguments_that_are_not_wanted_are_not_told_and_nothing_else_differs(case: tuple[str, list[str]]) -> None:
    silent = read(case[1], SentinelParser(arguments=False))
    assert not any(arguments_told(silent).values())
    assert merged(silent) == merged(outside(read(case[1])))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(NAMES, st.dictionaries(st.text(), JSON, max_size=4), st.booleans(), st.none() | st.text(), st.integers(0, 9))
def test_what_is_written_is_what_is_read(
    name: str, arguments: dict[str, object], ascii_only: bool, key: str | None, size: int
) -> None:
    text = json.dumps(arguments, ensure_ascii=ascii_only)
    written = write_call(name, text, key=key)
    extra = () if key is None else (("key", json.dumps(key)),)
    assert merged(read(cut(written, size))) == [
        CallStarted(0, name, None, extra),
        text,
        CallCompleted(0, name, text, None, written, extra=extra),
    ]


@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans(), st.integers(0, 9))
def test_arguments_in_a_string_are_told_as_their_own_text(
    arguments: dict[str, object], ascii_only: bool, size: int
) -> None:
    text = json.dumps(arguments, ensure_ascii=ascii_only)
    written = write_call("x", json.dumps(text, ensure_ascii=ascii_only))
    assert merged(read(cut(written, size))) == [
        CallStarted(0, "x", None),
        text,
        CallCompleted(0, "x", text, None, written),
    ]


@given(NAMES, st.dictionaries(st.text(), JSON, max_size=4))
def test_arguments_leave_in_the_delta_that_brings_them(name: str, arguments: dict[str, object]) -> None:
    text = json.dumps(arguments)
    written = write_call(name, text)
    start = written.index('"arguments": ') + len('"arguments": ') if '"arguments": ' in written else 0
    start = len(written) - len("}</tool_call>") - len(text)
    parser = SentinelParser()
    told = 0
    for at, char in enumerate(written):
        told += sum(len(event) for event in parser.receive_text(char) if isinstance(event, str))
        # One token: an escape, a number or literal, or a comma with the blank after it.
        behind = at + 1 - start - told
        if 0 <= at - start < len(text):
            assert text[told : told + behind].strip(", ").count(" ") == 0
            assert behind <= max([12, *(len(str(token)) + 3 for token in _scalars(arguments))])


def _scalars(value: object) -> list[object]:
    match value:
        case dict():
            return [scalar for inner in value.values() for scalar in _scalars(inner)]
        case list():
            return [scalar for inner in value for scalar in _scalars(inner)]
        case str():
            return []
        case _:
            return [value]


def test_prose_is_held_back_only_while_it_may_be_a_tag() -> None:
    text = "Some words. a <tool_call b <think c <d `e` ~f~ [tool: g <tool_response </tool_call> <tool_cal"
    parser = SentinelParser()
    said = 0
    for at, char in enumerate(text, 1):
        said += len(received(parser.receive_text(char)))
        assert at - said <= len("<tool_call" + 4 * " ")


@given(TEXTS.map(lambda text: text * 20), st.integers(1, 9))
def test_what_is_held_back_has_a_limit(text: str, size: int) -> None:
    parser = SentinelParser(max_call_chars=500)
    limit = 500 + MAX_OPENING_CHARS + MAX_TAIL_CHARS + MAX_HELD_BLANK + size
    fed = told = 0
    for piece in cut(text, size):
        events = parser.receive_text(piece)
        if any(isinstance(event, ReadingEnded) for event in events):
            break
        fed += len(piece.replace(" ", "").replace("\n", "").replace("\r", "").replace("\t", ""))
        told += len("".join(received(events).split()))
        assert fed - told <= limit


@pytest.mark.parametrize(
    "text",
    [
        "Words of prose. ",
        "```\n`Much` code.\n```\n",
        "<think>A thought.\n",
        "a < b <tool_ <c [tool: x",
        f"<tool_call>{CALL}</tool_call>\nSo. ",
        "<tool_call>{]}</tool_call> ",
    ],
)
@pytest.mark.parametrize("size", [4, 1000])
def test_what_was_told_leaves_the_memory(text: str, size: int) -> None:
    pieces = cut(text * (200_000 // len(text)), size)
    parser = SentinelParser()
    half = len(pieces) // 2
    for piece in pieces[:half]:
        parser.receive_text(piece)
    tracemalloc.start()
    try:
        for piece in pieces[half:]:
            parser.receive_text(piece)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 40_000


def test_words_behind_a_call_leave_the_memory() -> None:
    parser = SentinelParser()
    parser.receive_text(f"<tool_call>{CALL}</tool_call> So")
    tracemalloc.start()
    try:
        for number in range(10_000):
            parser.receive_text(f"{number:04}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000


def test_a_long_string_is_kept_once() -> None:
    pieces = cut('<tool_call>{"name": "x", "arguments": {"a": "' + "Words, words.\\n" * 20_000, 4)
    parser = SentinelParser()
    parser.receive_text(pieces[0])
    tracemalloc.start()
    try:
        for piece in pieces[1:]:
            parser.receive_text(piece)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1.5 * len("".join(pieces))


def seconds(text: str, size: int) -> float:
    pieces = cut(text, size)
    return cpu_seconds(lambda: read(pieces, SentinelParser()), rounds=2)


HARD = {
    "prose": "The quick brown fox. ",
    "less-than": "a < b <t <tool_ <tool_call ",
    "openers": "<tool_call>",
    "openers with space": "<tool_call>\n\n",
    "backticks": "`",
    "tildes and backticks": "~~~`` ",
    "white space": " ",
    "quotes in a call": '"a": "b", ',
    "braces": "{",
    "commas": ",",
    "digits": "1",
    "backslashes": "\\",
    "close tags": "</tool_call>",
    "brokenly closed": 'x}}\n</tool_call>\n<tool_call>{"name": "a", "arguments": {"p": "',
    "calls": f"<tool_call>{CALL}</tool_call>\n",
    "broken calls": "<tool_call>{]}</tool_call>\n",
}
HEADS = (
    "",
    "<tool_call>",
    '<tool_call>{"name": "a", "arguments": {"p": ',
    '<tool_call>{"name": "a", "arguments": {"p": "',
    '<tool_call>{"name": "a", "arguments": "',
    "<tool_call>[",
    "<tool_call>{'a': '",
    "<think>",
    f"<tool_call>{CALL}</tool_call>",
    f"<tool_call>{CALL}",
    '<tool_call>{"name": "a"}',
    f"<tool_call>[{CALL}]",
)


@pytest.mark.growth
@pytest.mark.parametrize("size", [4, 0])
def test_time_grows_with_the_length_alone(size: int) -> None:
    """Ten times the text takes far less than a hundred times the time."""
    for head in HEADS:
        for what, unit in HARD.items():
            small, large = (head + unit * (length // len(unit)) for length in (2_000, 20_000))
            for each in any_round():
                with each:
                    assert seconds(large, size) < 35 * max(seconds(small, size), 3e-4), (head, what)


def steps(text: str, size: int) -> int:
    """Functions that are called while it is read, of Python's and of ours."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    parser, pieces = SentinelParser(), cut(text, size)
    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        for piece in pieces:
            parser.receive_text(piece)
        parser.receive_eof()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("unit", ["<tool_call>", "<tool_call> is ", "<tool_call>{", "<tool_call>\n", "</tool_call>"])
@pytest.mark.parametrize("size", [4, 0])
def test_steps_grow_with_the_number_of_tags_alone(unit: str, size: int) -> None:
    assert steps(unit * 4_000, size) < 4.4 * steps(unit * 1_000, size)
