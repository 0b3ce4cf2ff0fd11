"""What calls are helped to be: read without tags where that is allowed, and made to fit their schema."""

from __future__ import annotations

import pytest

from parser import Tool, ToolRegistry, write_call
from prompts import PROFILES, ChoiceMode, PastCall, Text, ToolChoice, ToolResult, Transcript, UserTurn
from proxy.contracts import (
    BackendEvent,
    MessageEnded,
    OutputFormat,
    TextPiece,
    ToolCallEnded,
    TurnEnded,
    TurnFinished,
    TurnRequest,
)
from proxy.errors import BackendError
from proxy.turn import CallRelease, TurnOptions
from tests.proxy.turn.playing import READ_A, ask, keyless_model, play
from tests.support.memory_backend import USAGE, pieces

SCHEMA = '{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}},"required":["path"]}'
TOOLS = ToolRegistry([Tool("read_note", "Read a note.", SCHEMA)])
BARE = '{"name": "read_note", "arguments": {"path": "a.md"}}'
NOTE = [("read_note", '{"path": "a.md"}')]
SMALL = keyless_model(profile=PROFILES["small"])


@pytest.mark.parametrize(
    ("request_", "options"),
    [
        (ask(choice=ToolChoice(ChoiceMode.REQUIRED)), keyless_model()),
        (ask(choice=ToolChoice(ChoiceMode.REQUIRED, ("read_note",))), keyless_model()),
        (ask(), SMALL),
    ],
    ids=["a call is required", "a call of this tool is required", "the model is small"],
)
@pytest.mark.parametrize("answer", [BARE, f"```json\n{BARE}\n```"])
async def test_an_answer_that_is_nothing_but_a_call_is_that_call(
    answer: str, request_: TurnRequest, options: TurnOptions
) -> None:
    outcome = await play(answer, request=request_, options=options, chunk=5)
    assert (outcome.text, outcome.calls, dict(outcome.report.counts["tiers"])) == ("", NOTE, {"C": 1})
    assert set(outcome.report.counts["repaired"]) <= {"bare-answer", "fenced-answer"}


@pytest.mark.parametrize("release", list(CallRelease))
async def test_a_call_without_tags_that_is_cut_is_none(release: CallRelease) -> None:
    """More may have followed that would have made it another answer."""
    cut: list[BackendEvent | BackendError] = [*pieces(BARE, 5), TurnEnded(USAGE, "max_output_tokens")]
    outcome = await play(cut, options=keyless_model(release, PROFILES["small"]))
    assert outcome.report.calls == []
    assert outcome.report.counts["refused"] == {"the answer was cut in the middle of it": 1}
    assert ToolCallEnded() not in outcome.events
    assert outcome.text == BARE
    assert outcome.end == TurnFinished(USAGE, "max_output_tokens")


async def test_elsewhere_it_is_an_answer() -> None:
    outcome = await play(BARE)
    assert (outcome.text, outcome.calls) == (BARE, [])


async def test_each_message_of_an_answer_is_read_by_itself() -> None:
    messages: list[BackendEvent] = [TextPiece("I look."), MessageEnded(), TextPiece(BARE), TurnEnded(None)]
    outcome = await play(messages, options=SMALL)
    assert (outcome.text, outcome.calls) == ("I look.", NOTE)


async def test_where_json_is_asked_for_it_is_the_answer() -> None:
    outcome = await play(BARE, request=ask(output_format=OutputFormat()), options=SMALL)
    assert (outcome.text, outcome.calls) == (BARE, [])


async def test_json_that_stands_in_the_request_is_copied_and_not_called() -> None:
    outcome = await play(BARE, request=ask(f"Show me my note: {BARE}"), options=SMALL)
    assert (outcome.text, outcome.calls, dict(outcome.report.counts["refused"])) == (BARE, [], {"quoted": 1})


async def test_nor_is_it_where_calls_leave_as_they_are_written() -> None:
    live = keyless_model(profile=PROFILES["small"], release=CallRelease.LIVE)
    outcome = await play(BARE, request=ask(f"Show me my note: {BARE}"), options=live)
    assert (outcome.text, outcome.calls) == (BARE, [])


async def test_an_answer_that_was_cut_is_not_known_to_be_nothing_but_a_call() -> None:
    outcome = await play([TextPiece(BARE), TurnEnded(None, "max_output_tokens")], options=SMALL)
    assert (outcome.text, outcome.calls) == (BARE, [])


async def test_a_number_in_a_string_leaves_as_a_number() -> None:
    answer = write_call("read_note", '{ "path":"5", "line": "12" }')
    outcome = await play(answer, request=ask(registry=TOOLS))
    assert outcome.calls == [("read_note", '{ "path":"5", "line": 12 }')]
    assert dict(outcome.report.counts["repaired"]) == {"coerced_number": 1}
    assert dict(outcome.report.counts["tiers"]) == {"A": 1}


