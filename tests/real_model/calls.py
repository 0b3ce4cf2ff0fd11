"""Questions that need calls: whether they are made, rightly, and one more after a result where that is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from parser import ToolRegistry
from prompts import Entry, PastCall, Text, ToolResult, Transcript, UserTurn

from .turn import Played, key_of, tool

# An argument is right when it is equal (a string but for case and outer blanks), or when the pattern is found in it.
Expected = str | int | float | bool | re.Pattern[str]
# A tool and the arguments that it must be called with; others may stand beside them.
Call = tuple[str, Mapping[str, Expected]]

VAULT = ToolRegistry([
    tool("read_note", "Read a note of the vault.", path="string Path of the note"),
    tool("search_notes", "Find notes that hold some words.", query="string The words", limit="integer? At most"),
    tool("write_note", "Write a note, in place of what it held.", path="string Path", content="string All of its text"),
    tool("rename_note", "Give a note another path.", old="string Path now", new="string Path then"),
])  # fmt: skip

HOME = ToolRegistry([
    tool("get_weather", "The weather of today in a city.", city="string Name of the city"),
    tool("set_timer", "Start a timer.", minutes="integer Length in minutes", label="string? What it is for"),
    tool("send_message", "Send a text message.", to="string Name", text="string The message, word for word"),
])  # fmt: skip

OFFICE = ToolRegistry([
    tool("list_events", "The events of a day.", date="string The day, as YYYY-MM-DD"),
    tool("create_event", "Enter an event.", title="string Title", date="string YYYY-MM-DD", start="string HH:MM"),
    tool("cancel_event", "Take an event out.", id="string Id of the event"),
    tool("convert_currency", "Convert money.", amount="number Sum", source="string ISO code", target="string ISO code"),
    tool("run_sql", "Run one SQL statement.", statement="string The statement, word for word"),
    tool("find_contact", "Look a person up.", name="string Name of the person"),
])  # fmt: skip


def _has(words: str) -> re.Pattern[str]:
    return re.compile(words, re.IGNORECASE)


SINGLE: Sequence[tuple[ToolRegistry, str, Sequence[Call]]] = (
    (VAULT, "What is in projects/roof.md?", [("read_note", {"path": "projects/roof.md"})]),
    (VAULT, "Which notes talk about insulation?", [("search_notes", {"query": _has("insulation")})]),
    (VAULT, "Rename inbox/a.md to archive/a.md.", [("rename_note", {"old": "inbox/a.md", "new": "archive/a.md"})]),
    (HOME, "Do I need an umbrella in Bergen today?", [("get_weather", {"city": "Bergen"})]),
    (HOME, "Wake me in 25 minutes.", [("set_timer", {"minutes": 25})]),
    (OFFICE, "What do I have on 14 March 2027?", [("list_events", {"date": "2027-03-14"})]),
    (OFFICE, "How much are 250 euros in Swiss francs?",
     [("convert_currency", {"amount": 250, "source": "EUR", "target": "CHF"})]),
    (OFFICE, "What is Priya Raman's phone number?", [("find_contact", {"name": _has("priya raman")})]),
)  # fmt: skip

PARALLEL: Sequence[tuple[ToolRegistry, str, Sequence[Call]]] = (
    (VAULT, "Read a.md and b.md.", [("read_note", {"path": "a.md"}), ("read_note", {"path": "b.md"})]),
    (VAULT, "Look for notes about tiles, and read home/bath.md.",
     [("search_notes", {"query": _has("tiles")}), ("read_note", {"path": "home/bath.md"})]),
    (VAULT, "Show me the notes mon.md, tue.md and wed.md.",
     [("read_note", {"path": "mon.md"}), ("read_note", {"path": "tue.md"}), ("read_note", {"path": "wed.md"})]),
    (HOME, "Compare today's weather in Lima and Quito.",
     [("get_weather", {"city": "Lima"}), ("get_weather", {"city": "Quito"})]),
    (HOME, "Set a timer of 8 minutes for eggs and one of 45 minutes for bread.",
     [("set_timer", {"minutes": 8}), ("set_timer", {"minutes": 45})]),
    (HOME, "Tell Omar and also Lena: dinner is ready.",
     [("send_message", {"to": "Omar", "text": _has("dinner is ready")}),
      ("send_message", {"to": "Lena", "text": _has("dinner is ready")})]),
    (OFFICE, "What is on my calendar on 2027-05-01 and on 2027-05-02?",
     [("list_events", {"date": "2027-05-01"}), ("list_events", {"date": "2027-05-02"})]),
    (OFFICE, "Cancel the events e17 and e23.", [("cancel_event", {"id": "e17"}), ("cancel_event", {"id": "e23"})]),
)  # fmt: skip

ESCAPING: Sequence[tuple[ToolRegistry, str, Sequence[Call]]] = (
    (VAULT, 'Write into quote.md exactly this: She said "no" twice.',
     [("write_note", {"path": "quote.md", "content": 'She said "no" twice.'})]),
    (VAULT, "Write a note list.md with these two lines:\nmilk\nbread",
     [("write_note", {"path": "list.md", "content": "milk\nbread"})]),
    (VAULT, r"Write into path.md exactly this: C:\temp\new",
     [("write_note", {"path": "path.md", "content": r"C:\temp\new"})]),
    (VAULT, 'Write code.md with this content:\nprint("hi")\nprint("there")',
     [("write_note", {"path": "code.md", "content": 'print("hi")\nprint("there")'})]),
    (HOME, 'Send Ana this message: the sign says "closed", call me',
     [("send_message", {"to": "Ana", "text": 'the sign says "closed", call me'})]),
    (HOME, "Send Jo these two lines:\nfirst bus at 7\nlast bus at 23",
     [("send_message", {"to": "Jo", "text": "first bus at 7\nlast bus at 23"})]),
    (OFFICE, "Run this SQL: SELECT \"id\" FROM users WHERE name = 'O''Hara'",
     [("run_sql", {"statement": "SELECT \"id\" FROM users WHERE name = 'O''Hara'"})]),
    (OFFICE, 'Enter an event with the title Talk: "{x} & <y>" on 2027-06-03 at 09:30.',
     [("create_event", {"title": 'Talk: "{x} & <y>"', "date": "2027-06-03", "start": "09:30"})]),
)  # fmt: skip

# A request of two steps, the first call, its result, and the call that is still open.
FOLLOW_UPS: Sequence[tuple[ToolRegistry, str, tuple[str, str], str, Call]] = (
    (VAULT, "Find the note about the boiler and read it to me.",
     ("search_notes", '{"query": "boiler"}'), "house/boiler.md", ("read_note", {"path": "house/boiler.md"})),
    (VAULT, "Look into today.md: it names a note. Read that one as well.",
     ("read_note", '{"path": "today.md"}'), "See plans/week-12.md for the rest.",
     ("read_note", {"path": "plans/week-12.md"})),
    (VAULT, "Find the note about taxes and move it to archive/taxes.md.",
     ("search_notes", '{"query": "taxes"}'), "inbox/tax-letter.md",
     ("rename_note", {"old": "inbox/tax-letter.md", "new": "archive/taxes.md"})),
    (HOME, "Check the weather in Oslo, then send it to Kim as a message.",
     ("get_weather", '{"city": "Oslo"}'), "Rain, 7 degrees",
     ("send_message", {"to": "Kim", "text": _has("rain")})),
    (HOME, "If it is below zero in Turku, start a timer of 10 minutes for the car.",
     ("get_weather", '{"city": "Turku"}'), "Snow, -8 degrees", ("set_timer", {"minutes": 10})),
    (OFFICE, "Cancel whatever I have on 2027-04-09.",
     ("list_events", '{"date": "2027-04-09"}'), '[{"id": "e41", "title": "Dentist", "start": "15:00"}]',
     ("cancel_event", {"id": "e41"})),
    (OFFICE, "Convert 90 US dollars to yen, and then what comes out to euros.",
     ("convert_currency", '{"amount": 90, "source": "USD", "target": "JPY"}'), "13500",
     ("convert_currency", {"amount": 13500, "source": "JPY", "target": "EUR"})),
    (OFFICE, "Look up when Dana's birthday is and enter it for 2027 at 08:00, with the title Birthday.",
     ("find_contact", '{"name": "Dana"}'), "Dana Voss, born 1988-09-21",
     ("create_event", {"title": _has("birthday"), "date": "2027-09-21", "start": "08:00"})),
)  # fmt: skip


def _said(text: str) -> UserTurn:
    return UserTurn((Text(text),))


def _made(call: tuple[str, str], result: str) -> tuple[Entry, ...]:
    return PastCall("call_1", *call), ToolResult("call_1", (Text(result),))


def _fits(value: object, expected: Expected) -> bool:
    match value, expected:
        case str(), re.Pattern():
            return expected.search(value) is not None
        case str(), str():
            return value.strip().casefold() == expected.casefold()
        case _:
            return value == expected


def _right(made: tuple[str, str], expected: Call) -> bool:
    name, arguments = made[0], json.loads(made[1])
    return name == expected[0] and all(_fits(arguments.get(key), value) for key, value in expected[1].items())


def _all_right(made: Sequence[tuple[str, str]], expected: Sequence[Call]) -> bool:
    """Whether these calls were made and no other, in any order."""
    return len(made) == len(expected) and all(any(_right(call, wanted) for call in made) for wanted in expected)


# What stands in the worked example and in no question.
_EXAMPLE = re.compile(r"print_?label|reserve_?seats|Fragile|this side up", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    kind: str
    tools: ToolRegistry
    transcript: Transcript
    expected: Sequence[Call]

    @property
    def labels(self) -> Sequence[str]:
        return (self.kind,)

    def counts(self, played: Played) -> Mapping[str, int]:
        names = {name for name, _ in self.expected}
        keys = [key_of(call) for call in played.read]
        return {
            "called": any(name in names for name, _ in played.calls),
            "right": _all_right(played.calls, self.expected),
            "too many": len(played.calls) > len(self.expected),
            "text too": bool(played.calls) and bool(played.text.strip()),
            "example": bool(_EXAMPLE.search("".join(answer.text for answer in played.answers))),
            "read": len(played.read),
            "read+key": sum(written is not None and written == played.key for written in keys),
            "wrong key": sum(written not in (None, played.key) for written in keys),
            "passed": len(played.calls),
            "again": bool(played.report.again),
        }


def questions() -> Iterator[Question]:
    """24 first turns and 8 after a result, those with the same tools one behind the other."""
    asked = [
        *(
            Question(kind, tools, Transcript((_said(text),)), expected)
            for kind, rows in (("single", SINGLE), ("parallel", PARALLEL), ("escaping", ESCAPING))
            for tools, text, expected in rows
        ),
        *(
            Question("second call", tools, Transcript((_said(text), *_made(call, result))), [expected])
            for tools, text, call, result, expected in FOLLOW_UPS
        ),
    ]
    for tools in (VAULT, HOME, OFFICE):
        yield from (question for question in asked if question.tools is tools)
