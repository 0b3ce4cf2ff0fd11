"""One answer, as it is read: what leaves while it comes, where it ends, and what is told of it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import ToolRegistry
from prompts import MASK
from proxy.contracts import (
    AnswerMessageEnded,
    AnswerText,
    BackendEvent,
    MessageEnded,
    MessagePhase,
    Prompt,
    Reasoning,
    ReasoningEnded,
    ReasoningItemEnded,
    ReasoningPiece,
    TextPiece,
    TurnEnded,
    TurnFinished,
)
from proxy.errors import BackendError
from proxy.tokens import CHARACTERS_PER_TOKEN
from proxy.turn import BlockNote, Fate, Reason, Ruling
from tests.support.memory_backend import USAGE, MemoryBackend, pieces

from .keyed import key_in
from .playing import BROKEN, READ_A, READ_B, TOOLS, UNDECLARED, ask, in_short, leaving, outcome_of, play
from .ways import AS_JSON, DEMANDED, EARLY, FREE, LIVE, Way

UNREADABLE = "A tool call was taken out, because it cannot be read."
END = AnswerMessageEnded()


async def test_text_leaves_as_it_comes_in_its_messages() -> None:
    found = await leaving("I ", "look.", MessageEnded(), "So: ", MessageEnded(), request=ask(registry=ToolRegistry()))
    assert [in_short(events) for events in found] == [["I "], ["look."], [], [END, "So: "], [], [END]]


async def test_a_batch_is_read_in_its_order() -> None:
    batch: list[BackendEvent] = [
        TextPiece("I "),
        TextPiece("look."),
        MessageEnded(),
        TextPiece("So: "),
        TextPiece("it is "),
        ReasoningPiece(0, "hm"),
        TextPiece("done."),
        TurnEnded(USAGE),
    ]
    request = ask(registry=ToolRegistry())
    outcome = await outcome_of(request, MemoryBackend([batch], at_once=True))
    assert list(outcome.events[:-1]) == [
        AnswerText("I look."), END, AnswerText("So: it is "), Reasoning(0, "hm"), AnswerText("done."),
    ]  # fmt: skip


@pytest.mark.parametrize("registry", [TOOLS, ToolRegistry()])
async def test_behind_a_stop_string_nothing_is_wanted_and_what_was_read_is_counted(registry: ToolRegistry) -> None:
    read = "x" * CHARACTERS_PER_TOKEN * 3
    outcome = await play(
        [TextPiece(f"{read}END and"), TextPiece(READ_A)], request=ask(registry=registry, stop=("END",))
    )
    assert (outcome.left, outcome.report.interrupted) == ([AnswerText(read)], "a stop string came")
    assert isinstance(outcome.end, TurnFinished)
    assert (outcome.end.stop, outcome.end.incomplete) == ("END", None)
    assert outcome.end.usage.output_tokens == len(f"{read}END and") // CHARACTERS_PER_TOKEN


CUT, GONE = TurnEnded(USAGE, "content_filter"), BackendError("gone")


@pytest.mark.parametrize("end", [CUT, GONE, TurnEnded(USAGE)], ids=["cut", "failed", "whole"])
@pytest.mark.parametrize(
    ("tag", "is_half"),
    [("<", False), ("<t", True), ("<tool_c", True), ("<tool_call", True), ("<tool_call>", True),
     ("<tool_call><func", True), ("<tool_call>\n<function=read_n", True), ("<tool_call> <b", False)],
)  # fmt: skip
async def test_half_a_tag_is_text_unless_the_answer_was_cut_in_it(
    tag: str, is_half: bool, end: TurnEnded | BackendError
) -> None:
    """One character of it may be any."""
    blocks: list[str] = []

    class Observer:
        def judged(self, note: BlockNote, block: str) -> None:
            blocks.append(block)

    outcome = await play([TextPiece(f"I use {tag}"), end], observer=Observer())
    out = is_half and not (isinstance(end, TurnEnded) and end.incomplete is None)
    assert outcome.text == ("I use " if out else f"I use {tag}")
    assert outcome.report.warnings == ([UNREADABLE] if out else [])
    assert outcome.counted == ({"taken_out": {"block": 1}} if out else {})
    assert [note.ruling for note in outcome.report.notes] == ([Ruling(Fate.GONE, Reason.CUT)] if out else [])
    assert blocks == ([tag] if out else [])


async def test_so_it_is_in_what_had_to_be_json() -> None:
    outcome = await play([TextPiece('{"a": 1} <tool_c'), CUT], **AS_JSON)
    assert (outcome.text, outcome.ending) == ('{"a": 1} ', "content_filter")


# JSON


@pytest.mark.parametrize("way", [AS_JSON, EARLY])
async def test_what_looks_like_a_block_may_stand_in_a_string_of_it(way: Way) -> None:
    text = '{"a": "<tool_call>{x}</tool_call>"}'
    events: list[BackendEvent] = [MessagePhase("final_answer"), TextPiece(text), MessageEnded(), TurnEnded(USAGE)]
    outcome = await play(events, **way)
    assert (outcome.left, outcome.report.warnings) == ([AnswerText(text, "final_answer")], [])


async def test_json_leaves_early_with_the_phase_of_its_message() -> None:
    found = await leaving(MessagePhase("final_answer"), '{"a"', ": 1}", MessageEnded(), **EARLY)
    assert found[:3] == [[], [AnswerText('{"a"', "final_answer")], [AnswerText(": 1}", "final_answer")]]


async def test_so_has_it_no_key() -> None:
    def script(prompt: Prompt) -> list[BackendEvent]:
        return [*pieces(f'{{"a": "{key_in(prompt)}"}}', 4), TurnEnded(USAGE)]

    assert (await play(script, **EARLY)).text == f'{{"a": "{MASK}"}}'


async def test_text_behind_a_call_behind_json_that_left_early_is_not_json() -> None:
    outcome = await play(f'{{"a": 1}}\n{READ_A}So: {BROKEN}done.', **EARLY)
    assert in_short(outcome.events) == ['{"a": 1}', READ_A]
    assert outcome.report.warnings[-1:] == ["A call of the tool 'read_note' was taken out, because it cannot be read."]


# Reasoning and phases


async def test_reasoning_leaves_by_its_parts_without_the_key() -> None:
    """What may be the beginning of a key waits for the end of its part, or of the stream."""
    keys: list[str] = []

    def script(prompt: Prompt) -> list[BackendEvent]:
        keys.append(key_in(prompt))
        [key] = keys
        return [
            ReasoningPiece(1, f"a {key[:4]}"),
            ReasoningPiece(2, f"{key[4:]} {key}"),
            ReasoningPiece(2, f" {key[:3]}"),
            ReasoningEnded(),
            ReasoningPiece(3, key[:2]),
            TurnEnded(USAGE),
        ]

    outcome = await play(script)
    [key] = keys
    assert outcome.left[:4] == [
        Reasoning(1, f"a {key[:4]}"),
        Reasoning(2, f"{key[4:]} {MASK} {key[:3]}"),
        ReasoningItemEnded(),
        Reasoning(3, key[:2]),
    ]


async def test_text_leaves_with_the_phase_of_its_message() -> None:
    """Also where the parser held some of it back, or the phase came last."""
    first: list[BackendEvent] = [MessagePhase("commentary"), TextPiece("I look. <"), MessageEnded()]
    last: list[BackendEvent] = [TextPiece("So: done. <"), MessagePhase("final_answer"), MessageEnded()]
    outcome = await play([*first, *last, TextPiece("."), TurnEnded(USAGE)])
    assert list(outcome.events[:-1]) == [
        AnswerText("I look. ", "commentary"),
        AnswerText("<", "commentary"),
        AnswerMessageEnded("commentary"),
        AnswerText("So: done. "),
        AnswerText("<", "final_answer"),
        AnswerMessageEnded("final_answer"),
        AnswerText("."),
    ]


async def test_a_stream_that_fails_ends_the_turn_behind_what_came() -> None:
    outcome = await play([TextPiece("I lo"), GONE])
    assert (outcome.left, outcome.error) == ([AnswerText("I lo")], GONE)


# However it comes

WAYS = {"free": FREE, "demanded": DEMANDED, "JSON": AS_JSON, "early": EARLY, "live": LIVE}
FRAGMENTS = [READ_A, READ_B, BROKEN, UNDECLARED, "I look. ", "\n", "<tool_call>", "{}", '{"a": 1}']


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@given(fragments=st.lists(st.sampled_from(FRAGMENTS), max_size=5), size=st.integers(1, 9))
def test_how_an_answer_is_cut_does_not_show(way: Way, fragments: list[str], size: int) -> None:
    async def told(size: int) -> object:
        request, options = way.get("request", ask()), way.get("options")
        outcome = await outcome_of(request, MemoryBackend(["".join(fragments), "So.", "Well."], size), options)
        # Text beside calls is left out where it is not the JSON asked for, which is not known before it is whole.
        left = outcome.calls if request.output_format else outcome.left
        return left, outcome.ending, outcome.notes, outcome.report.again, outcome.report.calls

    async def both() -> None:
        assert await told(0) == await told(size)

    asyncio.run(both())