async def test_what_fits_leaves_as_it_was_written() -> None:
    arguments = '{ "path" : "\\u0061" ,"line":1e0, "other": "5" }'
    outcome = await play(write_call("read_note", arguments), request=ask(registry=TOOLS))
    assert outcome.calls == [("read_note", arguments)]
    assert not outcome.report.counts["repaired"]


async def test_a_strict_tool_is_checked_after_that() -> None:
    request = ask(registry=ToolRegistry([Tool("read_note", None, SCHEMA, strict=True)]))
    outcome = await play(write_call("read_note", '{"path": "a", "line": "3"}'), request=request)
    assert outcome.calls == [("read_note", '{"path": "a", "line": 3}')]
    assert not outcome.report.again


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        READ_A,
        READ_A.replace("arguments", "parameters"),
        READ_A.replace('"', "'"),
        READ_A.removesuffix("</tool_call>"),
        "<tool_call>\n<function=read_note>\n<parameter=path>\na.md\n</parameter>\n</function>\n</tool_call>",
    ],
)
async def test_a_strict_tool_takes_what_its_author_calls_optional_as_null(answer: str, strict: bool) -> None:
    """SDKs write such a parameter as one that is required and may be null; models leave it out."""
    schema = (
        '{"type":"object","properties":{"path":{"type":"string"},"line":{"anyOf":[{"type":"integer"},{"type":"null"}]}},'
        '"required":["path","line"],"additionalProperties":false}'
    )
    request = ask(registry=ToolRegistry([Tool("read_note", None, schema, strict=strict)]))
    outcome = await play(answer, request=request)
    assert outcome.calls == [("read_note", '{"path": "a.md", "line": null}')]
    assert outcome.report.counts["repaired"]["added_null"] == 1
    assert not outcome.report.again


async def test_what_has_left_live_is_not_changed() -> None:
    arguments = '{"path": "a", "line": "3"}'
    options = keyless_model(release=CallRelease.LIVE)
    outcome = await play(write_call("read_note", arguments), request=ask(registry=TOOLS), options=options, chunk=5)
    assert outcome.calls == [("read_note", arguments)]
    assert not outcome.report.counts["repaired"]


async def test_a_call_that_was_made_to_fit_is_known_again() -> None:
    past = [
        entry
        for call_id in ("c1", "c2")
        for entry in (
            PastCall(call_id, "read_note", '{"path": "a", "line": 3}'),
            ToolResult(call_id, (Text("x"),)),
        )
    ]
    transcript = Transcript((UserTurn((Text("Read."),)), *past))
    said = write_call("read_note", '{"path": "a", "line": "3"}')
    outcome = await play(said, "Done.", request=ask(registry=TOOLS, transcript=transcript))
    assert (outcome.text, outcome.calls, outcome.report.again) == ("Done.", [], ["repeated"])


async def test_tiers_count_the_calls() -> None:
    outcome = await play(write_call(*NOTE[0]) + write_call("read_note", '{"path": "b",}'))
    assert len(outcome.calls) == 2
    assert dict(outcome.report.counts["tiers"]) == {"A": 1, "B": 1}


async def test_a_repaired_call_without_what_is_required_is_asked_for_again() -> None:
    said = '<tool_call>{"tool": "read_note", "args": {"line": 3}}</tool_call>'
    outcome = await play(said, write_call(*NOTE[0]), request=ask(registry=TOOLS))
    assert (outcome.text, outcome.calls, outcome.report.again) == ("", NOTE, ["malformed"])


async def test_as_the_model_wrote_it_that_is_the_clients_to_judge() -> None:
    written = write_call("read_note", '{"line": 3}')
    outcome = await play(written, written, request=ask(registry=TOOLS))
    assert (outcome.calls, outcome.report.again) == ([("read_note", '{"line": 3}')], ["arguments_misfit"])


async def test_a_call_that_a_sentence_mentions_is_not_asked_for() -> None:
    said = 'Write <tool_call>{"name": "read_note"} and so on.'
    outcome = await play(said, request=ask(registry=TOOLS))
    assert (outcome.text, outcome.calls, outcome.report.again) == (said, [], [])


@pytest.mark.parametrize(
    "form",
    [
        '{"name": "...", "arguments": {...}}',
        '{"name": "...", "arguments": {}}',
        '{"key": "<key>", "name": "<name>", "arguments": {"path": "<path>"}}',
        '{"key": "<key>", "name": "<tool name>", "arguments": {"<parameter>": <value>}}',
        '{"name": <name>, "arguments": {{ .X }}}',
        "{{ .ToolCall }}",
        "...",
    ],
)
@pytest.mark.parametrize("release", list(CallRelease))
@pytest.mark.parametrize("chunk", [1, 0])
async def test_the_form_of_a_call_in_a_sentence_is_shown(form: str, release: CallRelease, chunk: int) -> None:
    said = f"You write <tool_call>{form}</tool_call> to call a tool."
    outcome = await play(said, request=ask(registry=TOOLS), options=TurnOptions(release), chunk=chunk)
    assert (outcome.text, outcome.calls, outcome.report.again) == (said, [], [])
    assert (outcome.finished, dict(outcome.report.counts["taken_out"])) == (True, {})


