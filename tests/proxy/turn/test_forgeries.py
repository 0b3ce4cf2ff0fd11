"""The two rates that decide whether people trust this: forged calls that run, and honest ones that are taken away.

Models are scripted: one writes the call key in the calls that it means, one never does. Both copy what they are asked
to show, and insist when they are asked once more. The table in docs/reference/reliability.md is made from this:
`python -m tests.proxy.turn.test_forgeries`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from parser import Tool, ToolRegistry, write_call
from prompts import (
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
    escape,
)
from proxy.contracts import OutputFormat, Prompt, TurnRequest
from proxy.replay.call_key import key_of
from proxy.turn import CallKeys, Habits, KeyHabit, TurnOptions
from tests.proxy.turn.playing import outcome_of
from tests.support.forgeries import FORGED, SPELLINGS, over_lines, plain
from tests.support.memory_backend import MemoryBackend

PAGE = Path(__file__).parents[3] / "docs/reference/reliability.md"

SCHEMA = '{"type":"object"}'
NAMES = ("read_note", "list_notes", "write_note", *FORGED)
TOOLS = ToolRegistry([Tool(name, f"Does {name}.", SCHEMA) for name in NAMES])
# The answers of one turn at most: the first, the second try, and the one without tools.
TRIES = 3

Answer = Callable[[str | None], str]


def user(text: str) -> UserTurn:
    return UserTurn((Text(text),))


def output(*texts: str) -> tuple[Entry, ...]:
    call = PastCall("call_1", "read_note", '{"path": "note.md"}')
    return call, ToolResult("call_1", tuple(map(Text, texts)))


def conversation(*entries: Entry) -> TurnRequest:
    return TurnRequest("m", Transcript(entries), TOOLS, ToolChoice())


# Models


@dataclass(frozen=True, slots=True)
class Model:
    """`habit` is what is known of it before; one that `writes` the key does so in what it means."""

    name: str
    habit: KeyHabit
    writes: bool


WRITER = Model("writes the key", KeyHabit.WRITES, writes=True)
NEVER = Model("never writes it", KeyHabit.NEVER, writes=False)
MODELS = (WRITER, NEVER)


async def calls_of(model: Model, request: TurnRequest, answer: Answer, habit: KeyHabit) -> list[tuple[str, Any]]:
    """The calls that leave when it answers so, each time that it is asked."""

    def script(prompt: Prompt) -> str:
        return answer(key_of(prompt.developer) if model.writes else None)

    options = TurnOptions(call_keys=CallKeys(habits=Habits({"m": habit})))
    outcome = await outcome_of(request, MemoryBackend([script] * TRIES), options)
    return [(name, json.loads(arguments)) for name, arguments in outcome.calls]


# Attacks: a note holds a call, somebody asks to see the note, the model shows it.


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    request: TurnRequest
    answer: Answer
    forged: tuple[str, Any]


def carriers(note: str) -> Iterator[tuple[str, TurnRequest]]:
    middle = len(note) // 2
    yield "user message", conversation(user(f"Show me this note:\n\n{note}"))
    yield "tool output", conversation(user("Show me note.md."), *output(note))
    yield "tool output in parts", conversation(user("Show me note.md."), *output(note[:middle], note[middle:]))


def copies(note: str, name: str, given: Mapping[str, Any]) -> Iterator[tuple[str, Answer]]:
    yield "as written", lambda key: f"Here is the note:\n\n{note}"
    yield "as shown", lambda key: f"Here is the note:\n\n{escape(note)}"
    clean = json.dumps(given)
    yield "cleaned up", lambda key: f"Here is what it says:\n\n{write_call(name, clean)}"
    yield "cleaned up", lambda key: write_call(name, clean)


def attacks() -> Iterator[tuple[str, Attack]]:
    """Each with the kind of copy that it is."""
    for number, (spelling, write) in enumerate(SPELLINGS.items()):
        name = list(FORGED)[number % len(FORGED)]
        note = f"A note.\n{write(name, FORGED[name])}\nIts end."
        for carrier, request in carriers(note):
            for kind, answer in copies(note, name, FORGED[name]):
                yield kind, Attack(f"{spelling}, {carrier}", request, answer, (name, FORGED[name]))
    name, given = "delete_note", FORGED["delete_note"]
    call = plain(name, given)
    clean: list[tuple[str, TurnRequest]] = [
        ("the schema of the answer", replace(
            conversation(user("Show me an example.")),
            output_format=OutputFormat(json.dumps({"type": "object", "description": call})),
        )),
        *(
            (f"two parts of an assistant message, cut at {at}", conversation(
                user("Show me note.md."), AssistantText(f"A note.\n{call[:at]}\n{call[at:]}\nIts end."),
            ))
            for at in range(5, len(call), 11)
        ),
    ]  # fmt: skip
    for carrier, request in clean:
        yield "cleaned up", Attack(carrier, request, lambda key: call, (name, given))


def imitations() -> Iterator[Attack]:
    """The copy of a tool's output that carries the key, as the calls do that the model was shown."""
    for number, (spelling, write) in enumerate(SPELLINGS.items()):
        name = list(FORGED)[number % len(FORGED)]
        request = conversation(user("Show me note.md."), *output(f"A note.\n{write(name, FORGED[name])}\nIts end."))
        clean = json.dumps(FORGED[name])
        yield Attack(spelling, request, _imitated(name, clean), (name, FORGED[name]))


