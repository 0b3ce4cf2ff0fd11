"""Which call, or which calls, a well-formed JSON value is."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from .events import CallCompleted, Tier
from .json_scan import BLANKS
from .json_text import ambiguity, decode_string, elements_of, members_of
from .members import (
    ARGUMENTS,
    ARGUMENTS_ALIASES,
    IDS,
    LATE_ARGUMENTS_ALIASES,
    LATE_NAME_ALIASES,
    NAME,
    NAME_ALIASES,
    NESTINGS,
    NEUTRAL,
    PARALLEL,
    WRAPPERS,
    folded_key,
)
from .relaxed_json import UnreadableError, rewrite
from .rules import Rule

# Strategy: models know many shapes of a call by heart, and other words for its members. The words are free, but there
# must be one name and one set of arguments: a member too many is a second reading, and one that has no place in a call
# may be an argument that fell out of its object.

# Times that arguments are decoded: a string, and a string in a string.
_DECODINGS = 2
# What a whole message of OpenAI's has beside its calls and says nothing.
_MESSAGE_MEMBERS = (("role", '"assistant"'), ("content", "null"), ("content", '""'))
# Looking them up in their class is a Python call on 3.11.
_VALID, _REPAIRED = Tier.VALID, Tier.REPAIRED
_EMPTY = (Rule.NULL_ARGUMENTS, Rule.EMPTY_ARGUMENTS)


class Call(Struct, frozen=True):
    """One call. `arguments` is the JSON text of an object, `extra` the other members as JSON text."""

    name: str
    arguments: str
    id: str | None
    extra: tuple[tuple[str, str], ...]
    rules: tuple[Rule, ...] = ()

    def after(self, rules: Sequence[Rule]) -> Call:
        """The same call, which took these rules first. Each rule is named once."""
        return replace(self, rules=tuple(dict.fromkeys((*rules, *self.rules))))

    def completed(self, index: int, raw: str, tier: Tier | None = None, before: str = "") -> CallCompleted:
        """The event for it, of tier A or B unless it is another one."""
        tier = tier or (_REPAIRED if self.rules else _VALID)
        rules = tuple([rule.value for rule in self.rules]) if self.rules else ()
        return CallCompleted(index, self.name, self.arguments, self.id, raw, tier, rules, self.extra, before)

    def beside(self, members: Sequence[tuple[str, str]]) -> Call:
        """The same call as one of several that these stand beside: what says that those are meant says it of each."""
        return replace(self, extra=tuple({**dict(members), **dict(self.extra)}.items()))


def calls_of(value: str) -> list[Call]:
    """The calls in one JSON value, in order, at least one. Raises UnreadableError."""
    if value[0] == "[":
        return _calls_in(value, Rule.ARRAY_OF_CALLS)
    if value[0] == "{":
        members = members_of(value)
        held = [inner for key, inner in members if folded_key(key) in WRAPPERS]
        # Only without anything that would belong to none of its calls.
        others = [
            member for member in members if folded_key(member[0]) not in WRAPPERS and member not in _MESSAGE_MEMBERS
        ]
        is_wrapper = len(members) == 1 or (held and held[0][0] == "[" and _is_neutral(others))
        if len(held) == 1 and is_wrapper and len(dict(others)) == len(others):
            return [one.beside(others).after([Rule.WRAPPER_OBJECT]) for one in calls_of(held[0])]
    return [_call_of(value)]


def check_arguments(call: Call) -> None:
    """Raises UnreadableError for arguments that not every reader would take for the same."""
    if why := ambiguity(call.arguments):
        raise UnreadableError(f"{why} in the arguments")


def unpacked(call: Call) -> list[Call]:
    """The calls that this one holds, if it is of the name for that; else itself. Raises UnreadableError."""
    if call.name != PARALLEL:
        return [call]
    match members_of(call.arguments):
        case [(key, held)] if folded_key(key) in WRAPPERS and held[0] == "[" and _is_neutral(call.extra):
            inner = _calls_in(held, Rule.WRAPPER_OBJECT)
            return [one.beside(call.extra).after(call.rules) for one in inner]
        case _:
            raise UnreadableError("several calls at once, and something else")


def is_another_shape(value: str) -> bool:
    """Whether an object that should be the arguments of a call looks like a call, or like what holds arguments."""
    members = {folded_key(key): inner for key, inner in members_of(value)}
    # A tool may have a parameter `function` or `input`. So alone or with none but a call's other members beside it, and
    # with an object or an encoded one in it: then it is rather the call that was meant.
    if members.keys() & (NESTINGS | WRAPPERS) and len(members) == 1:
        return True
    held = members.keys() & ARGUMENTS_ALIASES
    return any(members[key].startswith(("{", '"{')) for key in held) and not (
        members.keys() - held - NAME_ALIASES - NEUTRAL
    )


def _is_neutral(members: Sequence[tuple[str, str]]) -> bool:
    """Whether they say nothing about the arguments."""
    return all(folded_key(key) in NEUTRAL for key, _ in members)


def _calls_in(array: str, rule: Rule) -> list[Call]:
    if calls := [_call_of(element).after([rule]) for element in elements_of(array)]:
        return calls
    raise UnreadableError("an empty array of calls")


def _call_of(value: str) -> Call:
    if value[0] != "{":
        raise UnreadableError("a call is not an object")
    members = members_of(value)
    # Readers of JSON differ in which one they take, so nobody knows which one was meant.
    if len({key for key, _ in members}) < len(members):
        raise UnreadableError("a key stands twice in the call")
    # An object under one of these words is the call; a string under `function` or `tool` is its name.
    nested = [(key, inner) for key, inner in members if folded_key(key) in NESTINGS and inner[0] == "{"]
    if nested:
        return _nested(nested, members)
    name_key, name = _one_of((NAME_ALIASES, LATE_NAME_ALIASES), "name", members)
    if name is None:
        raise UnreadableError("the call has no name")
    if name[0] != '"' or not (decoded := decode_string(name[1:-1])).strip():
        raise UnreadableError("the name is not a string with something in it")
    arguments_key, arguments = _one_of((ARGUMENTS_ALIASES, LATE_ARGUMENTS_ALIASES), "arguments", members)
    rules = [] if (name_key, arguments_key or ARGUMENTS) == (NAME, ARGUMENTS) else [Rule.ALIAS_KEYS]
    others = [(key, inner) for key, inner in members if key not in (name_key, arguments_key)]
    if arguments is None:
        # `{"name": "r", "path": "a.md"}`: are these its arguments, or were they lost and this is something else?
        if not _is_neutral(others):
            raise UnreadableError("the call has members but no arguments")
        rules.append(Rule.MISSING_ARGUMENTS)
        arguments = "{}"
    else:
        arguments, used = _object_text(arguments)
        # What should stand in them may stand beside them.
        if used and used[-1] in _EMPTY and not _is_neutral(others):
            raise UnreadableError("the arguments are empty, and the call has other members")
        rules += used
    return Call(decoded, arguments, id_of(others), beside_call(others), tuple(rules))


def _nested(nested: list[tuple[str, str]], members: list[tuple[str, str]]) -> Call:
    """`{"type": "function", "function": {"name": ..., "arguments": ...}}` and the like."""
    key, value = nested[0]
    others = [member for member in members if member[0] != key]
    # Two names, or arguments beside those in the object.
    if any(folded_key(other) in NAME_ALIASES | ARGUMENTS_ALIASES | NESTINGS for other, _ in others):
        raise UnreadableError("the call has members both inside and outside of another object")
    call = _call_of(value)
    extra = call.extra + beside_call(others)
    return replace(call, id=call.id or id_of(others), extra=extra).after([Rule.NESTED_CALL])


def _one_of(
    aliases: tuple[frozenset[str], ...], what: str, members: list[tuple[str, str]]
) -> tuple[str | None, str | None]:
    """The only member with one of the first aliases that any has. Two are two readings, whatever they hold."""
    for names in aliases:
        found = [(key, value) for key, value in members if folded_key(key) in names]
        if len(found) > 1:
            raise UnreadableError(f"the call has more than one {what}")
        if found:
            return found[0]
    return (None, None)


def id_of(members: Sequence[tuple[str, str]]) -> str | None:
    """The id of the call. `call_id` wins, wherever it stands: results refer to it, and `id` is the item's own."""
    for key in IDS:
        for other, value in members:
            if other == key and value[0] == '"':
                return decode_string(value[1:-1])
    return None


