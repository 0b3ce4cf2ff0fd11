"""Schemas that a request declares, and whether values fit. For a strict tool, a value must be seen to fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson

from parser import Tool, ToolRegistry

from .. import schema
from ..errors import RequestError
from .lark import grammar_misfit

# Told why nobody can say whether a value fits.
Unchecked = Callable[[str], None]


def declared_schema(text: str, of: str, *, strict: bool, code: str, param: str) -> schema.Schema:
    """The schema `of` something that a request declares. Raises `RequestError` when it is of no use."""
    try:
        wanted = schema.read_schema(text)
        if not strict or wanted.unusable_pattern is None:
            return wanted
        problem = schema.pattern_problem(wanted.unusable_pattern)
    except schema.SchemaError as error:
        problem = str(error)
    raise RequestError(f"Invalid schema for {of}: {problem}.", code=code, param=param)


def misfit(wanted: schema.Schema, value: object, unchecked: Unchecked, *, strict: bool, fit: str) -> str | None:
    """What is wrong with `value`; None when it fits, or nobody can tell and it may leave. `fit` asks that of it."""
    try:
        return wanted.misfit(value)
    except schema.SchemaUnusable as error:
        if strict:
            # What was asked to fit and may not is no better than what does not.
            return f"whether {fit} cannot be told, as {error}"
        unchecked(str(error))
        return None


class ToolSchemas:
    """The schemas of the tools of `registry`. Raises `RequestError` when one of a strict tool is of no use.

    Those of the others are read when a call is checked by them: clients declare many, and none may be used.
    """

    def __init__(self, registry: ToolRegistry, unchecked: Unchecked) -> None:
        self._unchecked = unchecked
        code, param = "invalid_function_parameters", "tools"
        strict = [tool for tool in registry if tool.strict]
        self._strict = {
            tool.name: declared_schema(tool.parameters, f"function '{tool.name}'", strict=True, code=code, param=param)
            for tool in strict
            if tool.parameters is not None
        }
        self.strict = bool(strict)

    def problem(self, tool: Tool, arguments: str) -> str | None:
        """What is wrong with the JSON text `arguments`; None when it fits, or nobody can tell and it may leave."""
        # A tool without a schema takes anything, also where it is strict.
        if tool.parameters is None:
            return None
        try:
            wanted = self._strict.get(tool.name) or schema.read_schema(tool.parameters)
            value = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return "they are not valid JSON"
        except schema.SchemaError:
            self._unchecked("the schema is none")
            return None
        problem = misfit(wanted, value, self._unchecked, strict=tool.strict, fit="they fit")
        return problem or self._grammar_problem(tool, value)

    def _grammar_problem(self, tool: Tool, value: Mapping[str, str]) -> str | None:
        """Of arguments that fit the schema. The bounds of this check are ours, so in doubt an input may leave."""
        if tool.grammar is None:
            return None
        try:
            problem = grammar_misfit(tool.grammar, value["input"])
        except schema.SchemaUnusable as error:
            self._unchecked(str(error))
            return None
        return None if problem is None else f"at 'input': {problem}"
