"""When two calls are the same: their arguments as comparable text; and the call that a conversation repeats."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from .transcript import PastCall, ToolResult, Transcript, UserTurn

Members = dict[str, object]


class Number:
    """A JSON number. Equal values are `written` alike: digits without outer zeros, and a power of ten."""

    __slots__ = ("text", "written")

    def __init__(self, text: str) -> None:
        self.text = text
        mantissa, _, exponent = text.lower().partition("e")
        sign = "-" if mantissa.startswith("-") else ""
        whole, _, fraction = mantissa.lstrip("-").partition(".")
        digits = (whole + fraction).strip("0")
        zeros = len(whole + fraction) - len((whole + fraction).rstrip("0"))
        if not digits:
            self.written = "0"
        elif len(exponent) > 1000:  # int() refuses very long numbers, and nobody writes these
            self.written = text
        else:
            self.written = f"{sign}{digits}e{int(exponent or 0) - len(fraction) + zeros}"

    def __str__(self) -> str:
        return self.text

    @property
    def digits(self) -> str:
        """Those that all ways to write it have."""
        return self.written.lstrip("-").partition("e")[0]


def refuse_constant(constant: str) -> None:
    """For a decoder: `NaN` and the like are Python's, not JSON's."""
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=refuse_constant)
# In front of a command: the folder that it is to run in.
_FOLDER = re.compile(r"cd ([^\s\"'`$;&|<>*?(){}\[\]!#]{1,1024}) && ")
# The key keeps a number apart from a string. Only an object made to look like one could be taken for it.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    separators=(",", ":"),
    sort_keys=True,
    check_circular=False,
    default=lambda number: {"\0number": number.written},
)


def canonical(arguments: str) -> str | None:
    """The one text of the JSON object `arguments`, whatever its key order, spacing and way to write numbers.

    Equal objects, compared as values, have equal texts. None when `arguments` is not the text of a JSON
    object, or nested beyond reason.
    """
    return _one_text(arguments, dict)


def sent_back(arguments: str, properties: Members | None = None, folder: str | None = None) -> str | None:
    """`canonical`, without what clients change in a call before they run it and send it back with its result.

    Claude Code takes white space off the ends of lines. A `null` is what was left out.
    With the `properties` of the tool's schema, members that a model left out stand there with their `default`: a
    client that reads arguments by a schema of Zod's, as Claude Code does, runs the call with those and sends them back.
    With a `folder`, `cd FOLDER && ` is taken off the beginning of the command, as Claude Code does in that folder.
    """

    def changed(members: Members) -> Members:
        return _tidied(members if properties is None else _with_defaults(members, properties), folder)

    return _one_text(arguments, changed)


def properties_of(parameters: str) -> Members:
    """The schema of each parameter in a JSON Schema; none if it cannot be read."""
    match _decoded(parameters):
        case {"properties": dict(properties)}:
            return properties
        case _:
            return {}


def folder_of(arguments: str) -> str | None:
    """The folder to which the command in `arguments` changes first, if it does."""
    if '"cd ' not in arguments:
        return None
    match _decoded(arguments):
        case {"command": str(command)} if found := _FOLDER.match(command):
            return found[1]
        case _:
            return None


def _decoded(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _one_text(arguments: str, change: Callable[[Members], Members]) -> str | None:
    try:
        value = _DECODER.decode(arguments)
        return _ENCODER.encode(change(value)) if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        return None


def _with_defaults(members: Members, properties: Members) -> Members:
    defaults = {name: it["default"] for name, it in properties.items() if isinstance(it, dict) and "default" in it}
    return defaults | {name: _filled(member, properties.get(name)) for name, member in members.items()}


def _filled(value: object, schema: object) -> object:
    match value, schema:
        case dict(), {"properties": dict(properties)}:
            return _with_defaults(value, properties)
        case list(), {"items": item}:
            return [_filled(each, item) for each in value]
        case _:
            return value


def _tidied(members: Members, folder: str | None) -> Members:
    return {
        name: _tidied_text(value, f"cd {folder} && " if name == "command" and folder else "")
        if isinstance(value, str)
        else value
        for name, value in members.items()
        if value is not None
    }


def _tidied_text(text: str, beginning: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).removeprefix(beginning)


def leaves(arguments: str) -> Iterator[object]:
    """The values in the JSON object `arguments` that are not made of others; none, if it is no such object."""
    todo: list[object] = [] if canonical(arguments) is None else [_DECODER.decode(arguments)]
    while todo:
        match todo.pop():
            case dict(members):
                todo += members.values()
            case list(items):
                todo += items
            case value:
                yield value


def looping_calls(transcript: Transcript) -> frozenset[tuple[str, str]]:
    """Name and `canonical` arguments of each call with which the conversation goes round if it comes now.

    Those are calls that were made in each of the last two rounds, each time with a result. A loop has no new
    message of the user in it and no other call: "read it again, it changed" is none.
    """
    rounds: list[set[tuple[str, str]]] = []
    calls: dict[str, PastCall] = {}
    made: set[tuple[str, str]] = set()
    for entry in transcript.entries:
        match entry:
            case UserTurn():
                rounds, calls, made = [], {}, set()
            case PastCall(call_id=call_id):
                if made:
                    rounds.append(made)
                    made = set()
                calls[call_id] = entry
            case ToolResult(call_id=call_id) if call_id in calls:
                call = calls.pop(call_id)
                if (arguments := canonical(call.arguments)) is not None:
                    made.add((call.name, arguments))
            case _:
                pass
    rounds.append(made)
    return frozenset(set.intersection(*rounds[-2:])) if len(rounds) > 1 else frozenset()
