from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import hypothesis
import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from parser import Tool, ToolRegistry, write_call
from prompts import AssistantText, ChoiceMode, PastCall, Text, ToolChoice, Transcript, UserTurn, meanings_of_answer
from proxy.contracts import (
    AnswerText,
    BackendEvent,
    Lane,
    MessageEnded,
    OutputFormat,
    Prompt,
    TextPiece,
    ToolCallArguments,
    ToolCallStarted,
    TurnEnded,
    TurnFinished,
)
from proxy.errors import BackendError
from proxy.replay.key_placeholder import key_of
from proxy.turn import CallKeys, CallRelease, KeyMode, TurnOptions, TurnReport, run_turn
from tests.proxy.turn.playing import (
    BROKEN,
    READ_A,
    READ_B,
    TOOLS,
    UNDECLARED,
    Outcome,
    ask,
    keyless_model,
    outcome_of,
    play,
)
from tests.support.memory_backend import USAGE, MemoryBackend, Script, pieces

OFF = TurnOptions(call_keys=CallKeys(KeyMode.OFF))
A = '{"path": "a.md"}'


class KeepingBackend(MemoryBackend):
    """Keeps conversations: `resumed` are the meanings that it was told to go on from."""

    def __init__(self, answers: list[Script], chunk: int = 0) -> None:
        super().__init__(answers, chunk)
        self.resumed: list[frozenset[bytes] | None] = []
        self.wound_down = 0

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        prompt.continuation.resume = self.resumed.append
        prompt.continuation.wind_down = self._wind_down
        async with super().stream(prompt) as batches:
            yield batches

    def _wind_down(self) -> None:
        self.wound_down += 1


@pytest.mark.parametrize(
    ("answers", "spoilt"),
    [
        ((f"I look. {READ_A}",), None),
        (("Hello.",), None),
        ((write_call("read_note", '{"path": "</tool_call> {\\"a\\": 1}"}') + "\n" + READ_A,), None),
        ((BROKEN, READ_A), "second_try"),
        ((READ_A.replace('"arguments"', '"args"'),), "repaired"),
        ((READ_A.replace("read_note", "no_such") + READ_A,), "refused"),
        ((f"{READ_A}\n[tool:call_1] invented",), "interrupted"),
        ((f"{READ_A}</tool_call>",), "rewritten"),
        ((READ_A.replace('"name"', '"id": "not an id", "name"'),), "rewritten"),
        ((READ_A.replace('"name"', '"id": "call_7", "type": "function", "name"'),), None),
        ((f"A <\\tool_call> \n {READ_A} \n",), None),
        (([*pieces("Half", 0), TurnEnded(USAGE, "max_output_tokens")],), "max_output_tokens"),
    ],
)
async def test_a_conversation_goes_on_only_from_what_the_model_wrote(
    answers: tuple[Script, ...], spoilt: str | None
) -> None:
    backend = KeepingBackend(list(answers))
    outcome = await play_on(backend)
    assert outcome.report.conversation.spoilt == spoilt
    assert (backend.resumed[-1] is None) is (spoilt is not None)
    assert len(backend.resumed) == len(answers), "each is settled once"


async def test_a_call_with_null_for_what_it_left_out_is_still_what_the_model_wrote() -> None:
    schema = '{"properties":{"path":{"type":"string"},"line":{"type":["integer","null"]}},"required":["path","line"]}'
    request = ask(registry=ToolRegistry([Tool("read_note", None, schema, strict=True)]))
    backend = KeepingBackend([READ_A])
    outcome = await outcome_of(request, backend, OFF)
    assert outcome.calls == [("read_note", '{"path": "a.md", "line": null}')]
    assert outcome.report.conversation.spoilt is None
    assert backend.resumed[-1] is not None


CALL_A = f'{{"name": "read_note", "arguments": {A}}}'