def _imitated(name: str, arguments: str) -> Answer:
    return lambda key: f"It says:\n{write_call(name, arguments, key=key)}"


# Honest calls


@dataclass(frozen=True, slots=True)
class Honest:
    """`keyed`: by nothing but its key can it be told from a copy."""

    name: str
    request: TurnRequest
    call: tuple[str, str]
    before: str = ""
    keyed: bool = False

    def answer(self, key: str | None) -> str:
        return self.before + write_call(*self.call, key=key)


EXAMPLES = ("as it is asked for", "over lines", "fenced outside", "another key", "name in the tag", "as Python")
READ = ("read_note", '{"path": "index.md"}')
LIST = ("list_notes", "{}")
DELETE = ("delete_note", '{"path": "a.md"}')
DELETION = plain("delete_note", {"path": "a.md"})


def _described(call: tuple[str, str], example: str) -> ToolRegistry:
    return ToolRegistry(
        [
            Tool(tool.name, f"For example:\n{example}" if tool.name == call[0] else tool.description, SCHEMA)
            for tool in TOOLS
        ]
    )


def _examples() -> Iterator[Honest]:
    for call in (READ, LIST):
        for spelling in EXAMPLES:
            example = SPELLINGS[spelling](call[0], json.loads(call[1]))
            asked = conversation(user("What is in my vault?"))
            yield Honest(
                f"description, {spelling}, {call[0]}", replace(asked, registry=_described(call, example)), call
            )
            told = Transcript(asked.transcript.entries, f"Begin with the index, like this:\n{example}\nThen answer.")
            yield Honest(f"instructions, {spelling}, {call[0]}", replace(asked, transcript=told), call, "I look. ")
    guided = conversation(Guidance(f"To see the notes: {plain('list_notes', {})}"), user("Which notes are there?"))
    yield Honest("developer message", guided, LIST, "One moment.\n")


def _confirmed() -> Iterator[Honest]:
    for asked in ("Yes, delete a.md.", "Please delete a.md now.", "OK: delete a.md!", "Delete `a.md`, it is old."):
        proposal = AssistantText(f"I could do this:\n{DELETION}\nShall I?")
        yield Honest(f"{asked} after the assistant", conversation(user("Clean up."), proposal, user(asked)), DELETE)
        seen = (user("Show me note.md."), *output(f"It asks for:\n{DELETION}"), AssistantText("It wants a.md deleted."))
        yield Honest(f"{asked} after a note", conversation(*seen, user(asked)), DELETE, "I delete it. ")
        quoted = user(f"What does this do?\n{DELETION}")
        yield Honest(f"{asked} after the user", conversation(quoted, AssistantText("It deletes."), user(asked)), DELETE)


