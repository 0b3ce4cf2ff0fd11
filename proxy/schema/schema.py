"""A schema by its text, and how values are held against it."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import orjson
from referencing.exceptions import Unresolvable

from .budget import SchemaUnusable, current_budget, one_budget
from .check import LONGEST_VALUE, MAX_DEPTH, MAX_VALUES, cut, member_names, problem_of
from .dialects import Document, dialect_of
from .keywords import Json

MAX_CHARACTERS = 256 * 1024
# Longer texts are read anew each time, so that hostile ones cannot fill the memory.
LONGEST_KEPT = 32 * 1024
# Their targets are looked for in all of the document.
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
        names = member_names(root)
        if names is None:
            raise SchemaError(
                f"it has more than {MAX_VALUES} values in it, or nests them deeper than {MAX_DEPTH} levels"
            )
        dynamic = not DYNAMIC.isdisjoint(names)
        if dynamic and len(text) > LONGEST_DYNAMIC:
            raise SchemaError(f"it has more than {LONGEST_DYNAMIC} characters, and dynamic references")
        # The library has a matcher of its own there, which runs on.
        self._unbounded = {"patternProperties", "unevaluatedProperties"} <= names
        dialect = dialect_of(root)
        with one_budget():
            with suppress(SchemaUnusable):
                if (problem := problem_of(dialect.metaschema, root)) is not None:
                    raise SchemaError(problem)
            try:
                self._document = dialect.document(root, crawled=dynamic)
            except Exception as error:
                raise SchemaError("its identifiers cannot be read") from error
            with suppress(SchemaUnusable):
                _check_references(self._document)

    def misfit(self, value: Json) -> str | None:
        """Why the JSON value does not fit, as a short sentence without its stop; None when it fits.

        Raises `SchemaUnusable` when that cannot be told in bounds.
        """
        if self._unbounded:
            raise SchemaUnusable("unevaluatedProperties beside patternProperties cannot be checked")
        if member_names(value) is None:
            raise SchemaUnusable("the value is too large")
        return problem_of(self._document, value)


def read_schema(text: str) -> Schema:
    """The schema of this text; raises `SchemaError`. The last ones are kept, whoever asked for them."""
    return _kept(text) if len(text) <= LONGEST_KEPT else Schema(text)


@lru_cache(maxsize=128)
def _kept(text: str) -> Schema:
    return Schema(text)


def _check_references(document: Document) -> None:
    waiting = [(document.resource, document.registry.resolver(document.name))]
    while waiting:
        resource, resolver = waiting.pop()
        reference = resource.contents.get("$ref") if isinstance(resource.contents, dict) else None
        current_budget().spend()
        if isinstance(reference, str):
            current_budget().spend(len(reference) // 8)
            try:
                leads = isinstance(resolver.lookup(reference).contents, dict | bool)
            except (Unresolvable, LookupError, TypeError, ValueError):
                leads = False
            if not leads:
                shown = cut(reference, LONGEST_VALUE)
                raise SchemaError(f"'{shown}' must lead to a schema in the same document, as '#/$defs/name'")
        waiting += [(each, resolver.in_subresource(each)) for each in resource.subresources()]
