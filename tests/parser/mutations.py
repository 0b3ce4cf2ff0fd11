"""Good calls with one character changed: what is made of each. `python -m tests.parser.mutations` tries all of them.

A changed call may be read as the call that it was, as what now literally stands there, or not at all. What it must not
be is a third call, which nobody wrote. A parser that refuses everything would pass that, so right repairs are counted.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from parser import CallCompleted, SentinelParser, Tier, Tool, ToolRegistry
from proxy.schema.coercion import Coerced, fit, read_parameter_types

SEARCH = {"query": 'so "it" is\nC:\\dir', "limit": 12, "where": {"tag": "a", "open": True}, "tags": ["x", "y"]}
NOTE = {"path": "notes/a.md", "content": "Hello world, it is."}
TOOLS = ToolRegistry(
    [
        Tool(
            "search",
            None,
            '{"type": "object", "required": ["query", "where"], "properties": {"query": {"type": "string"}, "limit": '
            '{"type": "integer"}, "where": {"type": "object"}, "tags": {"type": "array"}}}',
        ),
        Tool(
            "write_note",
            None,
            '{"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}, "content": {"type": '
            '"string"}}}',
        ),
        Tool("get_time", None, '{"type": "object", "properties": {"zone": {"type": "string"}}}'),
    ]
)

_SEARCH, _NOTE = json.dumps(SEARCH), json.dumps(NOTE)
_S, _N = f'{{"name": "search", "arguments": {_SEARCH}}}', f'{{"name": "write_note", "arguments": {_NOTE}}}'
_PLAIN = json.dumps({**SEARCH, "query": "so it is"})


def _block(body: str) -> str:
    return f"<tool_call>{body}</tool_call>"


# A notation, one answer in it.
NOTATIONS: dict[str, str] = {
    "as taught": _block(_S),
    "as taught, with a key": _block(f'{{"key": "3b0f9c2d", {_N[1:]}'),
    "on lines": _block("\n" + json.dumps({"name": "search", "arguments": SEARCH}, indent=2) + "\n"),
    "without arguments": _block('{"name": "get_time", "arguments": {}}'),
    "a name alone": _block('{"name": "get_time"}'),
    "two blocks": _block(_N) + "\n" + _block(_N.replace("a.md", "b.md")),
    "not closed": f"<tool_call>{_N}",
    "in a fence": _block(f"\n```json\n{_N}\n```\n"),
    "encoded arguments": _block(f'{{"name": "write_note", "arguments": {json.dumps(_NOTE)}}}'),
    "a call as a string": _block(json.dumps(_N)),
    "an array": _block(f"[{_N}, {_N.replace('a.md', 'b.md')}]"),
    "several objects": _block(f"{_N}\n{_N.replace('a.md', 'b.md')}"),
    "in a function": _block(f'{{"id": "c1", "type": "function", "function": {_N}}}'),
    "a list of calls": _block(f'{{"tool_calls": [{_N}]}}'),
    "in parallel": _block(
        '{"name": "multi_tool_use.parallel", "arguments": {"tool_uses": [{"recipient_name": "functions.write_note", '
        f'"parameters": {_NOTE}}}, {_N.replace("a.md", "b.md")}]}}}}'
    ),
    "other words": _block(f'{{"tool": "search", "args": {_PLAIN}}}'),
    "as in Python": _block(str({"name": "search", "arguments": json.loads(_PLAIN)})),
    "keys without quotes": _block(
        '{name: "write_note", arguments: {path: "notes/a.md", content: "Hello world, it is."}}'
    ),
    "a name in the tag": f'<tool_call name="write_note">{_NOTE}</tool_call>',
    "a function of parameters": _block(
        "\n<function=write_note>\n<parameter=path>\nnotes/a.md\n</parameter>\n<parameter=content>\nHello world, it is."
        "\n</parameter>\n</function>\n"
    ),
    "an invocation": _block(
        '<invoke name="write_note"><parameter name="path">notes/a.md</parameter><parameter name="content">Hello world, '
        "it is.</parameter></invoke>"
    ),
    "keys and values": _block(
        "write_note\n<arg_key>path</arg_key>\n<arg_value>notes/a.md</arg_value>\n<arg_key>content</arg_key>\n<arg_value>"
        "Hello world, it is.</arg_value>\n"
    ),
    "a call of Python": _block('write_note(path="notes/a.md", content="Hello world, it is.")'),
    "a name over the arguments": _block(f"write_note\n{_NOTE}"),
    "a name in elements": _block(f"<tool_name>write_note</tool_name>\n<arguments>\n{_NOTE}\n</arguments>"),
}  # fmt: skip

# What is put in or put in place of a character: all that means something somewhere, and what means nothing.
ALPHABET = "{}[]()<>\"'`,:;=/\\#&.-_ \n\tx7n"

Call = tuple[str, str]
Fate = Literal["same", "literal", "refused", "wrong"]


@dataclass(frozen=True)
class Mutation:
    notation: str
    text: str
    what: str


def mutations(notation: str) -> Iterator[Mutation]:
    """Every text that is one character away from this notation's."""
    text = NOTATIONS[notation]
    for at, char in enumerate(text):
        before, after = text[:at], text[at + 1 :]
        yield Mutation(notation, before + after, f"{char!r} at {at} left out")
        if after and after[0] != char:
            yield Mutation(
                notation, before + after[0] + char + after[1:], f"{char!r} at {at} swapped with {after[0]!r}"
            )
        for other in ALPHABET:
            yield Mutation(notation, before + other + char + after, f"{other!r} put in at {at}")
            if other != char:
                yield Mutation(notation, before + other + after, f"{char!r} at {at} replaced by {other!r}")


