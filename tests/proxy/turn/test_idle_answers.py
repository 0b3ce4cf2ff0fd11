"""Answers of small models that say nothing, and calls right behind results that add nothing: asked for once more."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from parser import Tool, ToolRegistry, write_call
from prompts import (
    AssistantText,
    ChoiceMode,
    Entry,
    PastCall,
    Text,
    ToolChoice,
    ToolResult,
    Transcript,
    UserTurn,
)
from proxy.contracts import Prompt, TextPiece, TurnEnded, TurnRequest
from proxy.errors import BackendError
from proxy.replay.key_placeholder import key_of
from proxy.turn import TurnOptions
from tests.proxy.turn.playing import BROKEN, Outcome, ask, is_small, outcome_of, play
from tests.support.memory_backend import USAGE, MemoryBackend, Script

TOOLS = ToolRegistry([Tool(name, "", None) for name in ("add_line", "write_note", "fetch_page", "send_mail")])
QUESTION = UserTurn((Text("Note in log.md that the door squeaks."),))
RESULT = (PastCall("call_1", "add_line", '{"path": "log.md", "text": "The door squeaks."}'),
          ToolResult("call_1", (Text("1 line added"),)))  # fmt: skip
DONE = '{"path": "log.md", "content": "The door squeaks."}'
MADE_UP = '{"url": "https://example.com/log"}'
NEW = '{"path": "door.md", "content": "1 line"}'
LINE = (
    "Tell what was done, and what the results say: answer the user now, in plain text, from the results. Only if a "
    'part of the request is still open, make the next call. The request was: "Note in log.md that the door squeaks."'
)


def asked(*entries: Entry, **changes: object) -> TurnRequest:
    return replace(ask(registry=TOOLS, transcript=Transcript((QUESTION, *entries))), **changes)


def own_lines(prompt: Prompt) -> list[str]:
    return [part.text for item in prompt.items if item.ours for part in item.parts if isinstance(part, Text)]


def keyed(call: str, prompt: Prompt) -> str:
    return call.replace('{"name"', f'{{"key": "{key_of(prompt.developer)}", "name"')


# Calls that add nothing


IDLE = [write_call("write_note", DONE), write_call("fetch_page", MADE_UP)]


@pytest.mark.parametrize("call", IDLE)
async def test_a_call_that_adds_nothing_is_asked_for_once_more(mode: TurnOptions, chunk: int, call: str) -> None:
    def second(prompt: Prompt) -> str:
        assert own_lines(prompt) == [LINE]
        assert "<tools>" in (prompt.head or "")
        assert str(prompt.parts).count("If all parts of the request are done") == 0
        return "The door is in log.md now."

    answers: list[Script] = [call, second]
    outcome = await play(*answers[: 1 + is_small(mode)], request=asked(*RESULT), options=mode, chunk=chunk)
    if not is_small(mode):
        assert (len(outcome.calls), outcome.report.again) == (1, [])
        return
    assert (outcome.calls, outcome.text) == ([], "The door is in log.md now.")
    assert (outcome.report.again, outcome.report.difference) == (["nothing_new"], "second_try")


@pytest.mark.parametrize("call", IDLE)
async def test_made_again_it_is_meant(mode: TurnOptions, chunk: int, call: str) -> None:
    if is_small(mode):
        outcome = await play(
            call, lambda prompt: keyed(call, prompt), request=asked(*RESULT), options=mode, chunk=chunk
        )
        assert len(outcome.calls) == 1


async def test_and_any_other_call_in_its_place(mode: TurnOptions, chunk: int) -> None:
    if is_small(mode):
        new = write_call("write_note", NEW)
        outcome = await play(IDLE[0], new, request=asked(*RESULT), options=mode, chunk=chunk)
        assert outcome.calls == [("write_note", NEW)]


@pytest.mark.parametrize("second", ["", BROKEN, write_call("rm_rf", "{}"), BackendError("gone")])
async def test_nothing_in_its_place_is_worse(mode: TurnOptions, chunk: int, second: str | BackendError) -> None:
    if is_small(mode):
        outcome = await play(IDLE[1], second, request=asked(*RESULT), options=mode, chunk=chunk)
        assert (outcome.calls, outcome.text, outcome.finished) == ([("fetch_page", MADE_UP)], "", True)


async def test_beside_a_call_that_adds_something_it_leaves(mode: TurnOptions, chunk: int) -> None:
    new = write_call("write_note", NEW)
    for answer in (f"{IDLE[1]}\n{new}", f"{new}\n{IDLE[1]}"):
        outcome = await play(answer, request=asked(*RESULT), options=mode, chunk=chunk)
        assert (sorted(outcome.calls), outcome.report.again) == ([("fetch_page", MADE_UP), ("write_note", NEW)], [])


@pytest.mark.parametrize("arguments", [NEW, '{"path": "log.md"}', '{"path": "door.md"}', '{"lines": 7}', "{}"])
async def test_a_call_that_adds_something_is_not_asked_for_twice(mode: TurnOptions, chunk: int, arguments: str) -> None:
    outcome = await play(write_call("write_note", arguments), request=asked(*RESULT), options=mode, chunk=chunk)
    assert (outcome.calls, outcome.report.again) == ([("write_note", arguments)], [])


async def test_nor_one_that_stands_in_no_results_wake(mode: TurnOptions, chunk: int) -> None:
    behind = (*RESULT, AssistantText("Done."), UserTurn((Text("Is there a page about it?"),)))
    for entries in ((), behind):
        outcome = await play(IDLE[1], request=asked(*entries), options=mode, chunk=chunk)
        assert (outcome.calls, outcome.report.again) == ([("fetch_page", MADE_UP)], [])


async def test_nor_one_that_is_demanded(mode: TurnOptions, chunk: int) -> None:
    request = asked(*RESULT, choice=ToolChoice(ChoiceMode.REQUIRED))
    outcome = await play(IDLE[1], request=request, options=mode, chunk=chunk)
    assert (outcome.calls, outcome.report.again) == ([("fetch_page", MADE_UP)], [])


async def test_the_line_that_asks_reaches_nobody(mode: TurnOptions, chunk: int) -> None:
    if is_small(mode):
        outcome = await play(
            IDLE[0], lambda prompt: f"{own_lines(prompt)[-1]}\n\nIt is noted.",
            request=asked(*RESULT), options=mode, chunk=chunk,
        )  # fmt: skip
        assert (outcome.calls, outcome.text) == ([], "It is noted.")


async def test_without_tokens_for_another_answer_it_leaves(mode: TurnOptions) -> None:
    script: Script = [TextPiece(IDLE[1]), TurnEnded(replace(USAGE, output_tokens=500), None)]
    outcome = await play(script, request=asked(*RESULT, max_output_tokens=500), options=mode)
    assert outcome.calls == [("fetch_page", MADE_UP)]


# Answers that say nothing


@pytest.mark.parametrize("answer", ["log.md", "The door squeaks.\n", "It is noted."])
async def test_an_answer_that_repeats_what_was_sent_stands(mode: TurnOptions, chunk: int, answer: str) -> None:
    outcome = await play(answer, request=asked(*RESULT), options=mode, chunk=chunk)
    assert (outcome.text, outcome.report.again) == (answer, [])


async def test_an_answer_that_is_only_a_line_of_ours_is_asked_for_once_more(mode: TurnOptions, chunk: int) -> None:
    if is_small(mode):
        outcome = await play(
            lambda prompt: own_lines(prompt)[-1], "It is noted.", request=asked(*RESULT), options=mode, chunk=chunk
        )
        assert (outcome.text, outcome.report.again) == ("It is noted.", ["echo_of_line"])


async def test_nor_does_the_end_of_such_a_line_reach_anybody(mode: TurnOptions, chunk: int) -> None:
    if is_small(mode):
        request_told = LINE[LINE.index("The request was") :]
        outcome = await play(
            "1 line added",
            lambda prompt: f"{request_told}\n\n{own_lines(prompt)[-1]}",
            request=asked(*RESULT),
            options=mode,
            chunk=chunk,
        )
        assert (outcome.text, outcome.report.again) == ("1 line added", ["echo"])
        outcome = await play(request_told, "It is noted.", request=asked(*RESULT), options=mode, chunk=chunk)
        assert (outcome.text, outcome.report.again) == ("It is noted.", ["echo_of_line"])


# However a model goes on with it, one more answer is the last


@pytest.mark.parametrize("answer", [*IDLE, "1 line added"])
@pytest.mark.parametrize("entries", [(), RESULT])
async def test_a_stubborn_model_is_asked_twice(
    mode: TurnOptions, chunk: int, answer: str, entries: Sequence[Entry]
) -> None:
    backend = MemoryBackend([answer] * 3, chunk)
    outcome: Outcome = await outcome_of(asked(*entries), backend, mode)
    assert len(backend.prompts) <= 2
    assert outcome.finished
    assert outcome.text or outcome.calls