@pytest.mark.parametrize(
    "written",
    [
        READ_A.replace("<tool_call>", "<tool_call>\r\n\t ").replace("</tool_call>", "\n</tool_call>"),
        READ_A.replace("a.md", "\\u0061.md"),
        READ_A.replace(A, json.dumps(A)),
        READ_A.replace(A, json.dumps(f" {A}\n")),
        f"I look.\n\n{READ_A}\n \n{READ_B}",
        "I write <\\tool_call> here.",
    ],
)
async def test_white_space_and_spelling_are_not_missed(written: str) -> None:
    assert (await play_on(KeepingBackend([written]))).report.conversation.spoilt is None


@pytest.mark.parametrize(
    "written",
    [
        READ_A.replace("read_note", "readNote"),
        READ_A.replace('"name"', '"id": "not an id", "name"'),
        f"```\n{READ_A}\n```",
        f"```\n<tool_call>[{CALL_A}, {CALL_A}]</tool_call>\n```",
        f"Look: ` {READ_A} ` and so on",
        f"[assistant] It is so. {READ_A}",
    ],
)
async def test_a_call_that_leaves_otherwise_or_is_shown_is_not_gone_on_from(written: str) -> None:
    assert (await play_on(KeepingBackend([written]))).report.conversation.spoilt


@pytest.mark.parametrize(
    ("written", "spoilt"),
    [
        (f'{{"calls": [{CALL_A}]}}', None),
        (f'\n {{ "calls" : [ {CALL_A} ] }}\n'.replace("a.md", "\\u0061.md"), None),
        (f'{{"calls": [{{"arguments": {A}, "name": "read_note"}}]}}', None),
        (READ_A, "rewritten"),
    ],
)
async def test_a_call_that_is_held_was_given_as_it_was_written(written: str, spoilt: str | None) -> None:
    class Holding(KeepingBackend):
        keeps_conversations = False

        def holds(self, schema: str) -> bool:
            return True

    request = ask(choice=ToolChoice(ChoiceMode.REQUIRED))
    assert (await outcome_of(request, Holding([written]), OFF)).report.conversation.spoilt == spoilt


async def test_an_id_that_comes_when_its_call_has_begun_to_leave_is_not_gone_on_from() -> None:
    """The client was given another one."""
    backend = KeepingBackend(['<tool_call>{"name": "search", "arguments": {}, "id": "call_7"}</tool_call>'], 4)
    options = replace(OFF, release=CallRelease.LIVE)
    assert (await outcome_of(ask(), backend, options)).report.conversation.spoilt == "rewritten"


PARTS = st.lists(st.text("ab .\n", min_size=1, max_size=9) | st.integers(), max_size=5)


@hypothesis.given(PARTS)
async def test_text_and_calls_in_any_order_are_gone_on_from(said: list[str | int]) -> None:
    """From what a client will send back of them."""
    parts = [each if isinstance(each, str) else write_call("search", f'{{"n": {each}}}') for each in said]
    # On lines of their own, or a call is a quotation.
    backend = KeepingBackend(["\n".join(["So:", *parts])])
    outcome = await play_on(backend)
    assert outcome.report.conversation.spoilt is None
    entries: list[AssistantText | PastCall] = []
    for event in outcome.left:
        match event:
            case AnswerText(text):
                entries.append(AssistantText(text))
            case ToolCallStarted(call_id, name):
                entries.append(PastCall(call_id, name, ""))
            case ToolCallArguments(text):
                entries[-1] = replace(entries[-1], arguments=text)
            case _:
                pass
    assert backend.resumed == [meanings_of_answer(entries, TOOLS)]


async def test_each_message_is_one_of_the_conversation() -> None:
    backend = KeepingBackend(
        [[TextPiece("I "), TextPiece("look."), MessageEnded(), TextPiece("Now."), TurnEnded(USAGE)]]
    )
    await play_on(backend)
    assert backend.resumed == [meanings_of_answer([AssistantText("I look."), AssistantText("Now.")], TOOLS)]


