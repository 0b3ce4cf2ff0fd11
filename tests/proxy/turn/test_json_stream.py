"""Structured output while it is written: where a backend holds its model to the schema, or wherever it is wanted."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from parser import Tool, ToolRegistry, write_call
from prompts import MASK, escape_json
from proxy.contracts import (
    AnswerText,
    BackendEvent,
    MessageEnded,
    OutputFormat,
    Prompt,
    TextPiece,
    TurnEnded,
    TurnFailed,
    TurnFinished,
    TurnRequest,
)
from proxy.errors import BackendError
from proxy.turn import HeldFormats, Speaker, StreamJson, TurnOptions
from proxy.turn.json_stream import FORGIVEN_AFTER
from tests.proxy.turn.keyed import key_in, keyed
from tests.proxy.turn.playing import BROKEN, READ_A, Outcome, ask, in_short, keyless_model, leaving, outcome_of
from tests.support.memory_backend import USAGE, MemoryBackend, Script, pieces

SCHEMA = '{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"additionalProperties":false}'
REQUEST = ask(registry=ToolRegistry(), output_format=OutputFormat(SCHEMA, "point"))
BESIDE_TOOLS = ask(output_format=OutputFormat(SCHEMA, "point"))
FIT = '{"x": "one two three"}'
ME = Speaker(REQUEST.owner, REQUEST.model)
EARLY = keyless_model(stream_json=StreamJson.EARLY)


async def play(
    *answers: Script, options: TurnOptions | None = None, request: TurnRequest = REQUEST, chunk: int = 3
) -> Outcome:
    """On a backend that holds its model to schemas."""
    backend = MemoryBackend(list(answers), chunk, holds_schemas=True)
    outcome = await outcome_of(request, backend, options)
    assert not backend.answers, "an answer was not asked for"
    return outcome


def deltas(outcome: Outcome) -> list[str]:
    return [event.text for event in outcome.events if isinstance(event, AnswerText)]


async def test_what_is_held_to_its_schema_leaves_as_it_is_written() -> None:
    outcome = await play(FIT)
    assert deltas(outcome)[0] == '{"x'
    assert len(deltas(outcome)) > 5
    assert outcome.text == FIT
    assert outcome.end == TurnFinished(USAGE)
    options = keyless_model()
    for _ in range(2):
        assert len(deltas(await play(FIT, options=options))) > 5
    await play("Well.", FIT, options=options, request=replace(REQUEST, streamed=False))
    assert not options.formats.broken_by(ME), "nobody looked whether it is held"


async def test_what_has_left_is_not_made_to_fit_any_more() -> None:
    point = OutputFormat(SCHEMA.replace('"string"', '"integer"'), "point")
    outcome = await play('{"x": "1"}', request=replace(REQUEST, output_format=point))
    assert outcome.text == '{"x": "1"}'
    assert isinstance(outcome.end, TurnFailed)
    assert not outcome.report.counts["repaired"]


class Holding(MemoryBackend):
    """Holds its models to one schema."""

    def holds(self, schema: str) -> bool:
        return schema == SCHEMA


async def test_a_backend_is_asked_whether_it_holds_just_this_schema() -> None:
    for schema, is_held in ((SCHEMA, True), (f"{SCHEMA} ", False)):
        request = replace(REQUEST, output_format=OutputFormat(schema, "point"))
        assert (len(deltas(await outcome_of(request, Holding([FIT], 3)))) > 1) is is_held


@pytest.mark.parametrize("chunk", [0, 1, 3, 5])
async def test_blanks_round_it_do_not_leave(chunk: int) -> None:
    assert (await play(f"\n {FIT}\n\n", chunk=chunk)).text == FIT


async def test_where_it_is_not_held_it_leaves_as_a_whole() -> None:
    for request in (BESIDE_TOOLS, replace(REQUEST, output_format=OutputFormat()), replace(REQUEST, streamed=False)):
        assert deltas(await play(FIT, request=request)) == [FIT]
    assert deltas(await outcome(FIT, holds=False)) == [FIT]


async def outcome(*answers: Script, holds: bool, options: TurnOptions | None = None) -> Outcome:
    return await outcome_of(REQUEST, MemoryBackend(list(answers), 3, holds_schemas=holds), options)


async def test_it_leaves_early_everywhere_where_that_is_wanted() -> None:
    for request in (REQUEST, BESIDE_TOOLS, replace(REQUEST, output_format=OutputFormat())):
        told = await play(FIT, request=request, options=EARLY)
        assert (told.text, len(deltas(told)) > 5) == (FIT, True)
    assert len(deltas(await outcome(FIT, holds=False, options=EARLY))) > 5


@pytest.mark.parametrize("wrapped", [f"```json\n{FIT}\n```", f"Sure: {FIT}"])
async def test_a_fence_or_words_before_it_are_taken_off_and_the_model_is_not_trusted_again(wrapped: str) -> None:
    options = keyless_model()
    assert deltas(await play(wrapped, options=options)) == [FIT]
    assert deltas(await play(FIT, options=options)) == [FIT]
    other = replace(REQUEST, model="another")
    assert len(deltas(await play(FIT, options=options, request=other))) > 5


@pytest.mark.parametrize("behind", [" Done.", "\n```", FIT, "}"])
@pytest.mark.parametrize("chunk", [0, 3])
async def test_text_behind_it_is_refused(behind: str, chunk: int) -> None:
    options = keyless_model()
    told = await play(FIT + behind, options=options, chunk=chunk)
    assert told.text == FIT
    assert told.error.code == "output_invalid"
    assert deltas(await play(FIT, options=options)) == [FIT], "it is held from then on"


@pytest.mark.parametrize("wrong", ['{"y": "one"}', '{"x": "one"', '{"x": one}', "{}"])
async def test_what_does_not_fit_is_refused_without_a_second_try(wrong: str) -> None:
    options = keyless_model()
    told = await play(wrong, options=options)
    assert wrong.startswith(told.text)
    assert told.error.code == "output_invalid"
    assert told.report.again == []
    assert options.formats.broken_by(ME)


async def test_where_nothing_has_left_there_is_a_second_try() -> None:
    told = await play("I cannot.", FIT)
    assert deltas(told) == [FIT]
    assert told.report.again == ["output_invalid"]


@pytest.mark.parametrize("cut", ["", " ", '{"x', '{"x": "one"', '{"x": 1', FIT])
async def test_a_cut_answer_leaves_as_far_as_it_came(cut: str) -> None:
    told = await play([TextPiece(cut[:2]), TextPiece(cut[2:]), TurnEnded(USAGE, "max_output_tokens")])
    assert told.text == cut.strip()
    assert told.end == TurnFinished(USAGE, "max_output_tokens")


async def test_with_stop_strings_it_is_held() -> None:
    assert (await play(FIT, request=replace(REQUEST, stop=("two",)))).text == '{"x": "one '
    assert deltas(await play(FIT, request=replace(REQUEST, stop=("four",)))) == [FIT]


async def test_commentary_before_it_is_not_shown() -> None:
    pieces: Script = [TextPiece("Let me think."), MessageEnded(), TextPiece(FIT), MessageEnded(), TurnEnded(USAGE)]
    assert (await play(pieces)).text == FIT


async def test_a_message_that_ends_leaves_no_trace() -> None:
    told = await play([TextPiece(FIT), MessageEnded(), TextPiece("\n"), MessageEnded(), TurnEnded(USAGE)])
    assert list(told.events) == [AnswerText(FIT), TurnFinished(USAGE)]


async def test_a_backend_that_refuses_the_schema_does_not_hold_to_it() -> None:
    refusal = BackendError("Invalid schema", status=400, code="invalid_json_schema")
    assert deltas(await play(refusal, FIT)) == [FIT]


async def test_a_call_behind_json_that_left_early_leaves_too() -> None:
    told = await play(f"{FIT}\n{READ_A}", request=BESIDE_TOOLS, options=EARLY)
    assert (told.text.strip(), len(told.calls)) == (FIT, 1)
    assert told.finished


async def test_behind_json_that_left_early_nothing_is_asked_for_again() -> None:
    told = await play(FIT + BROKEN, request=BESIDE_TOOLS, options=EARLY)
    assert told.error.code == "output_invalid"
    assert told.report.again == []
    schema = '{"type":"object","properties":{"n":{"type":"integer"}}}'
    request = replace(BESIDE_TOOLS, registry=ToolRegistry([Tool("put", None, schema)]))
    wrong, right = (write_call("put", arguments) for arguments in ('{"n": "x"}', '{"n": 1}'))
    told = await play(FIT + wrong, right, request=request, options=EARLY)
    assert (told.text, told.calls) == (FIT, [("put", '{"n": 1}')])


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("chunk", [0, 1, 3])
@pytest.mark.parametrize(
    "tag", ["<tool_call>{x}</tool_call>", r"<tool_call>{\"name\": 1", "a <tool_call> b", "</tool_call>"]
)
async def test_a_tag_in_a_string_of_it_leaves_too(tag: str, chunk: int, quoted: bool) -> None:
    text = f'{{"x": "See {tag}", "y": [1, 23]}}'
    asked = ask(f"What is {tag}?" if quoted else "What is it?", output_format=OutputFormat())
    told = await play(text, request=asked, options=EARLY, chunk=chunk)
    assert (told.text, told.calls, told.finished) == (text, [], True)
    assert (told.report.again, told.report.counts["taken_out"]) == ([], {})


CALL = r"<tool_call>{\"name\": \"read_note\", \"arguments\": {}}</tool_call>"


@pytest.mark.parametrize("chunk", [0, 1, 3])
async def test_so_does_a_call_that_is_quoted_and_one_of_no_tool_is_left_out(chunk: int) -> None:
    text, of_none = f'{{"x": "A {CALL} b", "y": [1, 23]}}', CALL.replace("read_note", "rm")
    for said, written, left in (
        (CALL, text, text),
        ("it", text.replace(CALL, of_none), text.replace(CALL, of_none)),
        ("it", f'{{"x":\n{of_none}\n"A b"}}', '{"x":\n"A b"}'),
    ):
        asked = ask(f"What is {said}?", output_format=OutputFormat())
        told = await play(written, request=asked, options=EARLY, chunk=chunk)
        assert (told.text, told.calls, told.finished, told.report.again) == (left, [], True, [])


async def test_what_there_is_of_it_leaves_before_a_call() -> None:
    half = READ_A.removesuffix('"}}</tool_call>')
    for call, end in ((READ_A, None), (half, "content_filter")):
        answer: Script = [TextPiece(f'{{"x": 12{call}'), TurnEnded(USAGE, end)]
        told = await play(answer, request=BESIDE_TOOLS, options=EARLY)
        places = [isinstance(event, AnswerText) for event in told.events]
        assert (told.text, len(told.calls)) == ('{"x": 12', 1)
        assert places == sorted(places, reverse=True)
    tagged = '{"x": "<tool_call>{x}</tool_call>"}'
    told = await play(tagged + READ_A, request=BESIDE_TOOLS, options=EARLY)
    assert (told.text, len(told.calls), told.finished) == (tagged, 1, True)


def test_only_so_many_models_are_remembered() -> None:
    formats = HeldFormats(most=2)
    speakers = [Speaker("owner", model) for model in "abc"]
    for speaker in speakers:
        formats.note_break(speaker)
    assert [formats.broken_by(speaker) for speaker in speakers] == [False, True, True]


async def test_one_broken_answer_holds_nothing_back_for_another_key() -> None:
    options = keyless_model()
    await play('{"y": "one"}', options=options)
    assert deltas(await play(FIT, options=options)) == [FIT]
    assert len(deltas(await play(FIT, options=options, request=replace(REQUEST, owner="another")))) > 5


async def test_a_model_is_trusted_again_once_its_answers_fit() -> None:
    options = keyless_model()
    await play('{"y": "one"}', options=options)
    for _ in range(FORGIVEN_AFTER - 1):
        assert deltas(await play(FIT, options=options)) == [FIT]
    await play("Well.", FIT, options=options)
    for _ in range(FORGIVEN_AFTER):
        assert deltas(await play(FIT, options=options)) == [FIT]
    assert len(deltas(await play(FIT, options=options))) > 5


async def test_answers_that_are_cut_or_fail_earn_no_trust() -> None:
    options = keyless_model()
    await play('{"y": "one"}', options=options)
    for _ in range(FORGIVEN_AFTER):
        await play([TextPiece(FIT), TurnEnded(USAGE, "max_output_tokens")], options=options)
    await play([TextPiece(FIT), BackendError("gone")], options=options)
    assert options.formats.broken_by(ME)


TAGS = st.lists(st.sampled_from(["<", "\\", "/", "tool_call", ">", '"', "a", "\n", "é"]), max_size=9).map("".join)
VALUES = st.recursive(
    st.none() | st.integers() | TAGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TAGS, inner, max_size=3),
    max_leaves=8,
)


ANY = ask(registry=ToolRegistry(), output_format=OutputFormat())
# With tools, so that there is a key.
KEYED = ask(output_format=OutputFormat())


@given(st.dictionaries(TAGS, VALUES, max_size=3), st.booleans(), st.integers(1, 9))
def test_whatever_the_json_is_it_leaves_as_it_would_as_a_whole(value: object, ascii_only: bool, size: int) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    outcome = asyncio.run(outcome_of(ANY, MemoryBackend([escape_json(text)], size), EARLY))
    assert (outcome.text, outcome.report.again) == (text, [])


@given(st.dictionaries(st.text("ab", max_size=3), VALUES, max_size=3), st.data(), st.sampled_from([ANY, KEYED]))
def test_a_cut_value_leaves_to_its_last_character(value: object, data: st.DataObject, request_: TurnRequest) -> None:
    text = "\n \t" + json.dumps(value).replace("<", "")
    end, size = data.draw(st.integers(0, len(text))), data.draw(st.integers(1, 9))
    script: list[BackendEvent] = [*pieces(text[:end], size), TurnEnded(USAGE, "max_output_tokens")]
    outcome = asyncio.run(outcome_of(request_, MemoryBackend([script]), EARLY))
    assert (outcome.text, outcome.ending) == (text[:end].lstrip(), "max_output_tokens")


@pytest.mark.parametrize("options", [keyless_model(), EARLY])
async def test_json_that_goes_on_in_another_message_leaves_whole(options: TurnOptions) -> None:
    events: list[BackendEvent] = [TextPiece('{"x": 1'), MessageEnded(), TextPiece("2}"), MessageEnded()]
    outcome = await outcome_of(ANY, MemoryBackend([[*events, TurnEnded(USAGE)]]), options)
    assert (outcome.text, outcome.ending) == ('{"x": 12}', "finished")


@pytest.mark.parametrize("begin", ["`", "X", "1", '"', "}", "\u00a0", "\x0b"])
async def test_what_does_not_begin_as_an_object_or_a_list_is_held(begin: str) -> None:
    found = await leaving(" ", f"\n{begin}", '{"x": 1}', request=ANY, options=EARLY)
    assert [in_short(events) for events in found] == [[], [], [], ['{"x": 1}']]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('{"x": "<key but one>', '{"x": "(masked)'),
        ('{"x": "<four of key>', '{"x": "<four of key>'),
        ('{"x": "\\u003', '{"x": "\\u003'),
        ('{"x": 5]', '{"x": 5'),
        ('\n \t{"x": tru', '{"x": tru'),
    ],
)
@pytest.mark.parametrize("size", [0, 1])
async def test_what_is_cut_or_broken_within_the_key_tells_no_more_of_it_than_before(
    written: str, told: str, size: int
) -> None:
    def filled(text: str, key: str) -> str:
        return text.replace("<key but one>", key[:-1]).replace("<four of key>", key[:4])

    def script(prompt: Prompt) -> list[BackendEvent]:
        return [*pieces(filled(written, key_in(prompt)), size), TurnEnded(USAGE, "max_output_tokens")]

    outcome = await outcome_of(KEYED, MemoryBackend([script]), EARLY)
    [key] = map(key_in, outcome.backend.prompts)
    assert outcome.text == filled(told, key).replace("(masked)", MASK)


async def test_the_key_is_masked_in_it() -> None:
    outcome = await outcome_of(KEYED, MemoryBackend([keyed(lambda key: f'{{"x": "{key}"}}')], 1), EARLY)
    assert (outcome.text, outcome.finished) == (f'{{"x": "{MASK}"}}', True)
