"""What the declared schemas say of a call's arguments: a strict tool's call fits, another's is asked for once more."""

from __future__ import annotations

import orjson

from parser import Tool, ToolRegistry

from .. import schema
from ..errors import RequestError
from .report import TurnReport


class ToolSchemas:
    """The schemas of the tools of `registry`. Raises `RequestError` when one of a strict tool is of no use.

    Those of the others are read when a call is held against them: clients declare many, and none may be used.
    """

    def __init__(self, registry: ToolRegistry, report: TurnReport) -> None:
        self._report = report
        self._strict = {tool.name: _strict_schema(tool.name, tool.parameters) for tool in registry if tool.strict}
        self.strict = bool(self._strict)

    def problem(self, tool: Tool, arguments: str) -> str | None:
        """What is wrong with the JSON text `arguments`; None when it fits, or nobody can tell and it may leave."""
        # A tool without a schema takes anything, also where it is strict.
        if tool.parameters is None:
            return None
        try:
            wanted = self._strict.get(tool.name) or schema.read_schema(tool.parameters)
            return wanted.misfit(orjson.loads(arguments))
        except orjson.JSONDecodeError:
            return "they are not valid JSON"
        except (schema.SchemaUnusable, schema.SchemaError) as error:
            if tool.strict:
                # What was asked to fit and may not is no better than what does not.
                return f"whether they fit cannot be told, as {error}"
            self._report.give_up_check(str(error) if isinstance(error, schema.SchemaUnusable) else "the schema is none")
            return None


def _strict_schema(name: str, text: str | None) -> schema.Schema | None:
    if text is None:
        return None
    try:
        wanted = schema.read_schema(text)
    except schema.SchemaError as error:
        raise _invalid(name, str(error)) from error
    if wanted.unusable_pattern is not None:
        raise _invalid(name, schema.pattern_problem(wanted.unusable_pattern))
    return wanted


def _invalid(name: str, problem: str) -> RequestError:
    return RequestError(
        f"Invalid schema for function '{name}': {problem}.", code="invalid_function_parameters", param="tools"
    )
