"""What the prompts teach, the parser reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import CallCompleted, CallMalformed, SentinelParser, Tier, Tool, ToolRegistry
from prompts import FRONTIER, PastCall, unescape, unescape_json
from prompts.conversation import past_call
from prompts.passages import FORM_NAME, call_form
from prompts.tool_block import notation, worked_example
from tests.parser.reading import visible

TEXTS = st.lists(
    st.sampled_from(["<", "\\", "tool_call", ">", "/", "\n", '"', "```", "[tool:x]", "<think>", "}", "\u2028", "é"])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    max_size=6,
).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
KEYS = st.none() | st.just("k-1")


def read(text: str) -> list[CallCompleted]:
    parser = SentinelParser()
    events = [*parser.receive_text(text), *parser.receive_eof()]
    assert not [event for event in events if isinstance(event, CallMalformed)]
    return [event for event in events if isinstance(event, CallCompleted)]


@pytest.mark.parametrize("key", [None, "k-1"])
def test_the_form_is_a_call_once_its_placeholders_are_filled(key: str | None) -> None:
    block = notation(ToolRegistry([Tool("read_note")]), FRONTIER, key)
    assert f"\n{call_form(key)}\n" in block
    filled = call_form(key).replace(FORM_NAME, "read_note").replace("<parameter>", "path").replace("<value>", '"a.md"')
    [call] = read(filled)
    assert (call.name, call.arguments, call.tier) == ("read_note", '{"path": "a.md"}', Tier.VALID)
    assert call.extra == (() if key is None else (("key", '"k-1"'),))


@pytest.mark.parametrize("key", [None, "k-1"])
def test_the_worked_example_is_an_answer_with_two_calls(key: str | None) -> None:
    answer = worked_example(ToolRegistry(), key).partition("\n\n")[2]
    first, second = read(answer)
    assert json.loads(first.arguments) == {"text": '"Fragile"\nthis side up'}
    assert json.loads(second.arguments) == {"city": "Oslo", "count": 2}
    assert {first.tier, second.tier} == {Tier.VALID}
    assert first.name in answer
    assert all(call.extra == (() if key is None else (("key", '"k-1"'),)) for call in (first, second))


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,20}", fullmatch=True), st.dictionaries(TEXTS, VALUES, max_size=3), KEYS)
def test_every_past_call_is_a_call(name: str, value: dict[str, object], key: str | None) -> None:
    arguments = json.dumps(value)
    [call] = read(past_call(PastCall("call_1", name, arguments), key))
    assert (unescape(call.name), unescape_json(call.arguments)) == (name, arguments)
    assert call.tier is Tier.VALID


@given(TEXTS)
def test_text_beside_a_past_call_is_text(text: str) -> None:
    """A model that copies a past turn copies a call and nothing more."""
    written = past_call(PastCall("call_1", "t", json.dumps({"text": text})))
    parser = SentinelParser()
    events = [*parser.receive_text(f"I look.\n{written}"), *parser.receive_eof()]
    assert "".join(visible(events)).strip() == "I look."
