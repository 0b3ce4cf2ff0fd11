"""Custom tools, whose input is free text, for a model that is only taught functions.

The model is offered a function with one string, `input`, whose description carries the format. What the model writes is
unwrapped for the client, and a past input is wrapped for the model. A regular expression becomes the pattern of that
string; a Lark grammar stands beside the tool. An input must match it, as a strict function's arguments their schema.
"""

from __future__ import annotations

import re

import orjson

from .. import schema
from ..schema.lark import grammar_problem
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


# An escape, or any other character; and a flag by which a dot is any character.
_PIECE = re.compile(r"\\.|.", re.DOTALL)
_DOTS_ARE_ALL = re.compile(r"\(\?[a-zA-Z]*s")
# What is of all of Unicode in a grammar, outside of a class and inside; and what makes sets of classes.
_WORD = r"\p{L}\p{M}\p{Nd}\p{Pc}"
_OF_UNICODE = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"}
_IN_CLASS = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": _WORD}
_SETS = re.compile(r"&&|--|~~")


def _as_ecma(definition: str) -> str | None:
    """A grammar is of Rust's `regex`, a pattern of ECMA-262: the same in other words, None where there are none."""
    if _DOTS_ARE_ALL.search(definition):
        return None
    written: list[str] = []
    opened: int | None = None  # where the class began that is open
    for piece in _PIECE.findall(definition):
        if opened is None:
            opened = len(written) if piece == "[" else None
            written.append(_OF_UNICODE.get(piece, piece))
        elif piece in {"[", r"\W"}:  # a class in a class
            return None
        elif piece != "]":
            written.append(_IN_CLASS.get(piece, piece))
        elif not "".join(written[opened + 1 :]).strip("^"):  # the first one in it is none of its end
            written.append(r"\]")
        else:
            if _SETS.search("".join(written[opened:])):
                return None
            written.append(piece)
            opened = None
    return "".join(written)


def has_grammar(form: JsonObject) -> bool:
    return form["type"] == "grammar"


def grammar_of(form: JsonObject) -> str | None:
    """The Lark grammar that an input is held to; None where there is none, or nothing can be held to it in bounds."""
    if form.get("syntax") != "lark" or grammar_problem(definition := str(form["definition"])) is not None:
        return None
    return definition


def pattern_of(form: JsonObject) -> str | None:
    """What an input is held to, as a pattern of JSON Schema; None where nothing can be held to it in bounds."""
    if form.get("syntax") != "regex" or (written := _as_ecma(str(form["definition"]))) is None:
        return None
    pattern = f"^(?:{written})$"
    unusable = schema.read_schema(orjson.dumps({"pattern": pattern}).decode()).unusable_pattern
    return pattern if unusable is None else None


def input_schema(form: JsonObject) -> JsonObject:
    """The parameters of the function that stands for a tool of this format."""
    description = "The whole input, as free text."
    match form:
        case {"type": "grammar", "syntax": str(syntax), "definition": str(definition)}:
            description = f"The whole input, as free text that matches this {_SYNTAXES[syntax]}:\n{definition}"
        case _:
            pass
    text: JsonObject = {"type": "string", "description": description}
    if (pattern := pattern_of(form)) is not None:
        text["pattern"] = pattern
    return {
        "type": "object",
        "properties": {"input": text},
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
