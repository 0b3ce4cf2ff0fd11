"""Whether an answer is right, as public boards judge it: name, required and typed arguments, nothing invented. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from parser import ToolRegistry

from ...schema import read_schema
from .cases import WantedCall


class Mistake(StrEnum):
    MISSING_CALL = "missing_call"
    EXTRA_CALL = "extra_call"
    """A call that nothing asks for, or one more than was asked for."""
    MISFIT = "misfit"
    """Arguments that are no JSON object, or do not fit the tool's schema."""
    MISSING_ARGUMENT = "missing_argument"
    INVENTED_ARGUMENT = "invented_argument"
    WRONG_ARGUMENT = "wrong_argument"
    NO_TEXT = "no_text"
    """Neither a call nor a word where an answer in plain text is right."""
    WRONG_TEXT = "wrong_text"
    """The answer lacks what it has to say."""
    FAILED = "failed"
    """There was no answer."""


class MadeCall(Struct, frozen=True):
    """A call as the client got it. `arguments` is JSON text."""

    name: str
    arguments: str


def mistakes(
    calls: Sequence[WantedCall], says: Sequence[str], tools: ToolRegistry, made: Sequence[MadeCall], text: str
) -> tuple[Mistake, ...]:
    """What is wrong with an answer that made these calls and showed this text; nothing, when it is right.

    What it says beside calls does not count.
    """
    return tuple(_of_calls(calls, tools, made) if calls or made else _of_text(says, text))


def _of_calls(wanted: Sequence[WantedCall], tools: ToolRegistry, made: Sequence[MadeCall]) -> Iterator[Mistake]:
    """Each wanted call is held against the made one that is nearest to it."""
    left = list(made)
    pairs = sorted(
        ((list(_of_call(want, tools, call)), place, call) for place, want in enumerate(wanted) for call in made),
        key=lambda pair: len(pair[0]),
    )
    missing = set(range(len(wanted)))
    for found, place, call in pairs:
        # The same call made twice is in `left` twice: it was asked for once.
        if place in missing and call in left and call.name == wanted[place].name:
            missing.remove(place)
            left.remove(call)
            yield from found
    yield from [Mistake.MISSING_CALL] * len(missing)
    yield from [Mistake.EXTRA_CALL] * len(left)


def _of_call(wanted: WantedCall, tools: ToolRegistry, made: MadeCall) -> Iterator[Mistake]:
    """What is wrong with the arguments; the name is right."""
    try:
        arguments = json.loads(made.arguments)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        yield Mistake.MISFIT
        return
    tool = tools.match(wanted.name)
    if tool is not None and tool.parameters and read_schema(tool.parameters).misfit(arguments) is not None:
        yield Mistake.MISFIT
    for name, values in wanted.exact.items():
        if name not in arguments:
            yield Mistake.MISSING_ARGUMENT
        elif not any(_same(arguments[name], value) for value in values):
            yield Mistake.WRONG_ARGUMENT
    for name, words in wanted.holds.items():
        if name not in arguments:
            yield Mistake.MISSING_ARGUMENT
        elif not _says(arguments[name], words):
            yield Mistake.WRONG_ARGUMENT
    known = {*wanted.exact, *wanted.holds, *wanted.may}
    yield from [Mistake.INVENTED_ARGUMENT for name in arguments if name not in known]


def _same(made: object, wanted: object) -> bool:
    """Equal JSON values; texts but for case and outer blanks, numbers in any spelling."""
    match made, wanted:
        case str(), str():
            return _folded(made) == _folded(wanted)
        case bool(), bool():
            return made == wanted
        case (bool(), _) | (_, bool()):
            return False
        case list(), list():
            return len(made) == len(wanted) and all(map(_same, made, wanted))
        case Mapping(), Mapping():
            return made.keys() == wanted.keys() and all(_same(made[name], wanted[name]) for name in made)
        case _:
            return made == wanted


def _folded(text: str) -> str:
    return text.replace("\r\n", "\n").strip().casefold()


def _says(value: Any, words: str) -> bool:  # noqa: ANN401 -- any JSON value
    return isinstance(value, str) and any(word.casefold() in value.casefold() for word in words.split("|"))


def _of_text(says: Sequence[str], text: str) -> Iterator[Mistake]:
    if not text.strip():
        yield Mistake.NO_TEXT
    elif not all(_says(text, words) for words in says):
        yield Mistake.WRONG_TEXT