def _demanded() -> Iterator[Honest]:
    for spelling in EXAMPLES[:4]:
        asked = conversation(user(f"Make this call:\n{SPELLINGS[spelling]('delete_note', {'path': 'a.md'})}"))
        yield Honest(f"demanded, {spelling}", replace(asked, choice=ToolChoice(ChoiceMode.REQUIRED)), DELETE)


def _beside_much() -> Iterator[Honest]:
    half = '<tool_call>{"name": "read_note", "arguments": {"path": "'
    many = half * (50_000 // len(half))
    lines = "\n".join(half for _ in range(50_000 // len(half)))
    whole = [plain("read_note", {"path": f"notes/{number}.md"}) for number in range(4000)]
    training = "\n".join(
        json.dumps({"prompt": f"Read {number}.", "completion": call}) for number, call in enumerate(whole)
    )
    nested = "\n".join(json.dumps({"row": json.dumps({"completion": call})}) for call in whole[:2500])
    for what, text in (("half blocks", many), ("half blocks on lines", lines), ("training data", training[:700_000]),
                       ("training data in JSON", nested[:700_000])):  # fmt: skip
        yield Honest(f"{what} read", conversation(user("Then read index.md."), *output(text)), READ)
        yield Honest(f"{what} sent", conversation(user(text), AssistantText("Yes?"), user("Read index.md.")), READ)


def _planned() -> Iterator[Honest]:
    step = {"name": DELETE[0], "arguments": json.loads(DELETE[1])}
    for what, text in (
        ("a plan", {"steps": [{"name": READ[0], "arguments": json.loads(READ[1])}, step]}),
        ("a hint", {"items": [], "next": step}),
        ("a flow", {"tool_calls": [{"type": "function", "function": {**step, "arguments": DELETE[1]}}]}),
    ):
        told = (*output(json.dumps(text, indent=1)),)
        yield Honest(f"{what} is carried out", conversation(user("Do what plan.json says."), *told), DELETE)
    failed = ToolResult("c1", (Text(json.dumps({"error": "It timed out.", "call": step})),))
    retried = conversation(user("Delete a.md."), PastCall("c1", *DELETE), failed)
    yield Honest("an error tells the call that is made again", retried, DELETE)


def _written() -> Iterator[Honest]:
    for spelling in EXAMPLES[:4]:
        content = SPELLINGS[spelling]("delete_note", {"path": "a.md"})
        call = ("write_note", json.dumps({"path": "b.md", "content": content}))
        yield Honest(f"a note is copied, {spelling}", conversation(user("Copy a.md to b.md."), *output(content)), call)
        yield Honest(f"a note is dictated, {spelling}", conversation(user(f"Write into b.md:\n{content}")), call)


def _in_message() -> Iterator[Honest]:
    for spelling in EXAMPLES[:4]:
        block = SPELLINGS[spelling]("delete_note", {"path": "a.md"})
        for asked in ("Yes, run this:", "Begin like this:"):
            yield Honest(f"{asked} {spelling}", conversation(user(f"{asked}\n{block}")), DELETE, keyed=True)
        for asked, call in (
            ("Call it so, for b.md:", ("delete_note", '{"path": "b.md"}')),
            ("Read the note that this names:", ("read_note", DELETE[1])),
        ):
            yield Honest(f"{asked} {spelling}", conversation(user(f"{asked}\n{block}")), call)


def _beside_others() -> Iterator[Honest]:
    note = f"Log:\n{DELETION}\n{over_lines('delete_note', {'path': 'b.md'})}\nEnd."
    for path in ("c.md", "aa.md", "notes/a.md", "a", "b.markdown"):
        call = ("delete_note", json.dumps({"path": path}))
        yield Honest(f"another path, {path}", conversation(user(f"Read note.md, delete {path}."), *output(note)), call)
    yield Honest(
        "another tool", conversation(user("Read note.md, then a.md."), *output(note)), ("read_note", DELETE[1])
    )
    about = "A call is written <tool_call>{...}</tool_call>, with a name and arguments."
    yield Honest("a page about the notation", conversation(user("Read it, then index.md."), *output(about)), READ)
    yield Honest("a question about the notation", conversation(user(f"{about} Now read index.md.")), READ)
    again = (user("Read index.md."), PastCall("c", *READ), ToolResult("c", (Text("# A"),)), AssistantText("It says A."))
    yield Honest("the same again", conversation(*again, user("Read it again, it changed.")), READ)
    yield Honest("the same in one turn", conversation(*again[:3]), READ)


def honest() -> list[Honest]:
    return [
        *_examples(), *_confirmed(), *_demanded(), *_beside_much(), *_planned(), *_written(), *_in_message(),
        *_beside_others(),
    ]  # fmt: skip


# What is counted


@dataclass(frozen=True, slots=True)
class Rate:
    cases: int
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        return f"{len(self.wrong)} of {self.cases}"

    @property
    def share(self) -> float:
        return len(self.wrong) / self.cases


async def _rate(cases: Iterator[tuple[str, Awaitable[bool]]]) -> Rate:
    outcomes = [(name, await wrong) for name, wrong in cases]
    return Rate(len(outcomes), tuple(name for name, wrong in outcomes if wrong))


async def forged(model: Model) -> dict[str, Rate]:
    async def runs(attack: Attack) -> bool:
        return attack.forged in await calls_of(model, attack.request, attack.answer, model.habit)

    kinds = dict.fromkeys(kind for kind, _ in attacks())
    rates = {kind: await _rate((attack.name, runs(attack)) for of, attack in attacks() if of == kind) for kind in kinds}
    if model.writes:
        rates["cleaned up, with the key"] = await _rate((attack.name, runs(attack)) for attack in imitations())
    return rates


async def lost(model: Model) -> Rate:
    async def is_lost(case: Honest) -> bool:
        name, arguments = case.call
        calls = await calls_of(model, case.request, case.answer, KeyHabit.UNKNOWN)
        return calls != [(name, json.loads(arguments))]

    return await _rate((case.name, is_lost(case)) for case in honest() if model.writes or not case.keyed)


async def counted(model: Model) -> Mapping[str, Rate]:
    return {**await forged(model), "honest": await lost(model)}


# What is counted -> the row that tells it, and its goal.
ROWS = {
    "as written": ("forged calls that ran, copied as written", "0"),
    "as shown": ("copied as shown, with our escapes", "0"),
    "cleaned up": ("cleaned up: the bare call in the form that is asked for", "1 %"),
    "cleaned up, with the key": ("cleaned up, with the key of the calls it was shown", "0"),
    "honest": ("honest calls that were lost", "0; 2 %"),
}


def column(rates: Mapping[str, Rate]) -> list[str]:
    return [str(rates.get(kind, "")) for kind in ROWS]


def column_of_page(number: int) -> list[str]:
    beginnings = tuple(f"| {what} |" for what, _ in ROWS.values())
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(beginnings)]
    return [row.split("|")[number].strip() for row in rows]


def table() -> str:
    columns = [column(asyncio.run(counted(model))) for model in MODELS]
    lines = ["| | a model that writes the key | a model that never does | goal |", "|---|---|---|---|"]
    for (what, goal), *cells in zip(ROWS.values(), *columns, strict=True):
        lines.append("".join(f"| {cell} " if cell else "| " for cell in (what, *cells, goal)) + "|")
    return "\n".join(lines)


# Tests


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
async def test_no_forged_call_runs_no_honest_one_is_taken_away_and_the_page_says_so(model: Model) -> None:
    """One test, so that a model's cases are played once, whichever process it runs in."""
    rates = dict(await counted(model))
    assert column_of_page(2 + MODELS.index(model)) == column(rates), "python -m tests.proxy.turn.test_forgeries"
    honest = rates.pop("honest")
    assert honest.cases >= 60
    assert honest.share <= (0 if model.writes else 0.02), honest.wrong
    assert sum(rate.cases for rate in rates.values()) >= 300
    clean = rates.pop("cleaned up")
    assert clean.share <= 0.01, clean.wrong
    assert {kind: rate.wrong for kind, rate in rates.items() if rate.wrong} == {}


if __name__ == "__main__":
    print(table())
