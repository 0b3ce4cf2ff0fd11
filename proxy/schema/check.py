"""One check of a value, and what it says in a sentence."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import islice

from jsonschema.exceptions import ValidationError, best_match
from msgspec import Struct
from referencing.exceptions import Unresolvable

from .check_budget import CheckBudget, SchemaUnusable
from .dialects import Document
from .validator import Json

# Levels of a schema or a value.
MAX_DEPTH = 64

# Misfits that the most telling one is chosen from.
MOST_ERRORS = 32

# Characters of a value, of a place and of all else in a message.
LONGEST_VALUE = 60
LONGEST_PLACE = 120
LONGEST_PROBLEM = 240


class Extent(Struct, frozen=True):
    """Of a value: how many are in it, at least how long its text is, and the names of all members."""

    values: int
    characters: int
    names: AbstractSet[str]


def extent_of(value: Json, most: int) -> Extent | None:
    """None when it has more than `most` values in it or is too deep."""
    names: set[str] = set()
    level, seen, depth, characters = [value], 0, 0, 0
    while level:
        seen, depth = seen + len(level), depth + 1
        if seen > most or depth > MAX_DEPTH:
            return None
        below: list[Json] = []
        for each in level:
            if isinstance(each, dict):
                names.update(each)
                characters += sum(map(len, each))
                below += each.values()
            elif isinstance(each, list):
                below += each
            elif isinstance(each, str):
                characters += len(each)
        level = below
    return Extent(seen, 2 * seen + characters, names)


def problem_of(document: Document, value: Json, budget: CheckBudget) -> str | None:
    """The most telling of the first misfits, as a short sentence without its stop; None when there is none.

    Raises `SchemaUnusable` when the check goes wrong before the first.
    """
    errors: list[ValidationError] = []
    try:
        errors.extend(islice(document.errors(value, budget), MOST_ERRORS))
    # A schema that was not looked through to its end may be of any shape.
    except Exception as error:
        if not errors:
            raise _unusable(error) from error
    return _sentence(best_match(errors)) if errors else None


def _unusable(error: Exception) -> SchemaUnusable:
    match error:
        case SchemaUnusable():
            return error
        case RecursionError():
            return SchemaUnusable("the check goes too deep")
        case Unresolvable():
            return SchemaUnusable("a reference leads nowhere")
        case _:
            return SchemaUnusable(f"the schema breaks the check ({type(error).__name__})")


def _sentence(error: ValidationError) -> str:
    shown, said = repr(error.instance), error.message
    if said.startswith(shown):  # as most do; without cutting it nothing else may be left
        said = cut(shown, LONGEST_VALUE) + said[len(shown) :]
    said = cut(said, LONGEST_PROBLEM)
    place = cut(error.json_path.removeprefix("$").removeprefix("."), LONGEST_PLACE)
    return f"at '{place}': {said}" if place else said


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
