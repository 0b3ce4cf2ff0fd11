"""Custom tools, whose input is free text, for a model that is only taught functions.

The model is offered a function with one string, `input`, whose description carries the format; what it
writes is unwrapped for the client, and a past input is wrapped for the model. That an input keeps to
its grammar is asked of the model, not checked.
"""

from __future__ import annotations

import orjson

from .json_body import JsonObject, JsonValue
from .reader import Reader, wrong_value

# The syntaxes of a grammar, as the model is told of them.
_SYNTAXES = {"lark": "Lark grammar", "regex": "regular expression"}


def parse_format(tool: Reader) -> JsonObject:
    """`format` of a custom tool. Chat's shape, where `grammar` is an object, is taken as well."""
    form = tool.object("format")
    if form is None:
        return {"type": "text"}
    match kind := form.required_string("type"):
        case "text":
            return {"type": "text"}
        case "grammar":
            grammar = form.object("grammar") or form
            syntax = grammar.required_string("syntax")
            grammar.choice("syntax", tuple(_SYNTAXES))
            return {"type": "grammar", "syntax": syntax, "definition": grammar.required_string("definition")}
        case _:
            raise wrong_value(form.at("type"), kind, ("text", "grammar"))


def input_schema(form: JsonObject) -> JsonObject:
    """The parameters of the function that stands for a tool of this format."""
    description = "The whole input, as free text."
    match form:
        case {"type": "grammar", "syntax": str(syntax), "definition": str(definition)}:
            description = f"The whole input, as free text that matches this {_SYNTAXES[syntax]}:\n{definition}"
        case _:
            pass
    return {
        "type": "object",
        "properties": {"input": {"type": "string", "description": description}},
        "required": ["input"],
        "additionalProperties": False,
    }


def wrap_input(text: str) -> str:
    """A custom tool's input as the function's arguments."""
    return orjson.dumps({"input": text}).decode()


def unwrap_input(arguments: str) -> str:
    """The input in a function's arguments: `input`, or the one string there is; else the arguments as they are."""
    try:
        value: JsonValue = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    match value:
        case str(text) | {"input": str(text)}:
            return text
        case dict() if not value:
            return ""
        case dict() if len(value) == 1:
            (only,) = value.values()
            return only if isinstance(only, str) else arguments
        case _:
            return arguments