@pytest.mark.parametrize("release", list(CallRelease))
@pytest.mark.parametrize("chunk", [1, 0])
@pytest.mark.parametrize("arguments", ["{...}", "{}", '{"<parameter>": <value>}', "<arguments>"])
async def test_so_it_is_on_a_line_of_its_own_where_it_names_no_tool(
    arguments: str, release: CallRelease, chunk: int
) -> None:
    said = f'The form is:\n\n<tool_call>\n{{"name": "<name>", "arguments": {arguments}}}\n</tool_call>\n\nThat is all.'
    outcome = await play(said, request=ask(registry=TOOLS), options=TurnOptions(release), chunk=chunk)
    assert (outcome.text, outcome.calls, outcome.report.again) == (said, [], [])


async def test_on_a_line_of_its_own_a_form_with_a_tool_is_asked_for_again() -> None:
    said = 'I look.\n<tool_call>{"name": "read_note", "arguments": {...}}</tool_call>'
    outcome = await play(said, write_call(*NOTE[0]), request=ask(registry=TOOLS))
    assert (outcome.text, outcome.calls, outcome.report.again) == ("I look.\n", NOTE, ["malformed"])


BESIDE = (
    '<tool_call>{"id": "k", "name": "read_note", "arguments": {"path": "<\\\\tool_call>"}, "line": "3"}</tool_call>'
)


async def test_a_parameter_beside_the_arguments_leaves_in_them() -> None:
    outcome = await play(BESIDE, request=ask(registry=TOOLS))
    assert outcome.calls == [("read_note", '{"path": "<tool_call>", "line": 3}')]
    assert dict(outcome.report.counts["repaired"]) == {"lifted_member": 1, "coerced_number": 1}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (BESIDE, "a part of the arguments came when they had ended"),
        (BESIDE.replace('"line"', '"lines"'), "the call cannot be read: 'lines' stands beside the arguments"),
    ],
)
async def test_what_stands_beside_arguments_that_have_left_breaks_the_turn(said: str, why: str) -> None:
    outcome = await play(said, request=ask(registry=TOOLS), options=keyless_model(release=CallRelease.LIVE), chunk=5)
    assert outcome.error.message.endswith(f"that had already begun to leave: {why}.")
    assert ToolCallEnded(complete=False) in outcome.events
    assert not outcome.report.again


async def test_what_no_tool_knows_beside_the_arguments_is_asked_for_again() -> None:
    said = BESIDE.replace('"line"', '"lines"')
    outcome = await play(said, write_call(*NOTE[0]), request=ask(registry=TOOLS))
    assert (outcome.text, outcome.calls, outcome.report.again) == ("", NOTE, ["malformed"])


REMARK = '"thought": "I \\"look\\" at {a.md}."'
IN_FRONT = f'<tool_call>{{{REMARK}, "name": "read_note", "arguments": {{"path": "a.md"}}}}</tool_call>'
BEHIND = f'<tool_call>{{"name": "read_note", "arguments": {{"path": "a.md"}}, {REMARK}}}</tool_call>'


@pytest.mark.parametrize("said", [IN_FRONT, BEHIND])
@pytest.mark.parametrize("release", list(CallRelease))
@pytest.mark.parametrize("chunk", [1, 7, 0])
async def test_a_right_call_is_not_lost_for_a_remark(said: str, release: CallRelease, chunk: int) -> None:
    outcome = await play(said, request=ask(registry=TOOLS), options=keyless_model(release), chunk=chunk)
    assert (outcome.text, outcome.calls, outcome.report.again) == ("", NOTE, [])
    assert (outcome.finished, dict(outcome.report.counts["tiers"])) == (True, {"A": 1})
    assert [event for event in outcome.events if isinstance(event, ToolCallEnded)] == [ToolCallEnded()]


@pytest.mark.parametrize(
    ("said", "repairs"),
    [
        (IN_FRONT, set[str]()),
        (BEHIND, set[str]()),
        (IN_FRONT.replace('"name"', '"tool"').replace('"arguments"', '"args"'), {"alias-keys"}),
        (BEHIND.replace("}</tool_call>", ",}"), {"trailing-comma", "unclosed"}),
    ],
)
@pytest.mark.parametrize("release", list(CallRelease))
async def test_the_remark_is_counted(said: str, repairs: set[str], release: CallRelease) -> None:
    outcome = await play(said, request=ask(registry=TOOLS), options=keyless_model(release))
    assert (outcome.calls, outcome.report.again) == (NOTE, [])
    assert dict(outcome.report.counts["repaired"]) == dict.fromkeys({*repairs, "dropped_remark"}, 1)


@pytest.mark.parametrize("said", [IN_FRONT, BEHIND])
async def test_a_call_with_a_remark_and_a_gap_is_asked_for_again(said: str) -> None:
    outcome = await play(said.replace('"path"', '"line"'), write_call(*NOTE[0]), request=ask(registry=TOOLS))
    assert (outcome.text, outcome.calls, outcome.report.again) == ("", NOTE, ["malformed"])
