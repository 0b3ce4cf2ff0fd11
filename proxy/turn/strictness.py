"""Strict tools: their schemas, and whether a call's arguments fit."""

from __future__ import annotations

import orjson

from parser import ToolRegistry

from .. import schema
from ..errors import RequestError
from .report import TurnReport


class StrictTools:
    """The schemas of the strict tools of `registry`. Raises `RequestError` when one of them is none."""

    def __init__(self, registry: ToolRegistry, report: TurnReport) -> None:
        self._report = report
        self._schemas: dict[str, schema.Schema] = {}
        strict = [tool for tool in registry if tool.strict]
        self.offered = bool(strict)
        for tool in strict:
            if tool.parameters is not None:
                self._schemas[tool.name] = _schema(tool.name, tool.parameters)

    def problem(self, name: str, arguments: str) -> str | None:
        """Why the JSON text `arguments` does not fit the tool of this name; None when it does or nobody can tell."""
        # A tool without a schema takes anything, also where it is strict.
        wanted = self._schemas.get(name)
        if wanted is None:
            return None
        try:
            return wanted.misfit(orjson.loads(arguments))
        except orjson.JSONDecodeError:
            return "they are not valid JSON"
        except schema.SchemaUnusable as error:
            self._report.give_up_check(str(error))
            return None


def _schema(name: str, text: str) -> schema.Schema:
    try:
        return schema.read_schema(text)
    except schema.SchemaError as error:
        raise RequestError(
            f"Invalid schema for function '{name}': {error}.", code="invalid_function_parameters", param="tools"
        ) from error
