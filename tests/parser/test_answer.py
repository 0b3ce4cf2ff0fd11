from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parser import (
    BARE_ANSWERS,
    HEADED_ANSWERS,
    AnswerParser,
    CallCompleted,
    ParserEvent,
    Rule,
    StrayCloser,
    Tier,
    Tool,
    ToolRegistry,
)
from parser.openers import HARMLESS, MAX_FRAME_CHARS
from tests.parser.reading import Answer, answer_of, arguments_told, completed, cut, merged, outside, read, received

REGISTRY = ToolRegistry([Tool("read_note"), Tool("get_time")])
BODY = '{"name": "read_note", "arguments": {"path": "a.md"}}'
TAGGED = f"<tool_call>{BODY}</tool_call>"
NOTE = ("read_note", '{"path": "a.md"}')


def bare(pieces: list[str], *, max_chars: int = 10_000) -> list[ParserEvent]:
    return read(pieces, AnswerParser(REGISTRY, BARE_ANSWERS, max_chars=max_chars))


CALLS = {
    "bare": (BODY, ["bare-answer"]),
    "white space round it": (f"\n {BODY}\n\n", ["bare-answer"]),
    "on lines": ('{\n  "name": "read_note",\n  "arguments": {"path": "a.md"}\n}', ["bare-answer"]),
    "arguments first": ('{"arguments": {"path": "a.md"}, "name": "read_note"}', ["bare-answer"]),
    "arguments in a string": (r'{"name": "read_note", "arguments": "{\"path\": \"a.md\"}"}', ["bare-answer"]),
    "an id": ('{"id": "c1", "type": "function", "name": "read_note", "arguments": {"path": "a.md"}}', ["bare-answer"]),
    "an id that is null": ('{"id": null, "name": "read_note", "arguments": {"path": "a.md"}}', ["bare-answer"]),
    "parameters": ('{"name": "read_note", "parameters": {"path": "a.md"}}', ["bare-answer alias-keys"]),
    "nested": (f'{{"type": "function", "function": {BODY}}}', ["bare-answer nested-call"]),
    "fenced": (f"```json\n{BODY}\n```\n", ["bare-answer fenced-answer"]),
    "fenced with tildes": (f"~~~~\n{BODY}\n~~~~", ["bare-answer fenced-answer"]),
}  # fmt: skip


def every_size(text: str) -> list[list[ParserEvent]]:
    return [bare(cut(text, size)) for size in (1, 3, 7, 0)]


@pytest.mark.parametrize(("text", "rules"), CALLS.values(), ids=CALLS)
def test_an_answer_that_is_nothing_but_a_call_is_that_call(text: str, rules: list[str]) -> None:
    for events in every_size(text):
        assert answer_of(events) == Answer("", [NOTE], "repaired")
        [call] = completed(events)
        assert call.tier is Tier.BARE
        assert [" ".join(call.repairs)] == rules
        assert received(events) == text
        assert arguments_told(events) == {0: call.arguments}
        assert call.id == ("c1" if '"c1"' in text else None)


@pytest.mark.parametrize("arguments", ['{"path": "a.md", "path": "b.md"}', r'{"path": "\ud800"}'])
def test_a_call_that_readers_take_differently_is_none(arguments: str) -> None:
    text = f'{{"name": "read_note", "arguments": {arguments}}}'
    for events in every_size(text):
        assert answer_of(events) == Answer(text, [], "ok")


@pytest.mark.parametrize("text", [*(text for text, _ in CALLS.values()), "So.", f"So: {TAGGED}"])
def test_arguments_that_are_not_wanted_are_not_told(text: str) -> None:
    for size in (1, 3, 7, 0):
        silent = read(cut(text, size), AnswerParser(REGISTRY, BARE_ANSWERS, arguments=False))
        assert merged(silent) == merged(outside(bare(cut(text, size))))
        assert not any(arguments_told(silent).values())


@pytest.mark.parametrize("header", ["[tool_call] ", "[tool:call_2] ", "\n[tool:call_2]\n"])
def test_where_only_a_header_makes_a_call_of_an_answer(header: str) -> None:
    for size in (1, 3, 7, 0):
        events = read(cut(f"{header}{BODY}\n", size), AnswerParser(REGISTRY, HEADED_ANSWERS))
        assert answer_of(events) == Answer("", [NOTE], "repaired")
        [call] = completed(events)
        assert (call.tier, call.repairs) == (Tier.BARE, ("headed-answer",))
        for text in (BODY, f"```\n{BODY}\n```", f"{header}{BODY}\nSo.", f"So.\n{header}{BODY}", f"{header}off", header):
            found = read(cut(text, size), AnswerParser(REGISTRY, HEADED_ANSWERS))
            assert merged(found) == merged(read([text]))


NO_CALLS = {
    "nothing": "",
    "prose": "Hello.",
    "white space": " \n ",
    "prose before": f"I call: {BODY}",
    "prose after": f"{BODY}\nThat reads it.",
    "prose after a fence": f"```json\n{BODY}\n```\nThat reads it.",
    "prose before a fence": f"So:\n```json\n{BODY}\n```",
    "tags in a fence": f"```\n{TAGGED}\n```",
    "two objects": BODY + BODY,
    "an array": f"[{BODY}]",
    "no such tool": '{"name": "delete_note", "arguments": {}}',
    "an object that is none": '{"title": "A", "body": "b"}',
    "a person": '{"name": "read_note", "age": 5}',
    "no arguments": '{"name": "get_time"}',
    "arguments that are null": '{"name": "get_time", "arguments": null}',
    "arguments that are a list": '{"name": "read_note", "arguments": ["a.md"]}',
    "another member": '{"name": "read_note", "arguments": {}, "comment": "x"}',
    "a key twice": '{"name": "read_note", "name": "get_time", "arguments": {}}',
    "JSON with a fault": '{"name": "read_note", "arguments": {"path": "a.md",}}',
    "a comma in front": '{, "name": "read_note", "arguments": {}}',
    "no comma between": '{"name": "read_note" "arguments": {}}',
    "cut off": BODY[:-1],
    "a fence that does not end": f"```json\n{BODY}",
    "a fence that ends short": f"````json\n{BODY}\n```",
    "a second fence": f"```\n{BODY}\n```\n```\n{BODY}\n```",
    "inline code": f"`{BODY}`",
    "nested too deep": '{"name": "read_note", "arguments": {"a": ' + "[" * 70 + "]" * 70 + "}}",
}


