from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import Tool
from prompts import AssistantText, Entry, Grounds, PastCall, Text, ToolResult, Transcript, UserTurn

TOOL = Tool("look", "Look.", '{"type":"object","properties":{"in":{"enum":["attic","cellar"]}}}')
ASKED = UserTurn((Text('Open a ticket in `desk`, with {"body": "Room 12\\nat noon"}; see lists/yarn_stock.csv.'),))
MADE = PastCall("c", "create_ticket", '{"title": "Door squeaks", "body": "Room 12"}')
RESULT = ToolResult("c", (Text("created as T-4410, in https://desk.example/t"),))


def grounds(*entries: Entry) -> Grounds:
    return Grounds(Transcript(entries))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        # Done already.
        ("other", {"subject": "Door squeaks", "text": "Room 12"}),
        ("other", {"all": ["room 12.", " Door squeaks"]}),
        ("create_ticket", {"title": "door squeaks", "body": "Room 12."}),
        # Made up, beside what was sent.
        ("look", {"url": "https://example.com/tickets/T-4410"}),
        ("look", {"table": "settings", "where": {"column": "name", "value": "door"}}),
        ("look", {"path": "Settings.INI"}),
        ("look", {"for": "John Doe"}),
    ],
)
def test_a_call_adds_nothing(name: str, arguments: dict[str, object]) -> None:
    assert grounds(ASKED, MADE, RESULT).adds_nothing(Tool(name, "", None), json.dumps(arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"id": "T-4410"},
        {"url": "https://desk.example/t"},
        {"path": "yarn_stock.csv"},
        {"path": "desk/T-4410.csv"},
        {"table": "settings", "id": "T-4410"},
        {"table": "settings", "limit": 3},
        {"table": "settings", "all": True},
        {"table": "settings", "title": "A door that squeaks"},
        {"title": "Door squeaks"},
        {"currency": "NOK"},
        {"language": "pt-BR"},
        {"in": "attic"},
        {"date": "2026-11-20"},
        {"for": "Joan Doherty"},
        {"text": "回家买菜"},
        {"text": "Grüße"},
    ],
)
def test_a_call_may_add_something(arguments: dict[str, object]) -> None:
    assert not grounds(ASKED, MADE, RESULT).adds_nothing(TOOL, json.dumps(arguments))


def test_a_person_of_examples_may_be_meant() -> None:
    asked = UserTurn((Text("Open a ticket, and tell john doe."),))
    assert not grounds(asked, MADE, RESULT).adds_nothing(TOOL, '{"for": "John Doe"}')


@pytest.mark.parametrize("arguments", ["", "[]", "no JSON", '{"a": ', "{" * 5000])
def test_what_is_no_object_is_not_judged(arguments: str) -> None:
    assert not grounds(ASKED, MADE, RESULT).adds_nothing(TOOL, arguments)
    assert not grounds(ASKED, PastCall("c", "look", arguments), RESULT).adds_nothing(TOOL, '{"id": "T-4410"}')


@pytest.mark.parametrize(
    "entries", [(ASKED,), (ASKED, MADE, RESULT, AssistantText("Done.")), (ASKED, MADE, RESULT, ASKED), (RESULT,)]
)
def test_anywhere_else_there_are_none(entries: tuple[Entry, ...]) -> None:
    assert not grounds(*entries)


def test_the_calls_are_those_whose_results_are_the_newest() -> None:
    other = PastCall("d", "look", '{"at": ["the old door", 3, {"and": "the gate"}], "in": "attic"}')
    entries = (ASKED, MADE, RESULT, other, ToolResult("d", (Text("nothing"),)))
    assert not grounds(*entries).adds_nothing(Tool("other", "", None), MADE.arguments)
    assert bool(grounds(*entries))


@given(st.text(), st.text(), st.dictionaries(st.text(), st.text(), min_size=1))
def test_what_was_said_is_not_made_up(before: str, behind: str, arguments: dict[str, str]) -> None:
    told = ToolResult("c", tuple(Text(f"{before} {value} {behind}") for value in arguments.values()))
    made = PastCall("c", "create_ticket", "{}")
    assert not grounds(ASKED, made, told).adds_nothing(TOOL, json.dumps(arguments))