def sample(count: int, seed: int) -> list[Mutation]:
    """So many mutations of every notation."""
    pick = random.Random(seed)  # noqa: S311 -- the same in every run
    return list(chain.from_iterable(pick.sample(list(mutations(name)), count) for name in NOTATIONS))


def calls_in(text: str) -> list[Call]:
    """What would run: the calls of declared tools, whose arguments are made to fit."""
    parser = SentinelParser()
    events = [*parser.receive_text(text), *parser.receive_eof()]
    calls: list[Call] = []
    for event in events:
        if isinstance(event, CallCompleted) and (tool := TOOLS.match(event.name)):
            wanted = read_parameter_types(tool.parameters or "")
            fitted = fit(event.arguments, wanted, beside=event.extra, repaired=event.tier is not Tier.VALID)
            if isinstance(fitted, Coerced):
                calls.append((tool.name, fitted.arguments))
    return calls


def fate_of(mutation: Mutation) -> Fate:
    calls = [(name, json.loads(text)) for name, text in calls_in(mutation.text)]
    wanted = [(name, json.loads(text)) for name, text in calls_in(NOTATIONS[mutation.notation])]
    if calls == wanted:
        return "same"
    if not calls:
        return "refused"
    # Of several calls each may be read or refused by itself.
    if all(any(_differs_by_a_character(call, one) for one in wanted) for call in calls):
        return "literal"
    return "literal" if calls == _written(mutation.text) else "wrong"


def _differs_by_a_character(call: object, wanted: object) -> bool:
    """Whether one is the other but for one string, key or number in it, in which a character was changed."""
    changed = [pair for pair in _pairs(call, wanted) if pair[0] != pair[1]]
    return not changed or (len(changed) == 1 and _is_near(*changed[0]))


def _pairs(one: object, other: object) -> Iterator[tuple[object, object]]:
    match one, other:
        case (tuple() | list(), tuple() | list()) if len(one) == len(other):
            for pair in zip(one, other, strict=True):
                yield from _pairs(*pair)
        case (dict(), dict()) if len(one) == len(other):
            for (key, inner), (other_key, other_inner) in zip(one.items(), other.items(), strict=True):
                yield key, other_key
                yield from _pairs(inner, other_inner)
        case _:
            yield one, other


def _is_near(one: object, other: object) -> bool:
    """Whether they are of one kind and one character apart, as they are or as they are written in JSON."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        return not isinstance(one, bool)
    if not (isinstance(one, str) and isinstance(other, str)):
        return False
    # A backslash that means nothing is kept, and then it is written twice.
    a, b = json.dumps(one), json.dumps(other)
    forms = [(one.strip(), other.strip()), (a, b), (a.replace("\\\\", "\\"), b.replace("\\\\", "\\"))]
    return any(_is_a_character_apart(*form) for form in forms)


def _is_a_character_apart(a: str, b: str) -> bool:
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return max(len(a), len(b)) <= 1 or (len(a) == 2 and a == b[::-1]) or {a, b} & {"\\n", "\\t"} != set()


def _written(text: str) -> list[tuple[str, object]] | None:
    """The calls that stand in it to the letter, read by nothing but `json`."""
    calls: list[tuple[str, object]] = []
    for block in text.split("<tool_call>")[1:]:
        body = block.partition("</tool_call>")[0].strip()
        if elements := _ELEMENTS.fullmatch(body):
            values = {pair[1] or pair[3]: (pair[2] or pair[4]).strip() for pair in _PAIR.finditer(elements[2])}
            calls.append((elements[1], values))
            continue
        try:
            call = json.loads(body)
            calls.append((str(call["name"]), call["arguments"]))
        except (ValueError, KeyError, TypeError):
            return None
    return calls


_NAME = r"[\"']?([^\"'<>]+)[\"']?"
_PAIRS = (
    rf"<parameter(?:=| name=){_NAME}>((?:(?!</?parameter).)*)</parameter>",
    "<arg_key>([^<>]*)</arg_key>\\s*<arg_value>((?:(?!</?arg_).)*)</arg_value>",
)
_PAIR = re.compile("|".join(_PAIRS), re.DOTALL)
_ELEMENTS = re.compile(
    rf"(?:<(?:function|invoke)(?:=| name=))?{_NAME}>?((?:\s*(?:{_PAIR.pattern}))*)\s*(?:</\w+>)?", re.DOTALL
)


def fates(tried: Iterable[Mutation]) -> tuple[dict[str, Counter[Fate]], list[Mutation]]:
    """By notation how often each fate was met, and the mutations that were read as what nobody wrote."""
    counted = {name: Counter[Fate]() for name in NOTATIONS}
    wrong = []
    for mutation in tried:
        fate = fate_of(mutation)
        counted[mutation.notation][fate] += 1
        if fate == "wrong":
            wrong.append(mutation)
    return counted, wrong


def main() -> None:
    counted, wrong = fates(chain.from_iterable(map(mutations, NOTATIONS)))
    columns: tuple[Fate, ...] = ("same", "literal", "refused", "wrong")
    sys.stdout.write(f"{'':28}{''.join(f'{fate:>9}' for fate in columns)}\n")
    for name, counts in [*counted.items(), ("all", sum(counted.values(), Counter()))]:
        sys.stdout.write(f"{name:28}{''.join(f'{counts[fate]:9}' for fate in columns)}\n")
    for mutation in wrong:
        sys.stdout.write(f"\n{mutation.notation}: {mutation.what}\n{mutation.text!r}\n    {calls_in(mutation.text)}\n")


if __name__ == "__main__":
    main()
