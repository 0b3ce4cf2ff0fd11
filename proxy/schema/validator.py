"""The validator that the keywords of `jsonschema` work with. It counts each step of a check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jsonschema import TypeChecker
from jsonschema.exceptions import UndefinedTypeCheck, UnknownType, ValidationError
from msgspec import Struct
from referencing import Specification
from referencing.jsonschema import Schema as SchemaContents
from referencing.jsonschema import lookup_recursive_ref

from .check_budget import CheckBudget
from .patterns import Patterns

# What is looked through for one step: values of a keyword, members, items.
VALUES_A_STEP = 8

# Likewise, characters of a reference.
CHARACTERS_A_STEP = 8

# Likewise, characters of a message, which shows the value.
SHOWN_A_STEP = 64

# Steps for a subschema that is met on a new way.
SUBSCHEMA = 3

# Steps for an error, and for each level that it passes.
NEW_ERROR = 12
PASSED_ERROR = 3

# Steps for a reference or an identifier; and for each part of its path, which is held against all parts before it.
REFERENCE = 8

_ANCHOR = re.compile("#[^/]")

Json = Any
Resolver = Any  # the library keeps its class to itself
Path = str | int | None
# Takes the validator, the keyword's own value, the value in question, and the schema of the keyword.
Keyword = Callable[["CountingValidator", Json, Json, Mapping[str, Json]], Iterable[ValidationError]]


class Vocabulary(Struct, frozen=True):
    """What a draft says. In those before 2019-09 nothing counts beside a `$ref`."""

    keywords: Mapping[str, Keyword]
    types: TypeChecker
    specification: Specification[SchemaContents]
    references_stand_alone: bool


class RunningCheck:
    """What all subschemas at work in one check share."""

    __slots__ = ("budget", "patterns", "vocabulary")

    def __init__(self, vocabulary: Vocabulary, budget: CheckBudget) -> None:
        self.vocabulary = vocabulary
        self.budget = budget
        self.patterns = Patterns(budget)


class CountingValidator:
    """One subschema at work in a check.

    It is made once for each way that leads to the subschema, and keeps those that it leads to itself.
    """

    __slots__ = ("_children", "_keywords", "_referred", "_resolver", "check", "schema")

    def __init__(self, check: RunningCheck, schema: Json, resolver: Resolver) -> None:
        self.check = check
        self.schema = schema
        self._resolver = resolver
        self._children: dict[int, CountingValidator] = {}
        self._referred: dict[str | None, CountingValidator] = {}
        self._keywords = [] if isinstance(schema, bool) else self._priced(schema)
        check.budget.spend(SUBSCHEMA + sum(price for *_, price in self._keywords))

    def _priced(self, schema: Mapping[str, Json]) -> list[tuple[str, Json, Keyword, int]]:
        vocabulary = self.check.vocabulary
        if vocabulary.references_stand_alone and "$ref" in schema:
            schema = {"$ref": schema["$ref"]}
        return [
            (name, wanted, vocabulary.keywords[name], 1 + _looked_through(name, wanted) // VALUES_A_STEP)
            for name, wanted in schema.items()
            if name in vocabulary.keywords
        ]

    def referred(self, reference: str) -> CountingValidator:
        """What `$ref` or `$dynamicRef` leads to."""
        found = self._referred.get(reference)
        if found is None:
            budget = self.check.budget
            budget.spend(price_of_reference(reference))
            if _ANCHOR.search(reference):  # it may lead back over each of the references that led here
                budget.spend(REFERENCE * budget.depth)
            resolved = self._resolver.lookup(reference)
            found = CountingValidator(self.check, resolved.contents, resolved.resolver)
            self._referred[reference] = found
        return found

    def referred_back(self) -> CountingValidator:
        """What `$recursiveRef` leads to."""
        found = self._referred.get(None)
        if found is None:
            self.check.budget.spend(REFERENCE * (1 + self.check.budget.depth))
            resolved = lookup_recursive_ref(self._resolver)
            found = self._referred[None] = CountingValidator(self.check, resolved.contents, resolved.resolver)
        return found

    # From here on names and arguments are the library's.

    def is_type(self, instance: Json, type: str) -> bool:
        try:
            return self.check.vocabulary.types.is_type(instance, type)
        except UndefinedTypeCheck:
            raise UnknownType(type, instance, self.schema) from None

    def evolve(self, *, schema: Json) -> CountingValidator:
        child = self._children.get(id(schema))
        if child is None:
            resource = self.check.vocabulary.specification.create_resource(schema)
            resolver = self._resolver
            if resource.id() is not None:
                self.check.budget.spend(REFERENCE)
                resolver = resolver.in_subresource(resource)
            child = self._children[id(schema)] = CountingValidator(self.check, schema, resolver)
        return child

    def descend(
        self, instance: Json, schema: Json, path: Path = None, schema_path: Path = None
    ) -> Iterator[ValidationError]:
        return self.evolve(schema=schema).iter_errors(instance, path, schema_path)

    def is_valid(self, instance: Json) -> bool:
        return next(self.iter_errors(instance), None) is None

    def iter_errors(self, instance: Json, path: Path = None, schema_path: Path = None) -> Iterator[ValidationError]:
        """`path` and `schema_path` lead here from where the errors are passed on to."""
        schema, budget = self.schema, self.check.budget
        budget.spend(1)
        if schema is False:
            message = f"False schema does not allow {instance!r}"
            budget.spend(price_of_error(message))
            error: Json = ValidationError(message, instance=instance, schema=schema)
            error.validator = error.validator_value = None
            yield error
        size = len(instance) // VALUES_A_STEP if isinstance(instance, dict | list) else 0
        budget.go_deeper()
        try:
            for name, wanted, keyword, price in self._keywords:
                budget.spend(price + size)
                for error in keyword(self, wanted, instance, schema):
                    budget.spend(PASSED_ERROR if error.schema_path else price_of_error(error.message))
                    error._set(  # noqa: SLF001 -- as the library's validator does, whose place this takes
                        validator=name,
                        validator_value=wanted,
                        instance=instance,
                        schema=schema,
                        type_checker=self.check.vocabulary.types,
                    )
                    if name not in {"if", "$ref"}:
                        error.schema_path.appendleft(name)
                    if path is not None:
                        error.path.appendleft(path)
                    if schema_path is not None:
                        error.schema_path.appendleft(schema_path)
                    yield error
        finally:
            budget.come_back()

    def _validate_reference(self, ref: str, instance: Json) -> Iterator[ValidationError]:
        return self.referred(ref).iter_errors(instance)


def price_of_reference(reference: str) -> int:
    parts = reference.count("/")
    return (1 + parts) * (REFERENCE + parts // CHARACTERS_A_STEP) + len(reference) // CHARACTERS_A_STEP


def price_of_error(message: str) -> int:
    return NEW_ERROR + len(message) // SHOWN_A_STEP


def values_in(value: Json) -> int:
    """All of them, in one another."""
    count, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        count += 1
        if isinstance(each, dict | list):
            waiting += each.values() if isinstance(each, dict) else each
    return count


def _looked_through(name: str, wanted: Json) -> int:
    """How many values of its own the keyword `name` looks through, each time."""
    match name:
        case "enum" | "const":
            return values_in(wanted)
        case "dependentRequired" | "dependencies" if isinstance(wanted, dict):
            return len(wanted) + sum(len(each) for each in wanted.values() if isinstance(each, list))
        case _:
            return len(wanted) if isinstance(wanted, dict | list) else 0