@pytest.mark.parametrize(
    ("key_told", "spoilt"), [(False, None), (True, "rewritten")], ids=["with its key", "with its key in the text"]
)
async def test_what_a_client_does_not_see_is_not_gone_on_from(key_told: bool, spoilt: str | None) -> None:
    def answer(prompt: Prompt) -> str:
        key = key_of(prompt.head)
        return write_call("read_note", A, key=key) + (f" The key is {key}." if key_told else "")

    backend = KeepingBackend([answer])
    outcome = await outcome_of(ask(), backend, keyless_model())
    assert outcome.report.conversation.spoilt == spoilt


async def test_a_turn_that_fails_spoils_it() -> None:
    backend = KeepingBackend([BackendError("Gone.")])
    outcome = await play_on(backend)
    assert (outcome.report.conversation.spoilt, backend.resumed) == ("failed", [None])


async def test_a_prompt_that_was_refused_is_nothing_to_go_on_from_but_the_next_is() -> None:
    refused = BackendError("too long", status=400, code="context_length_exceeded")
    backend = KeepingBackend([refused, "Hello."])
    entries = (UserTurn((Text("first " * 50),)), AssistantText("answer"), UserTurn((Text("second"),)))
    outcome = await outcome_of(ask(transcript=Transcript(entries), truncate=True), backend, OFF)
    assert outcome.finished
    assert outcome.report.conversation.truncated
    assert (outcome.report.conversation.spoilt, backend.resumed) == (
        None,
        [None, meanings_of_answer([AssistantText("Hello.")], TOOLS)],
    )


@pytest.mark.parametrize("lane", [Lane(continued=True, why="continued"), None])
async def test_how_the_conversation_was_found_is_told(lane: Lane | None) -> None:
    class InLanes(KeepingBackend):
        @asynccontextmanager
        async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
            prompt.continuation.lane = lane
            async with super().stream(prompt) as batches:
                yield batches

    assert (await play_on(InLanes(["Hello."]))).report.conversation.lane == lane


async def test_how_the_conversation_was_found_and_spoilt_is_what_was_told_first() -> None:
    lanes = [None, Lane(continued=False, why="new"), Lane(continued=True, why="a")]

    class InLanes(KeepingBackend):
        @asynccontextmanager
        async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
            prompt.continuation.lane = lanes[len(self.prompts)]
            async with super().stream(prompt) as batches:
                yield batches

    report = (await play_on(InLanes([BROKEN, UNDECLARED, "Hello."]))).report
    assert (report.again, report.conversation.spoilt) == (["malformed", "undeclared"], "second_try")
    assert report.conversation.lane == Lane(continued=False, why="new")


@pytest.mark.parametrize(
    ("behind", "goes_on"), [("", False), (" \n", False), ("So.", True), (READ_B, True), (f"\n{READ_B}\n", True)]
)
@pytest.mark.parametrize("size", [0, 1])
async def test_what_comes_behind_the_one_call_is_not_gone_on_from(behind: str, goes_on: bool, size: int) -> None:
    backend = KeepingBackend([f"{READ_A}{behind}"], size)
    outcome = await play_on(backend, parallel=False)
    assert outcome.calls == [("read_note", A)]
    assert (outcome.report.conversation.spoilt is not None, backend.resumed == [None]) == (goes_on, goes_on)


async def test_a_model_whose_live_call_broke_is_not_waited_for() -> None:
    """It may go on for long, and nothing of it counts."""
    backend = KeepingBackend([READ_A.replace('"}}', '"]}') + " So.", READ_B], 4)
    outcome = await outcome_of(ask(), backend, replace(OFF, release=CallRelease.LIVE))
    assert (outcome.ending, backend.left_early, backend.wound_down) == ("tool_call_broken", 1, 0)


async def test_a_half_tag_behind_the_one_call_is_not_gone_on_from() -> None:
    backend = KeepingBackend([f"{READ_A}\n<tool"])
    outcome = await play_on(backend, parallel=False)
    assert outcome.calls == [("read_note", A)]
    assert backend.resumed == [None]


async def test_json_that_is_taken_out_of_its_fence_is_not_gone_on_from() -> None:
    backend = KeepingBackend(['```json\n{"a": 1}\n```'])
    request = replace(ask(), registry=ToolRegistry(), output_format=OutputFormat())
    outcome = await outcome_of(request, backend, OFF)
    assert (outcome.text, outcome.report.conversation.spoilt) == ('{"a": 1}', "rewritten")


