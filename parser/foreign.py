"""Calls in the notations of other tools, inside of our tags: models fall back to what they were trained on.

    <function=read_note><parameter=path>a.md</parameter></function>      also <invoke name="read_note">
    read_note<arg_key>path</arg_key><arg_value>a.md</arg_value>
    read_note(path="a.md")
    read_note {"path": "a.md"}                                           also <tool_name>read_note</tool_name> {...}

Text between elements is a string, whatever it looks like. The schema says which type was meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from .beginnings import growing
from .call_shape import Call, calls_of, is_another_shape
from .json_scan import BLANKS, after_space
from .members import ARGUMENTS_ALIASES, PARALLEL, folded_key
from .relaxed_json import UnreadableError, rewrite
from .rules import Rule

# Strategy: a notation is taken for one only if its very beginning cannot be prose: a tag of its own, or a name right in
# front of a bracket. From there on it is followed strictly; a repair within a repair would be a guess. The open tag
# is held back until it is known whether one begins.

_WS = r"[ \t\r\n]*"
# Bounded, since as long as this may go on it is not decided whether a call begins.
_NAME = r"[A-Za-z_][\w.:/-]{0,127}"
_ELEMENT = rf"<(?:function|invoke)(?: *= *| +name *= *)([\"']?)(?P<element>{_NAME})\1 *>"
_NAMED = (
    rf"<(?P<tag>function|tool_name|name)>{_WS}(?P<named>{_NAME}){_WS}</(?P=tag)>{_WS}"
    rf"(?:<(?:arguments|parameters|tool_args|args)>{_WS})?(?=\{{)"
)
_KEYED = rf"(?P<keyed>{_NAME}){_WS}(?=<arg_key>)"
# Keywords or an object only: which parameter a value without a name is for, nobody here knows. No blank before the
# parenthesis, as in `foo (see below)`.
_CALLED = rf"(?P<called>{_NAME})\({_WS}(?=\)|\{{|[A-Za-z_]\w*[ \t]*=)"
# With a key behind the brace, as `block { x }` is prose or code.
_TITLED = rf"(?P<titled>{_NAME}){_WS}(?=\{{{_WS}[\"'}}])"
OPENING = f"{_ELEMENT}|{_NAMED}|{_KEYED}|{_CALLED}|{_TITLED}"

# Of any name that a schema may give it: `-n` of a command, `$filter` of a query, words of all languages.
_PARAMETER = re.compile(r"<parameter(?: *= *| +name *= *)([\"']?)(?P<key>[\w$@-][\w$@.:/-]{0,63})\1 *>")
# A value ends where the next parameter or the end of the call follows: in between, `</parameter>` may be its text.
_VALUE_END = re.compile(rf"</parameter>(?={_WS}<(?:parameter\b|/function>|/invoke>))")
_ELEMENT_END = re.compile(rf"{_WS}</(?:function|invoke)>")
# What no value may hold: a parameter that was not closed would take the next one, or the next call, for its text.
_NESTED = re.compile(r"<(?:function|invoke|parameter)\b|</parameter")
_KEY = re.compile(rf"<arg_key>(?P<key>[^<>]*)</arg_key>{_WS}<arg_value>")
_KEYED_END = re.compile("</arg_value>")
_NESTED_KEYED = re.compile(r"</?arg_")
# One line end on either side of a value is not its own.
_OWN_LINES = re.compile(r"\A\r?\n|\r?\n\Z")
# The tags stand on lines of their own, and the one that ends the value is indented: then that is how elements are
# written here, and its indentation is none of the value.
_INDENTED = re.compile(r"\r?\n(?:([\s\S]*?)\r?\n)?([ \t]+)")
# As a page of XML keeps text from being read as elements.
_CDATA = re.compile(rf"{_WS}<!\[CDATA\[((?:[^\]]++|(?!\]\]>)\])*)\]\]>{_WS}")
_CDATA_OPEN = re.compile(rf"{_WS}<!\[CDATA\[")
# Blanks, at the most, by which an element is indented further than the one that it stands in.
_STEP = 4
_KEYWORD = re.compile(rf"{_WS}(?P<comma>,{_WS})?([A-Za-z_]\w*)[ \t]*={_WS}")
_CALLED_END = re.compile(rf"{_WS}(?:,{_WS})?\)")

# What a model writes before its JSON as before that of a code block.
_LABELS = frozenset({"json", "tool_call", "tool", "function", "call"})


def begins_foreign(text: str, pos: int) -> bool | None:
    """Whether such a call begins at `pos`; None if the text ends before that is decided."""
    whole, begun = growing(OPENING)
    return True if whole.match(text, pos) else None if begun.match(text, pos) else False


def is_markup(text: str, pos: int) -> bool:
    """Whether the call that begins at `pos` is made of elements: quotes in it mean nothing."""
    found = growing(OPENING)[0].match(text, pos)
    return found is not None and found.lastgroup in ("element", "keyed")


def read_foreign(body: str, start: int, *, closed: bool) -> tuple[Call, int] | None:
    """The call that begins at `start`, and where it ends; None if there begins none. Raises UnreadableError."""
    found = growing(OPENING)[0].match(body, start)
    if found is None or found.lastgroup is None:
        return None
    kind, name, pos = found.lastgroup, found[found.lastgroup], after_space(body, found.end())
    if body.startswith("{", pos):
        call, pos = _titled(name, body, pos)
    else:
        call, pos = _READERS[kind](name, body, pos, closed)
    if closer := _ENDS.get(kind):
        end = closer.match(body, pos)
        if end is None:
            raise UnreadableError("the call does not end")
        pos = end.end()
    return call.after([Rule.FOREIGN_NOTATION]), pos


def _element(name: str, body: str, pos: int, closed: bool) -> tuple[Call, int]:
    members, pos = _members(body, pos, _PARAMETER, _VALUE_END, _NESTED)
    return _call(name, members), pos


def _members(
    body: str, pos: int, opener: re.Pattern[str], closer: re.Pattern[str], nested: re.Pattern[str]
) -> tuple[list[tuple[str, str]], int]:
    """The members that begin at `pos`, and where they end. Raises UnreadableError."""
    members: list[tuple[str, str]] = []
    while found := opener.match(body, pos):
        end = closer.search(body, _behind_cdata(body, found.end()))
        if end is None:
            raise UnreadableError("a parameter does not end")
        value = _value(body[found.end() : end.start()], nested)
        members.append((found["key"].strip(), json.dumps(value, ensure_ascii=False)))
        pos = after_space(body, end.end())
    return members, pos


def _behind_cdata(body: str, pos: int) -> int:
    """Where the CDATA section ends that begins at `pos`, if any: no tag in it ends a value. Raises UnreadableError."""
    section = _CDATA_OPEN.match(body, pos)
    if section is None:
        return pos
    end = body.find("]]>", section.end())
    if end < 0:
        raise UnreadableError("a CDATA section does not end")
    return end


def _value(written: str, nested: re.Pattern[str]) -> str:
    """Values are written on lines of their own: one line end on either side is not theirs. Raises UnreadableError."""
    if verbatim := _CDATA.fullmatch(written):
        return verbatim[1]
    if nested.search(written):
        raise UnreadableError("more than a value inside of a parameter")
    indented = _INDENTED.fullmatch(written)
    if indented is None:
        return _OWN_LINES.sub("", written)
    value, indentation = indented[1] or "", indented[2]
    lines = [line for line in value.split("\n") if line.strip()]
    if any(not line.startswith(indentation) for line in lines):
        return value
    # One line stands a step below its element, as in a page. Of more, or further in, it may be its own indentation.
    if len(lines) > 1 or any(len(_indentation(line)) - len(_indentation(indentation)) > _STEP for line in lines):
        raise UnreadableError("how far a value is indented is not certain")
    return value.strip()


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))].expandtabs(_STEP)


def _keyed(name: str, body: str, pos: int, closed: bool) -> tuple[Call, int]:
    members, pos = _members(body, pos, _KEY, _KEYED_END, _NESTED_KEYED)
    # A stray word before the next pair looks like the name of another call.
    if not closed or not members or begins_foreign(body, pos):
        # Nothing closes these but the block: cut between two pairs, the call would look whole.
        raise UnreadableError("the call is cut off")
    return _call(name, members), pos


def _called(name: str, body: str, pos: int, closed: bool) -> tuple[Call, int]:
    members: list[tuple[str, str]] = []
    rules: list[Rule] = []
    # Behind a value a comma, the end or both. Anything else is code: a sum, a condition, a second value.
    while (keyword := _KEYWORD.match(body, pos)) and bool(keyword["comma"]) == bool(members):
        value = rewrite(body, keyword.end(), closed=False)
        members.append((keyword[2], value.text.strip(BLANKS)))
        rules += value.rules
        pos = value.end
    return _call(name, members).after(rules), pos


def _titled(name: str, body: str, pos: int) -> tuple[Call, int]:
    name = name.rstrip(":")
    # `arguments: {"path": "a.md"}` is a part of a call.
    if folded_key(name) in ARGUMENTS_ALIASES:
        raise UnreadableError("arguments without a call")
    value = rewrite(body, pos, closed=False)
    # No tool's name but a title over the call, which is all there is in the object.
    if name.casefold() in _LABELS:
        calls = calls_of(value.text)
        if len(calls) != 1:
            raise UnreadableError("several calls under one label")
        return calls[0].after(value.rules), value.end
    # `r {"name": "w", "arguments": {}}`: is it a call of `r` or of `w`?
    if name != PARALLEL and is_another_shape(value.text):
        raise UnreadableError("a call inside of a call")
    return Call(name, value.text, None, (), value.rules), value.end


def _call(name: str, members: list[tuple[str, str]]) -> Call:
    if len({key for key, _ in members}) < len(members):
        raise UnreadableError("an argument stands twice in the call")
    text = ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {value}" for key, value in members)
    return Call(name, f"{{{text}}}", None, ())


_Reader = Callable[[str, str, int, bool], tuple[Call, int]]
# Where no object stands behind the name: `_titled` reads that.
_READERS: dict[str, _Reader] = {"element": _element, "keyed": _keyed, "called": _called}
_ENDS = {"element": _ELEMENT_END, "called": _CALLED_END}
