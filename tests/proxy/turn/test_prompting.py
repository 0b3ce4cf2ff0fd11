"""What a backend is given for a turn, and what a turn is told to have used when nobody came to count it."""

from __future__ import annotations

from typing import Any

import pytest

from parser import ToolRegistry, write_call
from prompts import (
    FRONTIER,
    SMALL,
    ChoiceMode,
    Image,
    Item,
    JsonAnswer,
    OwnLine,
    Part,
    PastCall,
    PromptProfile,
    Text,
    ToolChoice,
    ToolResult,
    Transcript,
    UserTurn,
    answer_now,
    nothing_said,
    render_turn,
)
from prompts.passages import line
from proxy.contracts import OutputFormat, Sampling, TurnFinished, TurnRequest
from proxy.turn import CallKeys, KeyMode, TurnOptions
from tests.proxy.turn.playing import READ_A, ask, play
from tests.support.parts import text_of_parts

OFF = CallKeys(KeyMode.OFF)


async def test_a_prompt_says_for_whom_and_how_the_model_is_to_think() -> None:
    told: dict[str, Any] = {
        "effort": "low",
        "summary": "auto",
        "owner": "me",
        "names": frozenset({"k"}),
        "tier": "flex",
    }
    told |= {"verbosity": "high", "sampling": Sampling(temperature=0.5)}
    outcome = await play("Hello.", request=ask(**told, max_output_tokens=900))
    [prompt] = outcome.backend.prompts
    assert {name: getattr(prompt, name) for name in told} == told
    assert (prompt.model, prompt.max_tokens, prompt.output_schema) == ("m", 900, None)


async def test_a_stop_string_stands_in_no_prompt_with_tools_where_it_may_be_in_a_call() -> None:
    assert (await play("Hello.", request=ask(stop=("END",)))).backend.prompts[0].stop == ()
    plain = await play("Hello.", request=ask(stop=("END",), registry=ToolRegistry()))
    assert plain.backend.prompts[0].stop == ("END",)


@pytest.mark.parametrize(
    ("request_", "profile"),
    [
        (ask(), FRONTIER),
        (ask(), SMALL),
        (ask(parallel=False, choice=ToolChoice(ChoiceMode.REQUIRED, ("search",))), SMALL),
        (ask(registry=ToolRegistry(), output_format=OutputFormat('{"type":"object"}')), FRONTIER),
        (ask(output_format=OutputFormat()), FRONTIER),
    ],
)
async def test_a_backend_is_given_the_conversation_as_one_text_and_as_messages(
    request_: TurnRequest, profile: PromptProfile
) -> None:
    answer = "{}" if request_.output_format else write_call("search", "{}")
    outcome = await play(answer, request=request_, options=TurnOptions(profile=profile, call_keys=OFF))
    [prompt] = outcome.backend.prompts
    wanted = request_.output_format
    rendered = render_turn(
        request_.transcript,
        request_.registry,
        request_.choice,
        parallel=request_.parallel,
        profile=profile,
        json_answer=JsonAnswer(wanted.schema) if wanted else None,
    )
    assert (prompt.developer, prompt.head) == (rendered.developer, rendered.head)
    assert (list(prompt.parts), list(prompt.items)) == (list(rendered.parts), list(rendered.items))


SILENT = Item("user", (Text(nothing_said()),), ours=OwnLine.NO_MESSAGE)


async def test_where_nothing_is_said_the_model_is_told_so() -> None:
    """There are backends that never answer an empty input."""
    [prompt] = (await play("Hello.", request=ask(transcript=Transcript(())))).backend.prompts
    assert (list(prompt.parts), list(prompt.items)) == ([Text(nothing_said())], [SILENT])
    [prompt] = (await play("Hello.", request=ask(" \n"))).backend.prompts
    assert list(prompt.parts) == [Text(nothing_said())]
    image = Image("data:image/png;base64,AAAA")
    [prompt] = (await play("A cat.", request=ask(transcript=Transcript((UserTurn((image,)),))))).backend.prompts
    assert list(prompt.parts) == [image]


async def test_after_a_call_that_cannot_be_there_are_no_tools_and_no_key_and_one_line() -> None:
    unknown = write_call("unknown", "{}")
    forbidden = await play(READ_A, "Hello.", request=ask(choice=ToolChoice(ChoiceMode.NONE)))
    assert text_of_parts(forbidden.backend.prompts[1].parts).endswith(line("call_forbidden"))
    plain = await play(unknown, "Hello.")
    again = plain.backend.prompts[1]
    assert (again.developer, text_of_parts(again.parts)) == (None, "What is in a.md?")
    read = PastCall("call_1", "search", "{}"), ToolResult("call_1", (Text("A note."),))
    transcript = Transcript((UserTurn((Text("What is in the note?"),)), *read))
    after = await play(unknown, "A note.", request=ask(transcript=transcript))
    told = text_of_parts(after.backend.prompts[1].parts)
    assert told.endswith(f"\n\n{answer_now(transcript)}")
    assert line("no_tools") not in told


@pytest.mark.parametrize(
    ("developer", "parts", "tokens"),
    [
        ("d" * 41, (Text("x" * 3),), 10),
        (None, (Text("x" * 39),), 9),
        (None, (Image("data:image/png;base64,AAAA"),), 1_000),
        ("d" * 41, (Text("x" * 39), Image("data:image/png;base64,AAAA"), Text("x" * 4)), 1_020),
    ],
)
async def test_of_a_turn_that_nobody_counted_four_characters_are_a_token_and_an_image_a_thousand(
    developer: str | None, parts: tuple[Part, ...], tokens: int
) -> None:
    request = ask(registry=ToolRegistry(), stop=("END",), transcript=Transcript((UserTurn(parts),), developer))
    outcome = await play(f"{'x' * 28} END of it", request=request, chunk=4)
    assert isinstance(outcome.end, TurnFinished)
    assert (outcome.end.usage.input_tokens, outcome.end.usage.output_tokens) == (tokens, 8)


async def test_a_prompt_says_whether_its_request_declares_no_tool() -> None:
    """One that is asked for once more without tools is of a request that has some."""
    plain = await play("Hello.", request=ask(registry=ToolRegistry()))
    assert [prompt.toolless for prompt in plain.backend.prompts] == [True]
    calling = await play(write_call("rm", "{}"), "Hello.")
    assert [prompt.toolless for prompt in calling.backend.prompts] == [False, False]