@pytest.mark.parametrize("text", NO_CALLS.values(), ids=NO_CALLS)
def test_any_other_answer_is_read_as_ever(text: str) -> None:
    for size in (1, 3, 7, 0):
        assert merged(bare(cut(text, size))) == merged(read([text]))


@pytest.mark.parametrize(
    "text", [TAGGED, f"I look.\n{TAGGED}", f"{TAGGED}\n```\nx\n```", f"```\n{BODY}\n```\n{TAGGED}"]
)
def test_a_tagged_call_is_read_as_ever(text: str) -> None:
    for size in (1, 3, 7, 0):
        assert merged(bare(cut(text, size))) == merged(read([text]))


@pytest.mark.parametrize(
    ("held", "then"),
    [("", "H"), ("{", '"title":'), ('{"name": ', "{"), ('{"name": "read_note", "arguments": ', "x"),
     ('{"name": "delete', '_note"'), (BODY, "x"), ("```json\n", "x"), ("```", " see"), ("```\n", "<tool_call>"),
     ('{"name": "read_note", "arguments": {"a": ', "x")],
)  # fmt: skip
def test_text_is_held_back_only_while_it_can_be_a_call(held: str, then: str) -> None:
    parser = AnswerParser(REGISTRY, BARE_ANSWERS)
    assert parser.receive_text(held) == []
    parser.receive_text(f"{then} ")
    said = parser.receive_text("and so on")
    assert "and so on" in received(said)


def test_what_is_held_back_has_a_limit() -> None:
    text = '{"name": "read_note", "arguments": {"path": "' + "x" * 200 + '"}}'
    for size in (1, 7, 0):
        assert answer_of(bare(cut(text, size), max_chars=100)) == Answer(text, [], "ok")
    for text in (
        " " * (MAX_FRAME_CHARS + 1) + BODY,
        BODY + " " * (MAX_FRAME_CHARS + 1),
        f"```{'x' * 2000}\n{BODY}\n```",
    ):
        for size in (1, 7, 0):
            assert answer_of(bare(cut(text, size))).calls == []


def test_white_space_round_it_may_be_as_long_as_is_waited_for() -> None:
    for text in (" " * MAX_FRAME_CHARS + BODY, BODY + " " * MAX_FRAME_CHARS):
        for events in every_size(text):
            assert answer_of(events) == Answer("", [NOTE], "repaired")


def test_a_near_name_is_good_enough() -> None:
    [call] = completed(bare(['{"name": "functions.readNote", "arguments": {}}']))
    assert call.name == "functions.readNote"


def test_text_after_the_end_is_a_mistake_of_the_caller() -> None:
    for text in ("", BODY, "Hello."):
        parser = AnswerParser(REGISTRY, BARE_ANSWERS)
        parser.receive_text(text)
        parser.receive_eof()
        with pytest.raises(RuntimeError):
            parser.receive_text("x")
        with pytest.raises(RuntimeError):
            parser.receive_eof()


PIECES = st.sampled_from(
    ["```", "```json\n", "~~~", "\n", " ", "{", "}", '"name"', ":", '"read_note"', ",", '"arguments"', "{}", BODY,
     TAGGED, "<tool_call>", "</tool_call>", "words", '"title": 1', "[tool:x] y",
     '{"name": "read_note", "arguments": {"a": "']
)  # fmt: skip


@given(st.lists(PIECES, max_size=8).map("".join), st.lists(st.integers(0, 200), max_size=6))
@settings(max_examples=4 * settings().max_examples)
def test_how_the_text_is_cut_does_not_show_and_nothing_is_lost(text: str, cuts: list[int]) -> None:
    bounds = [0, *sorted(at for at in cuts if at <= len(text)), len(text)]
    events = bare([text[start:end] for start, end in itertools.pairwise(bounds)])
    assert merged(events) == merged(bare([text]))
    told = received(events)
    assert text.startswith(told)
    if lost := text[len(told) :]:
        assert lost.isspace()
        assert isinstance(events[-1], CallCompleted | StrayCloser)


# Rules of the shape that say too little of an object without tags: arguments are missing, or it is a wrapper of others.
NOT_HARMLESS = {
    Rule.ARRAY_OF_CALLS, Rule.WRAPPER_OBJECT, Rule.MISSING_ARGUMENTS, Rule.NULL_ARGUMENTS, Rule.EMPTY_ARGUMENTS,
    Rule.DOUBLE_ENCODED,
}  # fmt: skip


def test_of_each_rule_of_the_shape_it_is_decided_whether_it_helps_without_tags() -> None:
    """A new one belongs to `HARMLESS`, or here."""
    assert {*list(Rule)[list(Rule).index(Rule.ARRAY_OF_CALLS) :]} == HARMLESS | NOT_HARMLESS
