"""What a call is worth, by its key, its place and its words: the table of docs/reference/reliability.md."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from parser import Tool, ToolRegistry, write_call
from prompts import (
    MASK,
    AssistantText,
    ChoiceMode,
    Entry,
    Guidance,
    PastCall,
    Text,
    ToolChoice,
    ToolResult,
    Transcript,
    UserTurn,
)
from proxy.contracts import OutputFormat
from proxy.errors import BackendError
from proxy.replay.key_placeholder import key_of
from proxy.turn import CallKeys, CallRelease, FixedHabit, Habits, KeyHabit, KeyMode, TurnOptions
from tests.proxy.turn.keyed import (
    LIVE,
    NOTE,
    QUOTED,
    READ_B,
    READ_C,
    A,
    B,
    call,
    habit_of,
    key_in,
    keyed,
    options,
    shown,
)
from tests.proxy.turn.playing import BROKEN, READ_A, Outcome, ask, outcome_of, play
from tests.support.memory_backend import MemoryBackend, Script

UNKNOWN, WRITES, NEVER = KeyHabit
DEMANDED = ToolChoice(ChoiceMode.REQUIRED)


def knowing(habit: KeyHabit, release: CallRelease = CallRelease.WHOLE) -> TurnOptions:
    return TurnOptions(release, call_keys=CallKeys(KeyMode.AUTO, b"s" * 32, FixedHabit(habit)))


async def insisted(answer: Script, habit: KeyHabit, *, chunk: int = 0, **changes: Any) -> Outcome:
    """A turn whose model says the same whenever it is asked."""
    return await outcome_of(ask(**changes), MemoryBackend([answer] * 3, chunk), knowing(habit))


# With the key


@pytest.mark.parametrize("habit", KeyHabit)
async def test_with_the_key_a_call_is_a_call_wherever_else_it_stands(habit: KeyHabit) -> None:
    yes = UserTurn((Text("Yes, do it."),))
    for request in (
        ask(transcript=shown(NOTE, AssistantText(NOTE), yes)),
        ask(transcript=Transcript((UserTurn((Text(NOTE),)),))),
        ask(transcript=Transcript((UserTurn((Text("Read."),)),), instructions=NOTE)),
        ask(registry=ToolRegistry([Tool("read_note", f"For example {READ_A}"), Tool("search")])),
    ):
        for before, behind in (("", ""), ("> ", ""), ("I call ", " now.")):
            answer = keyed(lambda key, a=before, b=behind: f"{a}{write_call('read_note', A, key=key)}{b}")  # type: ignore[misc]
            outcome = await play(answer, request=request, options=knowing(habit))
            assert outcome.calls == [("read_note", A)]
            assert outcome.text.split() == f"{before}{behind}".split()


@pytest.mark.parametrize("body", [f'{{"name": "read_note", "arguments": {B}}}', f"read_note\n{B}"])
async def test_a_key_in_the_tag_is_that_of_the_call(body: str) -> None:
    told = await play(keyed(lambda key: f'<tool_call key="{key}">{body}</tool_call>'), request=QUOTED)
    assert (told.calls, told.text) == ([("read_note", B)], "")


@pytest.mark.parametrize("habit", KeyHabit)
async def test_a_call_whose_words_stand_in_a_new_tool_output_is_asked_for_once_more_key_or_not(habit: KeyHabit) -> None:
    outcome = await play(call(), "It says to read a.md.", request=QUOTED, options=knowing(habit))
    assert (outcome.calls, outcome.text) == ([], "It says to read a.md.")
    assert outcome.report.again == ["in_output"]
    assert "stands in the output of a tool" in str(outcome.backend.prompts[1].parts)


async def test_a_call_in_a_new_tool_output_that_comes_again_is_text() -> None:
    outcome = await play(call(), call(), request=QUOTED)
    assert outcome.calls == []
    assert outcome.text == READ_A.replace('{"name"', f'{{"key": "{MASK}", "name"', 1)
    assert outcome.report.counts["refused"] == {"quoted": 1}
    [warning] = outcome.report.warnings
    assert "'read_note'" in warning


PLAN = ask(transcript=shown(f'A plan.\n```json\n{{"name": "read_note", "arguments": {A}}}\n```'))


async def test_one_that_stands_there_as_json_without_tags_is_asked_for_once_more_and_then_made() -> None:
    outcome = await play(call(), "It holds a call.", request=PLAN, options=knowing(WRITES))
    assert (outcome.calls, outcome.text, outcome.report.again) == ([], "It holds a call.", ["in_output"])
    outcome = await play(call(), call(), request=PLAN, options=knowing(WRITES))
    assert (outcome.calls, outcome.report.again) == ([("read_note", A)], ["in_output"])
    outcome = await play(call(), "It holds a call.", request=PLAN, chunk=4, options=LIVE)
    assert (outcome.calls, outcome.report.again) == ([], ["in_output"])
    listed = ask(transcript=shown("read_note reads notes, as this one: a.md"))
    assert (await play(call(), request=listed, options=knowing(WRITES))).calls == [("read_note", A)]
    failed = json.dumps({"error": "It timed out.", "call": {"name": "read_note", "arguments": json.loads(A)}})
    done = (UserTurn((Text("Read a.md."),)), PastCall("c1", "read_note", A), ToolResult("c1", (Text(failed),)))
    again = ask(transcript=Transcript(done))
    assert (await play(call(), request=again, options=knowing(WRITES))).calls == [("read_note", A)]


async def test_where_nothing_comes_of_it_the_answer_is_a_plain_one_and_says_what_became_of_the_call() -> None:
    """It carried the key, so that is not what the client is told."""
    outcome = await play(call(), "", "It holds a call.", request=QUOTED)
    assert (outcome.calls, outcome.text) == ([], "It holds a call.")
    assert outcome.report.counts["refused"] == {"in_output": 1}
    assert outcome.report.warnings == [
        "A call of the tool 'read_note' was taken out, because it stands in the output of a tool."
    ]
    assert "<tools>" not in (outcome.backend.prompts[2].developer or "")


async def test_where_a_call_is_demanded_the_one_that_comes_again_is_it() -> None:
    demanded = replace(QUOTED, choice=DEMANDED)
    outcome = await play(call(), call(), request=demanded)
    assert outcome.calls == [("read_note", A)]


# A call that was made before


DONE = (UserTurn((Text("Read a.md."),)), PastCall("c1", "read_note", A), ToolResult("c1", (Text("# Beans and peas"),)))
SHOW = UserTurn((Text("Show me what you wrote."),))


@pytest.mark.parametrize("chunk", [0, 1, 7])
@pytest.mark.parametrize(
    "form",
    [
        "I wrote:\n> {call}",
        'I wrote "{call}".',
        "I wrote {call} to read it.",
        "I wrote:\n- {call}\n- and that was it",
        "I wrote:\n1. {call}",
        "I wrote:\n{call}\n[tool:c1] # Beans and peas",
        "I wrote:\n{call}\nThe note said: Beans and peas",
        "I wrote:\n\n    {call}",
        "I wrote **{call}**.",
    ],
)
async def test_a_call_that_has_its_result_is_shown_where_it_is_quoted_with_its_own_key(form: str, chunk: int) -> None:
    answer = keyed(lambda key: form.format(call=write_call("read_note", A, key=key)))
    request = ask(transcript=Transcript((*DONE, AssistantText("Beans."), SHOW)))
    outcome = await play(answer, request=request, options=knowing(WRITES), chunk=chunk)
    assert outcome.calls == []
    assert outcome.text == form.format(call=write_call("read_note", A, key=MASK))
    assert outcome.report.again == []


@pytest.mark.parametrize("chunk", [0, 1])
@pytest.mark.parametrize(
    "form", ["{call}", "I read it again. {call}", "{call}\nI read it again.", "\n{call}\n\nOne moment."]
)
async def test_anywhere_else_it_is_made_again(form: str, chunk: int) -> None:
    answer = keyed(lambda key: form.format(call=write_call("read_note", A, key=key)))
    request = ask(transcript=Transcript((*DONE, AssistantText("Beans."), UserTurn((Text("Again: it changed."),)))))
    outcome = await play(answer, request=request, options=knowing(WRITES), chunk=chunk)
    assert outcome.calls == [("read_note", A)]


@pytest.mark.parametrize(
    ("made", "shown"), [('{"path": "a.md", "line": null}', A), ('{"line": null, "path": "a.md"}',) * 2, (A, A)]
)
async def test_it_is_the_same_call_with_what_its_schema_added(made: str, shown: str) -> None:
    """The model reads its own words, and the client has null for what they left out."""
    schema = '{"properties": {"path": {"type": "string"}, "line": {"type": ["integer", "null"]}}, "required": ["line"]}'
    done = (DONE[0], PastCall("c1", "read_note", made), *DONE[2:], AssistantText("Beans."), SHOW)
    request = ask(transcript=Transcript(done), registry=ToolRegistry([Tool("read_note", None, schema)]))
    answer = keyed(lambda key: f"I wrote:\n> {write_call('read_note', shown, key=key)}")
    outcome = await play(answer, request=request, options=knowing(WRITES))
    assert (outcome.calls, outcome.report.again) == ([], [])


# Without it: where it stands


SENTENCES = (
    "To read it I would write {call} and then wait.",
    'You would write "{call}".',
    "(as {call})",
    "The form is [{call}].",
    "> {call}",
    "| what | how |\n|---|---|\n| read | {call} |",
    "So:\n\n    {call}",
    "# {call}",
    "// {call}",
    "<!-- {call} -->",
    "<pre><code>{call}</code></pre>",
    "<pre>\n{call}\n</pre>",
    "**{call}**",
    "tool: read_note\ncall: {call}",
    "call: |\n  {call}",
    "For example, {call} would read it.",
    "1. {call} reads the note.",
    "\u201c{call}\u201d",
    "\u00ab{call}\u00bb",
    'It wrote "{call}."',
    "(for example {call}; )",
    "**{call}...**",
    "\u300c{call}\u3002\u300d",
    "<b>{call}!</b>",
    '"{call}\\n"',
    'It wrote "{call}{call}" and waited.',
    'It wrote "{call} and {call}".',
    "It wrote \u201c{call}\n{call}\u201d",
    "@@ -1 +1 @@\n-{call}\n+{call}",
)


@pytest.mark.parametrize("chunk", [0, 1, 5])
@pytest.mark.parametrize("form", SENTENCES)
async def test_a_call_that_is_only_explained_is_text(form: str, chunk: int) -> None:
    """At once where it is known what the model does with the key; else after it was asked, which it is once."""
    text = form.format(call=READ_A)
    for habit in (WRITES, NEVER):
        outcome = await insisted(text, habit, chunk=chunk)
        assert (outcome.calls, outcome.text, outcome.report.again) == ([], text, [])
        assert outcome.report.warnings
    outcome = await insisted(text, UNKNOWN, chunk=chunk)
    assert outcome.calls == []
    assert outcome.text == text, "shown once, whatever was shown of the first answer"
    assert outcome.report.again == ["no_key"]


@pytest.mark.parametrize("chunk", [0, 1, 5])
@pytest.mark.parametrize("habit", KeyHabit)
async def test_so_is_a_block_over_the_lines_of_a_quotation(habit: KeyHabit, chunk: int) -> None:
    text = f"It is written so:\n> <tool_call>\n> {READ_A[11:-12]}\n> </tool_call>\nThat reads it."
    outcome = await insisted(text, habit, chunk=chunk)
    assert (outcome.calls, outcome.text, outcome.report.again) == ([], text, [])


@pytest.mark.parametrize("chunk", [0, 1, 5])
@pytest.mark.parametrize("block", [BROKEN, write_call("rm", A)])
@pytest.mark.parametrize("form", ['It wrote "{block}" there.', "> {block}", "\u201c{block}{block}\u201d"])
@pytest.mark.parametrize("habit", KeyHabit)
async def test_so_is_one_that_could_not_be_made(form: str, block: str, habit: KeyHabit, chunk: int) -> None:
    text = form.format(block=block)
    outcome = await insisted(text, habit, chunk=chunk)
    assert (outcome.calls, outcome.text, outcome.report.again) == ([], text, [])


@pytest.mark.parametrize("chunk", [0, 1, 5])
@pytest.mark.parametrize("form", ["To do it I call {call}, and wait.", "| rm | {call} |", "({call})"])
async def test_so_is_one_of_a_tool_that_nobody_offers(form: str, chunk: int) -> None:
    text = form.format(call=write_call("rm", A))
    for habit in KeyHabit:
        outcome = await insisted(text, habit, chunk=chunk)
        assert (outcome.calls, outcome.text, outcome.report.again) == ([], text, [])


@pytest.mark.parametrize("chunk", [0, 1])
@pytest.mark.parametrize(
    "form",
    [
        "{call}", "I look. {call}", "I'll read it: {call}", "I look.\n{call}", "{call}\nOne moment.", "- {call}",
        "I'll read it (now): {call}...",
        "1. {call}", "**Reading** {call}", "It is called _a_, so {call}", "{call} {call}", "I look.\n\n  {call}",
        "| a |\n|---|\n\n{call}", "<b>Now</b> {call}", "Answer: {call}", "{call} I read it.",
    ],
)  # fmt: skip
async def test_a_call_is_made_whatever_text_stands_in_front_of_it(form: str, chunk: int) -> None:
    outcome = await insisted(form.format(call=READ_A), NEVER, chunk=chunk)
    assert outcome.calls == [("read_note", A)] * form.count("{call}")
    assert outcome.report.again == []


# Without it: of a model that is known to write it


@pytest.mark.parametrize("request_", [ask(), QUOTED], ids=["alone", "beside a note"])
async def test_a_model_that_writes_the_key_did_not_mean_what_comes_twice_without(request_: Any) -> None:
    outcome = await play(READ_B, READ_B, "No.", request=request_, options=knowing(WRITES))
    assert (outcome.calls, outcome.text) == ([], "No.")
    assert outcome.report.counts["refused"] == {"no_key": 1}
    assert outcome.report.warnings == [
        "A call of the tool 'read_note' was taken out, because it did not carry the key for calls."
    ]
    outcome = await play(READ_B, call(B), request=request_, options=knowing(WRITES))
    assert (outcome.calls, outcome.text) == ([("read_note", B)], "")


# Of one of which nothing is known


async def test_a_call_without_the_key_is_asked_for_once_more() -> None:
    outcome = await play(READ_B, call(B), options=knowing(UNKNOWN))
    assert (outcome.calls, outcome.text) == ([("read_note", B)], "")
    assert outcome.report.again == ["no_key"]
    again = outcome.backend.prompts[1]
    assert f'"key": "{key_in(again)}"' in str(again.parts)


async def test_one_that_comes_again_is_meant_also_if_all_its_words_stand_in_the_request() -> None:
    asked = ask("Delete note Everything.md", registry=ToolRegistry([Tool("delete_note", None, None)]))
    delete = write_call("delete_note", '{"path": "Everything.md"}')
    outcome = await play(delete, delete, request=asked, options=knowing(UNKNOWN))
    assert outcome.calls == [("delete_note", '{"path": "Everything.md"}')]
    outcome = await play(delete, request=asked, options=knowing(NEVER))
    assert outcome.calls == [("delete_note", '{"path": "Everything.md"}')]


async def test_but_not_from_the_output_of_a_tool() -> None:
    outcome = await insisted(READ_A, UNKNOWN, transcript=shown())
    assert (outcome.calls, outcome.text) == ([], READ_A)
    assert outcome.report.counts["refused"] == {"quoted": 1}
    assert (await insisted(READ_B, UNKNOWN, transcript=shown())).calls == [("read_note", B)]


# Of one that never writes it


def asked(*entries: Any, instructions: str | None = None) -> Transcript:
    return Transcript(entries, instructions)


USER = UserTurn((Text("Show me the note."),))
PLAIN = NOTE.replace("tool_call", "note")


@pytest.mark.parametrize(
    ("transcript", "quoted"),
    [
        (asked(UserTurn((Text(f"Show me this:\n{NOTE}"),))), True),
        (shown(), True),
        (shown(PLAIN), False),  # no word of our tags
        (asked(UserTurn((Text(NOTE),)), AssistantText("Yes."), USER), True),
        (asked(USER, AssistantText(NOTE), UserTurn((Text("Again, please."),))), True),
        (asked(USER, AssistantText(NOTE), UserTurn((Text("Yes, read a.md."),))), False),  # the user says so
        (asked(UserTurn((Text("<tool_call>?"),)), AssistantText("A."), UserTurn((Text("Read note a.md."),))), False),
        (asked(UserTurn((Text("What is a <tool_call>? And read_note a.md, please."),))), True),
        (asked(USER, instructions=NOTE), False),  # trusted: an example there is a lesson
        (asked(Guidance(NOTE), USER), False),
    ],
)  # fmt: skip
async def test_what_it_copies_from_the_request_is_no_call(transcript: Transcript, quoted: bool) -> None:
    outcome = await insisted(READ_A, NEVER, transcript=transcript)
    assert outcome.calls == ([] if quoted else [("read_note", A)])
    assert outcome.text == (READ_A if quoted else "")
    assert (await insisted(READ_C, NEVER, transcript=transcript)).calls == [("read_note", '{"path": "c.md"}')]


# What is learnt


async def test_a_model_without_the_key_costs_two_second_tries_and_no_more() -> None:
    chosen = options()
    tries = []
    for conversation in range(4):
        begun = UserTurn((Text(f"Question {conversation}"),))
        for turn in range(3):
            done: list[Entry] = [PastCall(f"c{turn}", "search", "{}"), ToolResult(f"c{turn}", (Text("-"),))] * turn
            answer = f"I look. {READ_B}" if conversation else READ_B + READ_C
            request = ask(transcript=Transcript((begun, *done)))
            outcome = await outcome_of(request, MemoryBackend([answer] * 2), chosen)
            assert len(outcome.calls) == (1 if conversation else 2)
            tries.append(len(outcome.report.again))
    assert tries == [1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert habit_of(chosen) is NEVER


@pytest.mark.parametrize(
    ("answer", "transcript"),
    [
        (f"You write {READ_A} for that.", None),
        (f"> {READ_A}", None),
        (READ_A, shown()),
        (READ_A, Transcript((UserTurn((Text(f"Show me:\n{NOTE}"),)),))),
    ],
)
async def test_an_explanation_teaches_nothing_of_a_model(answer: str, transcript: Transcript | None) -> None:
    chosen = options()
    for number in range(3):
        request = ask(f"Explain it, {number}", **({"transcript": transcript} if transcript else {}))
        await outcome_of(request, MemoryBackend([answer] * 3), chosen)
    assert habit_of(chosen) is UNKNOWN


async def test_a_demanded_call_that_the_request_spells_out_teaches_nothing_either() -> None:
    chosen = options()
    for number in range(3):
        request = ask(f"Make this call, {number}:\n{READ_A}", choice=DEMANDED)
        assert (await outcome_of(request, MemoryBackend([READ_A] * 3), chosen)).calls == [("read_note", A)]
    assert habit_of(chosen) is UNKNOWN


async def test_a_model_that_gives_the_key_up_is_known_to_after_two_conversations() -> None:
    chosen = options(habit=WRITES)
    for number in range(2):
        await play(READ_B, READ_B, "No.", request=ask(f"Read it {number}"), options=chosen)
    assert habit_of(chosen) is NEVER


async def test_the_key_in_a_first_answer_shows_that_a_model_writes_it_and_in_a_second_one_nothing() -> None:
    chosen = options()
    await play(READ_B, call(B), options=chosen)
    assert habit_of(chosen) is UNKNOWN, "it was told to"
    await play(call(B), options=chosen)
    assert habit_of(chosen) is WRITES


async def test_what_is_learnt_is_learnt_of_one_owners_model() -> None:
    habits = Habits()
    chosen = TurnOptions(call_keys=CallKeys(KeyMode.AUTO, b"s" * 32, habits))
    for number in range(2):
        await play(READ_B, READ_B, request=ask(f"Read it {number}", owner="one"), options=chosen)
    assert (await play(READ_B, request=ask("And now?", owner="one"), options=chosen)).calls
    assert (await play(READ_B, READ_B, request=ask("And now?", owner="two"), options=chosen)).report.again == ["no_key"]


# Several calls


async def test_where_the_first_lacks_the_key_none_leaves_and_the_whole_answer_is_asked_for_once_more() -> None:
    both = keyed(lambda key: write_call("search", "{}", key=key) + write_call("read_note", B, key=key))
    mixed = keyed(lambda key: READ_B + write_call("search", "{}", key=key))
    for release in CallRelease:
        outcome = await play(mixed, both, options=knowing(UNKNOWN, release), chunk=4)
        assert outcome.calls == [("search", "{}"), ("read_note", B)]
        assert outcome.report.again == ["no_key"]


@pytest.mark.parametrize("habit", KeyHabit)
async def test_a_call_without_the_key_behind_one_with_it_is_one_unless_its_words_stand_in_the_request(
    habit: KeyHabit,
) -> None:
    outcome = await play(lambda prompt: call(B)(prompt) + READ_C, request=QUOTED, options=knowing(habit))
    assert outcome.calls == [("read_note", B), ("read_note", '{"path": "c.md"}')]
    outcome = await play(lambda prompt: call(B)(prompt) + READ_A, request=QUOTED, options=knowing(habit))
    assert (outcome.calls, outcome.text) == ([("read_note", B)], READ_A), "as it stands there"
    spoken_of = ask(transcript=shown("A <tool_call> of read_note would show a.md."))
    outcome = await play(lambda prompt: call(B)(prompt) + READ_A, request=spoken_of, options=knowing(habit))
    assert (outcome.calls, outcome.text) == ([("read_note", B)], ""), "it writes the key, as is seen now"
    assert outcome.report.warnings
    shown_too = lambda prompt: f"{call(B)(prompt)}It is as if I had written {READ_C} here."  # noqa: E731
    outcome = await play(shown_too, request=QUOTED, options=knowing(habit))
    assert (outcome.calls, outcome.text) == ([("read_note", B)], f"It is as if I had written {READ_C} here.")


# Where a call is demanded


async def test_a_demanded_call_that_comes_again_is_one_unless_its_words_stand_behind_the_last_message() -> None:
    for habit in (UNKNOWN, WRITES):
        outcome = await insisted(READ_A, habit, text=f"Make this call:\n{READ_A}", choice=DEMANDED)
        assert (outcome.calls, outcome.report.again) == ([("read_note", A)], ["no_key"])
        outcome = await insisted(f"I call {READ_A} now.", habit, choice=DEMANDED)
        assert outcome.calls == [("read_note", A)]
        outcome = await insisted(READ_A, habit, transcript=shown(), choice=DEMANDED)
        assert (outcome.calls, outcome.error.code) == ([], "tool_call_missing")
    outcome = await insisted(READ_A, NEVER, text=f"Make this call:\n{READ_A}", choice=DEMANDED)
    assert (outcome.calls, outcome.report.again) == ([("read_note", A)], [])


@pytest.mark.parametrize("chunk", [0, 1, 5])
@pytest.mark.parametrize(
    "form",
    [
        "```\n{call}\n```",
        "I look.\n\n```xml\n{call}\n```\nOne moment.",
        "`{call}`",
        "~~~~json\n{call}\n{call}\n~~~~",
        # In code it is no thought, which would swallow the call.
        "`<think>` goes first.\n```\n{call}\n```",
    ],
)
@pytest.mark.parametrize("habit", KeyHabit)
async def test_a_demanded_call_is_one_in_code_too(habit: KeyHabit, form: str, chunk: int) -> None:
    with_key = keyed(lambda key: form.format(call=write_call("read_note", A, key=key)))
    answer = form.format(call=READ_A) if habit is NEVER else with_key
    outcome = await insisted(answer, habit, chunk=chunk, choice=DEMANDED)
    assert (outcome.calls, outcome.report.again) == ([("read_note", A)] * form.count("{call}"), [])
    outcome = await insisted(answer, habit, chunk=chunk)
    assert (outcome.calls, outcome.report.again) == ([], [])


@pytest.mark.parametrize("chunk", [0, 1, 5])
async def test_a_demanded_call_is_one_in_code_also_behind_a_result_that_is_text(chunk: int) -> None:
    wrong = write_call("read_note", A, key="0abcdefghi")
    answer = keyed(lambda key: f"{wrong}\n[tool:c] # A\n```\n{write_call('read_note', B, key=key)}\n```")
    outcome = await insisted(answer, KeyHabit.WRITES, chunk=chunk, choice=DEMANDED)
    assert (outcome.calls, outcome.report.again) == ([("read_note", B)], ["wrong_key"])


# With another key


async def test_another_key_is_asked_for_once_more_and_then_taken_out() -> None:
    wrong = write_call("read_note", B, key="0abcdefghi")
    outcome = await play(wrong, call(B))
    assert outcome.calls == [("read_note", B)]
    assert outcome.report.again == ["wrong_key"]
    outcome = await play(wrong, wrong, "No.")
    assert (outcome.calls, outcome.text) == ([], "No.")
    assert outcome.report.warnings == [
        "A call of the tool 'read_note' was taken out, because it carried another key for calls than its own."
    ]
    assert outcome.report.counts["refused"] == {"wrong_key": 1}


@pytest.mark.parametrize("key", ["<key>", "...", "4fwdqcoamb"])
@pytest.mark.parametrize(
    "form", ['You would write "{call}".', "> {call}", "| how |\n|---|\n| {call} |", "So {call} does."]
)
@pytest.mark.parametrize("habit", KeyHabit)
async def test_where_a_call_is_shown_a_key_that_is_made_up_is_none(habit: KeyHabit, form: str, key: str) -> None:
    text = form.format(call=write_call("read_note", A, key=key))
    outcome = await insisted(text, habit)
    assert (outcome.calls, outcome.text) == ([], text)
    assert outcome.report.again == (["no_key"] if habit is UNKNOWN else [])
    outcome = await insisted(text, habit, choice=DEMANDED)
    assert (outcome.calls, outcome.report.again) == ([], ["wrong_key"])


FOREIGN = write_call("read_note", A, key="4fwdqcoamb")


@pytest.mark.parametrize("asked_", [UserTurn((Text(f"Show me this:\n{FOREIGN}"),)), None])
async def test_a_block_that_was_copied_with_its_key_is_text_at_once(asked_: UserTurn | None) -> None:
    """A note about calls may hold a key of its own, or of another conversation."""
    transcript = Transcript((asked_,)) if asked_ else shown(FOREIGN)
    outcome = await play(f"It says:\n{FOREIGN}", request=ask(transcript=transcript))
    assert (outcome.calls, outcome.text) == ([], f"It says:\n{FOREIGN}")
    assert outcome.report.again == []
    assert outcome.report.counts["refused"] == {"quoted": 1}


async def test_a_key_that_was_copied_wrong_or_from_a_note_is_mended_in_a_call_that_is_meant() -> None:
    asked_ = Transcript((UserTurn((Text(f"Yes, run this: {FOREIGN}"),)),))
    for transcript, foreign, arguments in (
        (asked_, "4fwdqcoamc", A),
        (asked_, "4fwdqcoamb", B),
        (shown(FOREIGN), "4fwdqcoamb", B),
    ):
        wrong = write_call("read_note", arguments, key=foreign)
        outcome = await play(wrong, call(arguments), request=ask(transcript=transcript))
        assert outcome.calls == [("read_note", arguments)]
        assert outcome.report.again == ["wrong_key"]


# Live


@pytest.mark.parametrize("note", [NOTE, NOTE.replace("tool_call", "t\u03bfol_call")])
async def test_beside_a_new_output_with_the_word_of_our_tags_nothing_leaves_live(note: str) -> None:
    outcome = await play(call(B), request=ask(transcript=shown(note)), chunk=4, options=LIVE)
    assert (outcome.calls, sum(event.__class__.__name__ == "ToolCallArguments" for event in outcome.events)) == (
        [("read_note", B)],
        1,
    )


async def test_live_leaves_what_has_the_key_and_of_a_model_without_it_what_nothing_could_be_a_copy_of() -> None:
    long = '{"path": "a.md", "text": "some more words"}'
    for answer, habit, text, live in (
        (call(long), UNKNOWN, "", True),
        (call(long), UNKNOWN, "I look. ", True),
        (write_call("read_note", long), NEVER, "", True),
        (write_call("read_note", long), NEVER, "I look. ", False),
    ):
        written: Script = (lambda prompt, a=answer, t=text: t + a(prompt)) if callable(answer) else text + answer
        outcome = await play(written, chunk=4, options=knowing(habit, CallRelease.LIVE))
        pieces = sum(event.__class__.__name__ == "ToolCallArguments" for event in outcome.events)
        assert (outcome.calls, pieces > 2) == ([("read_note", long)], live)
    quoted = ask(transcript=Transcript((UserTurn((Text(f"About {READ_A}"),)),)))
    outcome = await play(
        write_call("read_note", long), request=quoted, chunk=4, options=knowing(NEVER, CallRelease.LIVE)
    )
    assert sum(event.__class__.__name__ == "ToolCallArguments" for event in outcome.events) == 1
    outcome = await play(READ_B, call(B), chunk=4, options=knowing(UNKNOWN, CallRelease.LIVE))
    assert (outcome.calls, outcome.report.again) == ([("read_note", B)], ["no_key"])


# The modes


async def test_a_doubtful_call_is_not_shown_when_the_second_answer_is_none() -> None:
    outcome = await play(READ_B, BackendError("Gone."), options=knowing(UNKNOWN))
    assert (outcome.calls, outcome.text, outcome.error.message) == ([], "", "Gone.")
    outcome = await play(f"I look. {READ_B}", BackendError("Gone."), request=QUOTED, options=knowing(UNKNOWN))
    assert outcome.finished
    assert (outcome.calls, outcome.text) == ([], "I look. ")
    assert outcome.report.warnings


async def test_where_the_key_is_required_a_block_without_it_is_taken_out() -> None:
    answer = keyed(lambda key: READ_B + write_call("read_note", A, key=key))
    outcome = await play(answer, options=options(KeyMode.REQUIRED))
    assert outcome.calls == [("read_note", A)]
    assert outcome.text == ""
    assert outcome.report.counts["refused"] == {"no_key": 1}
    explained = f"You write {READ_B} for that."
    outcome = await play(explained, options=options(KeyMode.REQUIRED))
    assert (outcome.calls, outcome.text) == ([], explained)


async def test_where_there_is_no_key_calls_are_judged_as_of_a_model_that_never_writes_it() -> None:
    chosen = options(KeyMode.OFF)
    outcome = await play(NOTE, request=QUOTED, options=chosen)
    assert (outcome.calls, outcome.text) == ([], NOTE)
    assert key_of(outcome.backend.prompts[0].developer) is None
    assert (await play(READ_B, request=QUOTED, options=chosen)).calls == [("read_note", B)]


async def test_the_schema_of_the_answer_is_trusted() -> None:
    schema = json.dumps({"type": "object", "description": READ_A})
    request = ask(output_format=OutputFormat(schema))
    outcome = await play(READ_A, request=request, options=options(KeyMode.OFF))
    assert outcome.calls == [("read_note", A)]