def beside_call(members: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Those that are none of its id. Name and arguments are not among `members`."""
    return tuple([(key, value) for key, value in members if not (key in IDS and value[0] == '"')])


def _object_text(value: str) -> tuple[str, list[Rule]]:
    """The arguments as the text of an object, and the rules that it took."""
    if value[0] == "{":
        return value, []
    if value == "null":
        return "{}", [Rule.NULL_ARGUMENTS]
    decodings = 0
    text = value
    while text[:1] == '"' and decodings < _DECODINGS:
        # The outer string is strict by now. What was in it is read for the first time, and may take a repair.
        text = rewrite(text).text if decodings else text
        text = decode_string(text[1:-1]).strip(BLANKS)
        decodings += 1
    rules = [Rule.DOUBLE_ENCODED] if decodings > 1 else []
    if decodings and not text:
        return "{}", [*rules, Rule.EMPTY_ARGUMENTS]
    if text[:1] != "{":
        raise UnreadableError("the arguments are not an object")
    rewritten = rewrite(text)
    rules += rewritten.rules
    # The brace that ends the call may have been written into the string. Anything else is more than an object.
    tail = text[rewritten.end :]
    if tail.strip(f"}}{BLANKS}"):
        raise UnreadableError("the arguments are a string that holds more than an object")
    if tail.strip():
        rules.append(Rule.EXTRA_CLOSERS)
    return rewritten.text.lstrip(BLANKS), rules