async def play_on(backend: MemoryBackend, *, parallel: bool = True) -> Outcome:
    return await outcome_of(ask(parallel=parallel), backend, OFF)


async def test_it_is_settled_before_the_end_is_told() -> None:
    backend = KeepingBackend(["Hello."])
    async for batch in run_turn(ask(), backend, OFF, TurnReport()):
        assert not isinstance(batch[-1], TurnFinished) or len(backend.resumed) == 1


async def test_a_client_that_leaves_spoils_it() -> None:
    backend = KeepingBackend(["word " * 100], 5)
    turn = run_turn(ask(), backend, OFF, TurnReport())
    await anext(turn)
    await turn.aclose()
    assert backend.resumed == [None]


async def test_one_call_is_waited_for_to_the_end_of_its_answer() -> None:
    backend = KeepingBackend([f"{READ_A}\n \n"], 5)
    outcome = await play_on(backend, parallel=False)
    assert outcome.calls == [("read_note", A)]
    assert (backend.left_early, backend.wound_down, outcome.report.interrupted) == (0, 1, None)
    [started] = [event for event in outcome.events if isinstance(event, ToolCallStarted)]
    assert backend.resumed == [meanings_of_answer([PastCall(started.call_id, "read_note", A)], TOOLS)]
    assert outcome.end == TurnFinished(USAGE), "as the backend counted it"


@pytest.mark.parametrize(
    ("written", "stop", "interrupted", "goes_on"),
    [
        (f"I look. {READ_A}\n\n\n", "\n\n", False, True),
        ("One. END", "END", False, False),
        ("One. END and more", "END", True, False),
    ],
)
async def test_behind_a_stop_string_the_model_may_end_by_itself(
    written: str, stop: str, interrupted: bool, goes_on: bool
) -> None:
    backend = KeepingBackend([written], 2)
    outcome = await outcome_of(ask(stop=(stop,)), backend, OFF)
    assert (backend.left_early == 1, bool(outcome.report.interrupted)) == (interrupted, interrupted)
    assert (backend.resumed != [None]) is goes_on


@pytest.mark.parametrize("backend", [KeepingBackend, MemoryBackend])
@pytest.mark.parametrize("pieces", [["One. ", "END"], ["One. END and more"], [READ_A, " \n"]])
async def test_an_answer_that_has_ended_is_whole_though_the_models_is_cut(
    backend: type[KeepingBackend | MemoryBackend], pieces: list[str]
) -> None:
    script: Script = [*map(TextPiece, pieces), MessageEnded(), TurnEnded(USAGE, "max_output_tokens")]
    outcome = await outcome_of(ask(stop=("END",), parallel=False), backend([script]), OFF)
    assert isinstance(outcome.end, TurnFinished)
    assert outcome.end.incomplete is None
    assert bool(outcome.calls) is (READ_A in pieces)


async def test_a_failure_behind_the_one_call_is_nobodys() -> None:
    backend = KeepingBackend([[TextPiece(READ_A), BackendError("codex ended the turn as interrupted.")]])
    outcome = await play_on(backend, parallel=False)
    assert outcome.calls == [("read_note", A)]
    assert outcome.finished
    assert backend.resumed == [None]


@pytest.mark.parametrize("chunk", [0, 5, 1000])
async def test_an_answer_that_goes_on_behind_its_one_call_is_interrupted(chunk: int) -> None:
    backend = KeepingBackend([f"{READ_A}\n{READ_B} and more " * 20], chunk)
    outcome = await play_on(backend, parallel=False)
    assert outcome.calls == [("read_note", A)]
    assert outcome.report.interrupted == "one call was asked for"
    assert backend.resumed == [None]


async def test_a_backend_that_keeps_nothing_is_interrupted_at_once() -> None:
    outcome = await play(f"{READ_A}\n \n", chunk=5, request=ask(parallel=False), options=OFF)
    assert outcome.backend.left_early == 1
