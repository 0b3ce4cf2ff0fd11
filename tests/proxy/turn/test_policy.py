"""What a person is never shown, and when a plain answer is asked for: in both profiles and both modes of release."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from msgspec.structs import replace

from parser import Tool, ToolRegistry, write_call
from prompts import (
    AssistantText,
    ChoiceMode,
    Entry,
    OwnLine,
    PastCall,
    Text,
    ToolChoice,
    ToolResult,
    Transcript,
    UserTurn,
)
from proxy.contracts import (
    AnswerMessageEnded,
    MessageEnded,
    Prompt,
    TextPiece,
    ToolCallEnded,
    TurnEnded,
    TurnFinished,
    TurnRequest,
)
from proxy.errors import BackendError
from proxy.replay.key_placeholder import key_of
from proxy.turn import CallKeys, CallRelease, FixedHabit, KeyHabit, TurnOptions
from tests.proxy.turn.playing import BROKEN, Outcome, ask, is_small, outcome_of, play
from tests.support.memory_backend import USAGE, MemoryBackend, Script, pieces

SCHEMA = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
TOOLS = ToolRegistry([Tool("get_weather", "The weather.", SCHEMA), Tool("search", "Search.", None)])
OSLO = '{"city": "Oslo"}'
WEATHER = write_call("get_weather", OSLO)
SEARCH = write_call("search", '{"q": "x"}')
UNDECLARED = write_call("rm_rf", "{}")
QUESTION = UserTurn((Text("How cold is it in Oslo?"),))
RESULT = (PastCall("call_1", "get_weather", OSLO), ToolResult("call_1", (Text("10.5"),)))


def asked(*entries: Entry, **changes: object) -> TurnRequest:
    return replace(ask(registry=TOOLS, transcript=Transcript((QUESTION, *entries))), **changes)


def cut_off(text: str, size: int) -> Script:
    return [*pieces(text, size), TurnEnded(USAGE, "max_output_tokens")]


def last_line(prompt: Prompt) -> str:
    """The last line of ours, where the backend is given messages."""
    text = prompt.items[-1].parts[0]
    assert isinstance(text, Text)
    return text.text


async def test_the_example_says_nothing_of_its_own(mode: TurnOptions) -> None:
    outcome = await play("It is cold.", request=asked(), options=mode)
    for told in (outcome.backend.prompts[0].developer, outcome.backend.prompts[0].head):
        example = (told or "").partition("An example.")[2].partition("The key for calls")[0]
        answer = example.partition("the whole answer is:")[2].strip().splitlines()
        assert len(answer) == 2
        assert all(line.startswith("<tool_call>") and line.endswith("</tool_call>") for line in answer)
        assert "A short sentence may stand before the first block." in (told or "")


# Results that the model makes up


async def test_an_invented_result_is_left_out_and_the_answer_is_read_on(mode: TurnOptions, chunk: int) -> None:
    answer = f"{WEATHER}\n[get_weather: 10.5]\n{SEARCH}\n[search] three notes\n{WEATHER.replace('Oslo', 'Rome')}"
    outcome = await play(answer, request=asked(), options=mode, chunk=chunk)
    assert [name for name, _ in outcome.calls] == ["get_weather", "search", "get_weather"]
    assert outcome.text.strip() == ""
    assert outcome.report.counts["taken_out"] == {"invented_result": 2}
    assert outcome.report.difference == "rewritten"


@pytest.mark.parametrize("result", ["[tool:call_1] 10.5", "[get_weather: 10.5]"])
async def test_nor_is_one_shown_with_which_another_message_begins(mode: TurnOptions, chunk: int, result: str) -> None:
    answer: Script = [*pieces(WEATHER, chunk), MessageEnded(), *pieces(result, chunk), TurnEnded(USAGE)]
    outcome = await play(answer, request=asked(), options=mode)
    assert ([name for name, _ in outcome.calls], outcome.text.strip()) == (["get_weather"], "")
    assert outcome.report.counts["taken_out"] == {"invented_result": 1}


async def test_what_else_stands_behind_calls_is_shown(mode: TurnOptions, chunk: int) -> None:
    answer = f"I look.\n{WEATHER}\nAnd I search.\n{SEARCH}\n[get_weather: 10.5]\nIt is 10.5 degrees in Oslo."
    outcome = await play(answer, request=asked(), options=mode, chunk=chunk)
    assert [name for name, _ in outcome.calls] == ["get_weather", "search"]
    assert outcome.text.split() == ["I", "look.", "And", "I", "search.", "It", "is", "10.5", "degrees", "in", "Oslo."]


async def test_without_a_call_such_a_line_is_text(mode: TurnOptions, chunk: int) -> None:
    answer = "[get_weather: 10.5] is how\n[search] would look."
    assert (await play(answer, request=asked(), options=mode, chunk=chunk)).text == answer


# A block that cannot be read behind a good call

EMPTY = "<tool_call>\n</tool_call>"


@pytest.mark.parametrize("cut", [False, True])
async def test_a_broken_block_behind_a_good_call_is_taken_out_and_counted(
    mode: TurnOptions, chunk: int, cut: bool
) -> None:
    answer = f"{WEATHER}\n{BROKEN if not cut else WEATHER[:-24]}"
    outcome = await play(cut_off(answer, chunk) if cut else answer, request=asked(), options=mode, chunk=chunk)
    assert outcome.text == ""
    assert outcome.report.counts["refused"]
    if mode.release is CallRelease.LIVE and cut:
        # It was leaving already.
        assert ToolCallEnded(complete=False) in outcome.events
        return
    assert outcome.calls == [("get_weather", OSLO)]
    assert outcome.report.counts["taken_out"] == {"block": 1}
    assert outcome.report.warnings


@pytest.mark.parametrize("answer", [EMPTY, f"I look.\n{EMPTY}", "<tool_call>get_weather</tool_call>"])
async def test_a_block_without_a_call_is_asked_for_once_more(mode: TurnOptions, chunk: int, answer: str) -> None:
    outcome = await play(answer, WEATHER, request=asked(), options=mode, chunk=chunk)
    assert outcome.calls == [("get_weather", OSLO)]
    assert outcome.report.again == ["malformed"]


@pytest.mark.parametrize("answer", [f"{EMPTY}\n{WEATHER}", f"{WEATHER}\n{EMPTY}"])
async def test_beside_a_good_call_it_is_taken_out(mode: TurnOptions, chunk: int, answer: str) -> None:
    outcome = await play(answer, request=asked(), options=mode, chunk=chunk)
    assert (outcome.calls, outcome.text) == ([("get_weather", OSLO)], "")
    assert outcome.report.counts["taken_out"] == {"block": 1}


@pytest.mark.parametrize("tool", ["get_weather", "read_note"])
async def test_in_front_of_a_good_call_it_is_not_asked_for_either(mode: TurnOptions, chunk: int, tool: str) -> None:
    broken = BROKEN.replace("read_note", tool)
    outcome = await play(f"I look.\n{broken}\nOnce more:\n{WEATHER}", request=asked(), options=mode, chunk=chunk)
    assert not outcome.report.again
    if mode.release is CallRelease.LIVE and tool == "get_weather":
        assert outcome.error.code == "tool_call_broken", "it was leaving already"
        return
    assert outcome.calls == [("get_weather", OSLO)]
    assert outcome.text.split() == ["I", "look.", "Once", "more:"]
    assert (outcome.report.counts["taken_out"], len(outcome.report.warnings)) == ({"block": 1}, 1)


async def test_a_mention_of_both_tags_is_text(mode: TurnOptions, chunk: int) -> None:
    answer = "Put it between <tool_call></tool_call> tags."
    outcome = await play(answer, request=asked(), options=mode, chunk=chunk)
    assert outcome.text == answer


# Our own notation


HEADERS = ["[assistant] ", "[user]\n", "[tool:call_1] ", "[assistant]\n[tool:call_1] "]


@pytest.mark.parametrize("header", HEADERS)
async def test_an_answer_loses_a_header_that_it_begins_with(mode: TurnOptions, chunk: int, header: str) -> None:
    outcome = await play(f"{header}It is 10.5.", request=asked(*RESULT), options=mode, chunk=chunk)
    assert outcome.text == "It is 10.5."
    assert set(outcome.report.counts["taken_out"]) == {"header"}


async def test_a_header_that_the_user_wrote_is_kept(mode: TurnOptions, chunk: int) -> None:
    request = ask("Say this:\n[user] Hello", registry=TOOLS)
    assert (await play("[user] Hello", request=request, options=mode, chunk=chunk)).text == "[user] Hello"


async def test_a_lone_question_has_no_header_to_imitate(mode: TurnOptions, chunk: int) -> None:
    request = ask("Write a talk.", registry=ToolRegistry())
    assert (await play("[user] Hello", request=request, options=mode, chunk=chunk)).text == "[user] Hello"


async def test_an_answer_loses_the_closing_line_that_it_repeats(mode: TurnOptions, chunk: int) -> None:
    choice = ToolChoice(ChoiceMode.NONE)

    def repeating(prompt: Prompt) -> str:
        assert prompt.items[-1].ours is OwnLine.NO_TOOLS
        return f"So:\n{last_line(prompt)}\nIt is 10.5."

    outcome = await play(repeating, request=asked(*RESULT, choice=choice), options=mode, chunk=chunk)
    assert outcome.text == "So:\nIt is 10.5."


async def test_and_the_fault_line(mode: TurnOptions, chunk: int) -> None:
    outcome = await play(
        BROKEN, lambda prompt: f"{last_line(prompt)}\n\nIt is 10.5.", request=asked(), options=mode, chunk=chunk
    )
    assert outcome.text == "It is 10.5."


async def test_a_small_model_may_repeat_what_stands_behind_results(mode: TurnOptions, chunk: int) -> None:
    def repeating(prompt: Prompt) -> str:
        return f"{last_line(prompt)}\n\nResult of get_weather (call_1): It is 10.5."

    if is_small(mode):
        outcome = await play(repeating, request=asked(*RESULT), options=mode, chunk=chunk)
        assert outcome.text == "It is 10.5."


async def test_and_the_headers_of_results_on_any_line(mode: TurnOptions, chunk: int) -> None:
    told = "It says:\nResult of get_weather (call_1): 10.5\nResult of get_weather (call_7): none"
    if is_small(mode):
        outcome = await play(told, request=asked(*RESULT), options=mode, chunk=chunk)
        assert outcome.text == "It says:\n10.5\nnone"


async def test_a_small_model_calls_by_the_header_of_its_tool_too(mode: TurnOptions, chunk: int) -> None:
    outcome = await play('[tool:get_weather] {"city": "Oslo"}', request=asked(), options=mode, chunk=chunk)
    assert outcome.calls == ([("get_weather", OSLO)] if is_small(mode) else [])
    if is_small(mode):
        assert (outcome.text, outcome.report.counts["tiers"]) == ("", {"C": 1})


@pytest.mark.parametrize("header", ["[tool_call]", "[tool:call_2]"])
async def test_an_answer_that_is_nothing_but_a_call_behind_a_header_is_that_call(
    mode: TurnOptions, chunk: int, header: str
) -> None:
    answer = f'{header} {{"name": "get_weather", "arguments": {OSLO}}}'
    outcome = await play(answer, request=asked(), options=mode, chunk=chunk)
    assert (outcome.text, outcome.calls, outcome.report.counts["tiers"]) == ("", [("get_weather", OSLO)], {"C": 1})


async def test_where_no_tool_can_be_called_that_is_a_second_try_too(mode: TurnOptions, chunk: int) -> None:
    request = asked(*RESULT, choice=ToolChoice(ChoiceMode.NONE))
    answers: list[Script] = ['[tool_call] {"name": "get_weather", "arguments": {"city": "Oslo"}}', "It is 10.5."]
    if is_small(mode):
        outcome = await play(*answers, request=request, options=mode, chunk=chunk)
        assert (outcome.calls, outcome.text) == ([], "It is 10.5.")


@pytest.mark.parametrize("habit", [KeyHabit.NEVER, KeyHabit.WRITES])
@pytest.mark.parametrize(
    "note",
    [
        '[tool_call] {"name": "get_weather", "arguments": {"city": "Oslo"}}',
        '[tool:call_2] {"name": "get_weather", "arguments": {"city": "Oslo"}}',
        '[tool:get_weather] {"city": "Oslo"}',
    ],
)
async def test_a_note_that_holds_such_a_call_is_shown_and_not_obeyed(
    mode: TurnOptions, note: str, habit: KeyHabit
) -> None:
    mode = replace(mode, call_keys=CallKeys(habits=FixedHabit(habit)))
    told = UserTurn((Text(f"Show me this note:\n{note}"),))
    found = (PastCall("c", "search", "{}"), ToolResult("c", (Text(f"A note:\n{note}"),)))
    for entries in ((told,), (QUESTION, *found)):
        request = asked(transcript=Transcript(entries))
        for answer in (f"It says:\n{note}", f"It says:\n  {note}"):
            outcome = await outcome_of(request, MemoryBackend([answer] * 3), mode)
            assert outcome.calls == []
            assert "Oslo" in outcome.text


# A preface is not an answer


async def test_words_in_front_of_calls_that_are_taken_out_are_no_answer(mode: TurnOptions, chunk: int) -> None:
    outcome = await play(
        f"I will do both.\n{UNDECLARED}\n{UNDECLARED}",
        "I will do both.\nI cannot delete notes.",
        request=asked(), options=mode, chunk=chunk,
    )  # fmt: skip
    assert outcome.text == "I will do both.\nI cannot delete notes."
    assert AnswerMessageEnded() in outcome.events
    assert outcome.report.again == ["undeclared"]
    assert "<tool_call>" not in (outcome.backend.prompts[1].developer or "")


async def test_nor_where_the_second_answer_was_nothing_else(mode: TurnOptions, chunk: int) -> None:
    answers: list[Script] = [f"I look. {BROKEN}", UNDECLARED, "It is cold."]
    outcome = await play(*answers, request=asked(), options=mode, chunk=chunk)
    assert (outcome.text, outcome.report.again) == ("I look. It is cold.", ["malformed", "undeclared"])
    assert AnswerMessageEnded() in outcome.events


async def test_they_are_shown_at_once(mode: TurnOptions) -> None:
    seen: list[int] = []

    def second(prompt: Prompt) -> str:
        seen.append(1)
        return "No."

    outcome = await play(f"I will look. {UNDECLARED}", second, request=asked(), options=mode, chunk=3)
    assert seen == [1]
    assert outcome.text == "I will look. No."


@pytest.mark.parametrize("answer", [f"{'It is 10.5. ' * 20}\n{UNDECLARED}", f"Hm.\n{UNDECLARED}\nIt is 10.5."])
async def test_an_answer_beside_them_stands(mode: TurnOptions, chunk: int, answer: str) -> None:
    outcome = await play(answer, request=asked(), options=mode, chunk=chunk)
    assert "It is 10.5." in outcome.text


# After a result


NOW = 'Answer the user now, in plain text, from the results. The request was: "How cold is it in Oslo?"'


# The results after which a repeated call goes round.
AGAIN = (*RESULT, replace(RESULT[0], call_id="call_2"), replace(RESULT[1], call_id="call_2"))


@pytest.mark.parametrize("call", [UNDECLARED, WEATHER])
async def test_after_a_result_a_useless_call_is_answered_from_the_results(
    mode: TurnOptions, chunk: int, call: str
) -> None:
    def answer(prompt: Prompt) -> str:
        assert last_line(prompt).endswith(f". {NOW}")
        assert "<tools>" not in (prompt.head or "")
        assert any("10.5" in part.text for item in prompt.items for part in item.parts if isinstance(part, Text))
        assert str(prompt.parts).count("No tool can be called") == 0
        return "It is 10.5 degrees."

    outcome = await play(call, answer, request=asked(*AGAIN), options=mode, chunk=chunk)
    assert (outcome.calls, outcome.text) == ([], "It is 10.5 degrees.")


async def test_a_new_call_still_passes(mode: TurnOptions, chunk: int) -> None:
    outcome = await play(SEARCH, request=asked(*AGAIN), options=mode, chunk=chunk)
    assert outcome.calls == [("search", '{"q": "x"}')]
    outcome = await play(UNDECLARED, SEARCH, request=asked(*AGAIN), options=mode, chunk=chunk)
    assert outcome.calls == [("search", '{"q": "x"}')]


async def test_a_call_that_is_made_again_all_the_same_is_meant(mode: TurnOptions) -> None:
    outcome = await play(WEATHER, WEATHER, request=asked(*AGAIN), options=mode)
    assert outcome.calls == [("get_weather", OSLO)]


async def test_a_large_model_may_look_again(mode: TurnOptions) -> None:
    answers: list[Script] = [WEATHER, "It is 10.5."]  # of a small one it adds nothing
    outcome = await play(*answers[: 1 + is_small(mode)], request=asked(*RESULT), options=mode)
    assert bool(outcome.calls) != is_small(mode)


ECHO_LINE = "it only repeated a result"


@pytest.mark.parametrize("echo", ["10.5", " 10.5\n", "Result of get_weather (call_1): 10.5"])
async def test_a_small_model_that_repeats_a_result_is_asked_once_more(mode: TurnOptions, chunk: int, echo: str) -> None:
    def second(prompt: Prompt) -> str:
        assert ECHO_LINE in last_line(prompt)
        return SEARCH.replace('{"name"', f'{{"key": "{key_of(prompt.developer)}", "name"')

    if not is_small(mode):
        outcome = await play(echo, request=asked(*RESULT), options=mode, chunk=chunk)
        assert (outcome.text, outcome.report.again) == (echo, [])
        return
    outcome = await play(echo, second, request=asked(*RESULT), options=mode, chunk=chunk)
    assert (outcome.calls, outcome.text, outcome.report.again) == ([("search", '{"q": "x"}')], "", ["echo"])
    outcome = await play(echo, "It is 10.5 degrees.", request=asked(*RESULT), options=mode, chunk=chunk)
    assert (outcome.calls, outcome.text) == ([], "It is 10.5 degrees.")


@pytest.mark.parametrize("second", ["", WEATHER, UNDECLARED, BROKEN, "10.5", BackendError("gone")])
async def test_an_echo_is_better_than_nothing(mode: TurnOptions, chunk: int, second: str | BackendError) -> None:
    if is_small(mode):
        outcome = await play("10.5", second, request=asked(*RESULT), options=mode, chunk=chunk)
        assert (outcome.calls, outcome.text) == ([], "10.5")


async def test_a_result_of_two_hundred_characters_is_short(mode: TurnOptions) -> None:
    result = "x" * 200
    request = asked(RESULT[0], ToolResult("call_1", (Text(result),)))
    answers: list[Script] = [result, "It is cold."]
    outcome = await play(*answers[: 1 + is_small(mode)], request=request, options=mode)
    assert outcome.report.again == ["echo"] * is_small(mode)


@pytest.mark.parametrize("answer", ["10.5 degrees", "10", "It is 10.5", f"10.5\n{SEARCH}"])
async def test_what_says_more_or_less_than_a_result_is_no_echo(mode: TurnOptions, chunk: int, answer: str) -> None:
    outcome = await play(answer, request=asked(*RESULT), options=mode, chunk=chunk)
    assert (outcome.text.strip(), outcome.report.again) == (answer.partition("\n")[0], [])


async def test_what_turned_out_to_be_none_was_shown_and_is_not_said_again(mode: TurnOptions, chunk: int) -> None:
    answers = (f"10.5 degrees.\n{BROKEN}", f"10.5 degrees.\n{SEARCH}")
    outcome = await play(*answers, request=asked(*RESULT), options=mode, chunk=chunk)
    assert (outcome.text, len(outcome.calls)) == ("10.5 degrees.\n", 1)


async def test_neither_is_a_long_result_nor_one_of_before(mode: TurnOptions, chunk: int) -> None:
    note = "A note. " * 30
    shown = (RESULT[0], ToolResult("call_1", (Text(note),)))
    earlier = (*RESULT, AssistantText("10.5"), UserTurn((Text("Say it again."),)))
    for entries, answer in ((shown, note), (earlier, "10.5")):
        outcome = await play(answer, request=asked(*entries), options=mode, chunk=chunk)
        assert (outcome.text, outcome.report.again) == (answer, [])


# Zero markup


def requests() -> Iterator[TurnRequest]:
    """Every way in which a parser is on duty."""
    history = (*RESULT, AssistantText("It is 10.5."), UserTurn((Text("And now?"),)))
    for entries in ((), RESULT, history):
        for choice in (ToolChoice(), ToolChoice(ChoiceMode.NONE), ToolChoice(ChoiceMode.AUTO, ("search",))):
            yield asked(*entries, choice=choice)
        yield asked(*entries, parallel=False)
        if entries:
            yield asked(*entries, registry=ToolRegistry())


HALF = WEATHER[:-30]
ANSWERS: list[Script] = [
    WEATHER, SEARCH, UNDECLARED, BROKEN, HALF, "<tool_call>", f"Well. {BROKEN}", f"Well.\n{UNDECLARED}{BROKEN}",
    EMPTY, f"Well. {EMPTY}", f"{EMPTY}{WEATHER}", f"<tool_call>{EMPTY}</tool_call> Well.",
    "<tool_call>get_weather</tool_call>",
    f"{WEATHER}{BROKEN}{SEARCH}", f"<tool_call>{WEATHER}", f"```\n{WEATHER}\n```\n{BROKEN}",
    [TextPiece(HALF), TurnEnded(USAGE, "max_output_tokens")],
    [TextPiece("<tool_c"), TurnEnded(USAGE, "max_output_tokens")],
    [TextPiece(f"Well. {HALF}"), BackendError("gone")],
    [TextPiece(BROKEN), BackendError("gone")],
    [TextPiece("Well. <tool_cal"), BackendError("gone")],
]  # fmt: skip


async def test_no_markup_is_shown_in_any_mode(mode: TurnOptions) -> None:
    for request, answer in product(requests(), ANSWERS):
        outcome = await stubborn(answer, request, mode)
        text = outcome.text.replace(f"```\n{WEATHER}\n```", "")
        assert "tool_c" not in text.replace("<tool_call>", "", text.strip() == "<tool_call>"), (answer, outcome.text)
        assert outcome.report.counts["markup_shown"] == {}


async def stubborn(answer: Script, request: TurnRequest, mode: TurnOptions) -> Outcome:
    """The outcome of a model that answers so each time that it is asked."""
    return await outcome_of(request, MemoryBackend([answer] * 3), mode)


@pytest.mark.parametrize("registry", [TOOLS, ToolRegistry()], ids=["choice none", "no tools"])
async def test_where_no_tool_can_be_called_a_call_is_one_second_try_in_plain_text(
    mode: TurnOptions, chunk: int, registry: ToolRegistry
) -> None:
    entries = (*RESULT, AssistantText("It is 10.5."), UserTurn((Text("And now?"),)))
    request = asked(*entries, registry=registry, choice=ToolChoice(ChoiceMode.NONE))
    outcome = await play(f"I look.\n{WEATHER}", "It is 11.", request=request, options=mode, chunk=chunk)
    assert (outcome.calls, outcome.text) == ([], "I look.\nIt is 11.")
    assert "no tool can be called" in last_line(outcome.backend.prompts[1])
    outcome = await play(WEATHER, WEATHER, request=request, options=mode, chunk=chunk)
    assert (outcome.calls, outcome.finished) == ([], True)
    assert outcome.text.startswith("The model asked for a tool that was not offered (`get_weather`)")
    assert outcome.report.counts["refused"] == {"undeclared": 2}


async def test_a_call_that_is_cut_off_is_an_incomplete_one(mode: TurnOptions, chunk: int) -> None:
    outcome = await play(cut_off(f"I look.\n{HALF}", chunk), request=asked(), options=mode)
    assert outcome.text == "I look.\n"
    [(name, arguments)] = outcome.calls
    assert name == "get_weather"
    assert OSLO.startswith(arguments)
    assert ToolCallEnded(complete=False) in outcome.events
    assert isinstance(outcome.end, TurnFinished)
    assert outcome.end.incomplete == "max_output_tokens"


async def test_what_was_held_when_the_upstream_broke_is_not_shown(mode: TurnOptions, chunk: int) -> None:
    broken: Script = [*pieces(f"I look.\n{HALF}", chunk), BackendError("gone")]
    outcome = await play(broken, request=asked(), options=mode)
    assert outcome.text == "I look.\n"
    assert outcome.error.message


async def test_a_block_that_is_quoted_is_text_also_without_tools(mode: TurnOptions, chunk: int) -> None:
    told = UserTurn((Text(f"Show me this note:\n{WEATHER}\n{BROKEN}"),))
    answer = f"It says:\n{WEATHER}\n{BROKEN}"
    for choice, registry in product((ToolChoice(), ToolChoice(ChoiceMode.NONE)), (TOOLS, ToolRegistry())):
        request = asked(*RESULT, told, choice=choice, registry=registry)
        outcome = await play(answer, request=request, options=mode, chunk=chunk)
        assert (outcome.text, outcome.calls) == (answer, [])
        assert outcome.report.counts["markup_shown"] == {"quotation": 2}


async def test_a_chat_about_call_formats_is_left_as_it_is(mode: TurnOptions, chunk: int) -> None:
    answer = f"Hermes writes {WEATHER}\nor `<tool_call>`:\n```\n{BROKEN}\n```\n<tool_call>{{ and so on."
    request = ask("How do models write calls?", registry=ToolRegistry())
    assert (await play(answer, request=request, options=mode, chunk=chunk)).text == answer


async def test_a_keyed_call_is_known_without_its_prompt(mode: TurnOptions) -> None:
    """The plain prompt has no key, and the model may remember none."""
    keyed = await play(
        lambda prompt: write_call("rm", "{}", key=key_of(prompt.developer)), "No.", request=asked(), options=mode
    )
    assert (keyed.calls, keyed.text) == ([], "No.")
