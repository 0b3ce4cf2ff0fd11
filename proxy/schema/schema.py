"""A schema by its text, and how values are checked against it."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import orjson
from referencing.exceptions import Unresolvable

from .check import LONGEST_VALUE, MAX_DEPTH, cut, extent_of, problem_of
from .check_budget import CheckBudget, SchemaUnusable
from .dialects import dialect_of
from .patterns import usable
from .validator import REFERENCE, Json, Resolver, price_of_reference

# Characters of a schema, and values in it, of any kind and in one another.
MAX_CHARACTERS = 256 * 1024
MAX_VALUES = 10_000

# Likewise of a value; no check could look at more.
MOST_VALUES = 1_000_000

# Characters of an identifier. Every one below it is joined with it.
LONGEST_IDENTIFIER = 1_000

# Longer texts are read anew each time, so that hostile ones cannot fill the memory.
LONGEST_KEPT = 32 * 1024

# What says that references may lead by names, which are to be looked for in all of the document.
ANCHORS = frozenset({"$anchor", "$dynamicAnchor", "$recursiveAnchor"})

# Where these lead depends on the way to them; characters of a schema that has one.
DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})
LONGEST_DYNAMIC = 16 * 1024


class SchemaError(Exception):
    """A schema that no value can be held against; the message is a sentence without its final stop."""


class Schema:
    """A schema that values can be held against. Raises `SchemaError` when `text` is none.

    What takes too long to look through is taken as it is: what is wrong with it shows when a value meets it.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            raise SchemaError(f"it has more than {MAX_CHARACTERS} characters")
        try:
            root = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise SchemaError("it is not JSON") from error
        if not isinstance(root, dict | bool):
            raise SchemaError("a schema is an object")
        extent = extent_of(root, MAX_VALUES)
        if extent is None:
            raise SchemaError(
                f"it has more than {MAX_VALUES} values in it, or nests them deeper than {MAX_DEPTH} levels"
            )
        if not DYNAMIC.isdisjoint(extent.names) and len(text) > LONGEST_DYNAMIC:
            raise SchemaError(f"it has more than {LONGEST_DYNAMIC} characters, and dynamic references")
        dialect = dialect_of(root)
        if dialect.identifier in extent.names and _longest_under(dialect.identifier, root) > LONGEST_IDENTIFIER:
            raise SchemaError(f"an identifier has more than {LONGEST_IDENTIFIER} characters")
        named = not extent.names.isdisjoint({dialect.identifier} | ANCHORS | DYNAMIC)
        self._size = len(text)
        budget = CheckBudget(len(text))
        with suppress(SchemaUnusable):
            if (problem := problem_of(dialect.metaschema, root, budget)) is not None:
                raise SchemaError(problem)
        try:
            self._document = dialect.document(root, crawled=named)
        except Exception as error:
            raise SchemaError("its identifiers cannot be read") from error
        self.unusable_pattern: str | None = None
        """One that no text can be held against, if one was found."""
        with suppress(SchemaUnusable):
            self._check_references_and_patterns(budget)

    def _check_references_and_patterns(self, budget: CheckBudget) -> None:
        waiting = [(self._document.resource, self._document.registry.resolver(self._document.name))]
        while waiting:
            resource, resolver = waiting.pop()
            here = resource.contents if isinstance(resource.contents, dict) else {}
            budget.spend(REFERENCE)
            if isinstance(reference := here.get("$ref"), str):
                budget.spend(price_of_reference(reference))
                _check_reference(resolver, reference)
            for pattern in _patterns(here):
                if self.unusable_pattern is None and not usable(pattern, budget):
                    self.unusable_pattern = pattern
            waiting += [(each, resolver.in_subresource(each)) for each in resource.subresources()]

    def misfit(self, value: Json) -> str | None:
        """Why the JSON value does not fit, as a short sentence without its stop; None when it fits.

        Raises `SchemaUnusable` when that cannot be told in bounds.
        """
        extent = extent_of(value, MOST_VALUES)
        if extent is None:
            raise SchemaUnusable("the value is too large")
        return problem_of(self._document, value, CheckBudget(self._size + extent.characters))


def read_schema(text: str) -> Schema:
    """The schema of this text; raises `SchemaError`. The last ones are kept, whoever asked for them."""
    return _kept(text) if len(text) <= LONGEST_KEPT else Schema(text)


@lru_cache(maxsize=128)
def _kept(text: str) -> Schema:
    return Schema(text)


def _longest_under(name: str, root: Json) -> int:
    """The length of the longest text that is a member `name`."""
    longest, waiting = 0, [root]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if isinstance(found := each.get(name), str):
                longest = max(longest, len(found))
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return longest


def _check_reference(resolver: Resolver, reference: str) -> None:
    try:
        leads = isinstance(resolver.lookup(reference).contents, dict | bool)
    except (Unresolvable, LookupError, TypeError, ValueError):
        leads = False
    if not leads:
        shown = cut(reference, LONGEST_VALUE)
        raise SchemaError(f"'{shown}' must lead to a schema in the same document, as '#/$defs/name'")


def pattern_problem(pattern: str) -> str:
    """What is wrong with a pattern that no text can be held against."""
    shown = cut(pattern, LONGEST_VALUE)
    return f"the pattern '{shown}' cannot be used: it looks ahead or behind, refers back to a group, or is too large"


def _patterns(schema: Json) -> list[str]:
    """Those that stand directly in a schema of any shape."""
    named = schema.get("patternProperties")
    patterns = [schema.get("pattern"), *(named if isinstance(named, dict) else ())]
    return [pattern for pattern in patterns if isinstance(pattern, str)]
