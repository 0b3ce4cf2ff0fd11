"""Make arguments fit the tool's schema where that loses nothing: `"5"` for a number is 5.

A repaired call that lacks a required argument is doubtful, unless that may be null: the repair may have lost it. A call
with an unknown member beside its arguments is doubtful as well, unless the member is a remark, which is dropped.

A value changes only if the schema asks for another type than a string, by a plain `type`, alone or in an `anyOf` with
null. Any other `anyOf`, `$ref` and the like are left alone, and so is a value that fits. An empty value of an optional
member is dropped if the schema allows none. A required member that may be null becomes null if it is left out. Nothing
else in the text changes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from parser import BLANKS, end_of_value, members_of
from parser.json_scan import after_space
from parser.json_text import decode_string, edited
from parser.members import folded_key

# Strategy: the schema may only help where it leaves one meaning. So it is read for its plain types alone, a value that
# fits is never looked at twice, and a text that cannot be followed to its end is given back as it came. The arguments
# are not parsed and written anew: to a client that compares, stores or shows them every character counts.

# Levels of a schema. What is deeper is left alone.
MAX_SCHEMA_DEPTH = 64
# Schemas that are kept as they were read: they are the same from request to request.
_KEPT = 256
# Integers up to here are the same in every reader of JSON; longer ones lose digits in many.
_MAX_INTEGER = 2**53 - 1

# No signs, blanks or noughts in front: `007` is a code, ` 5 ` a text, `-0` another zero to some readers.
_INTEGER = re.compile(r"-?[1-9][0-9]{0,15}|0")
# Three digits of exponent are more than any double has, and few enough to compare exactly.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,3})?")
# As JSON and Python write them. `yes` and `1` may be meant as words.
_BOOLEANS = {"true": "true", "True": "true", "false": "false", "False": "false"}
_NULLS = frozenset({"null", "None"})
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
# Members of a call that are no parameters, whatever a tool declares; and, folded, those that are none of one that does
# not declare them: the number that OpenAI's streams give a call, and its id as a result has it.
_OURS = frozenset({"id", "call_id", "type", "key", "name"})
_NO_PARAMETERS = frozenset(map(folded_key, _OURS))
_IDLE = frozenset({"index", "toolcallid"})
# Members in which models say, folded, why they call: words about the call and none of it.
_REMARKS = frozenset({"thought", "reason", "reasoning", "explanation", "comment", "intent"})
# What models write for what they leave out, with its type, and what asks for more than that where the type fits.
_EMPTY: dict[str, tuple[object, str, str]] = {
    "null": (None, "null", ""),
    '""': ("", "string", "minLength"),
    "{}": ({}, "object", "minProperties"),
    "[]": ([], "array", "minItems"),
}
# With one of these a value may be meant in more ways than its type says.
_UNPLAIN = frozenset(
    {"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "dependentSchemas"}
)


# What would say more of a value beside `anyOf`.
_MEANING = _UNPLAIN | {"type", "properties", "required", "items", "enum", "nullable"}


class Coercion(StrEnum):
    """What was done to a value. The name is what reports and logs count."""

    NUMBER = "coerced_number"
    BOOLEAN = "coerced_boolean"
    WORD_NULL = "coerced_null"
    OBJECT = "coerced_object"
    ARRAY = "coerced_array"
    NULL = "dropped_null"
    EMPTY = "dropped_empty"
    LEFT_OUT = "added_null"
    """This one means the same as what the model wrote, so its conversation goes on from that."""
    LIFTED = "lifted_member"
    REMARK = "dropped_remark"


_CONTAINERS = {"{": ("object", Coercion.OBJECT), "[": ("array", Coercion.ARRAY)}


class ParameterTypes(Struct, frozen=True):
    """The part of a JSON Schema that says which types are allowed where. No `types`: any."""

    types: frozenset[str] = frozenset()
    members: Mapping[str, ParameterTypes] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    # Required members that become null if they are left out, in the order of the schema. A strict tool has no other way
    # to say that a member is optional.
    or_null: tuple[str, ...] = ()
    items: ParameterTypes | None = None
    # Of null, "", {} and [], each as written without blanks, those that nobody can mean there.
    refused: frozenset[str] = frozenset()
    # What of `_REMARKS` is a parameter at any depth, so that it may have fallen out of its place.
    meant: frozenset[str] = frozenset()

    @property
    def inside(self) -> bool:
        """Whether it says anything about what is inside of a value."""
        return any(inner is not _ANY for inner in self.members.values()) or self.items is not None or bool(self.or_null)


_ANY = ParameterTypes()


class Coerced(Struct, frozen=True):
    """The JSON text of the arguments, and what was done to them, once for each value."""

    arguments: str
    coercions: tuple[Coercion, ...] = ()


@lru_cache(_KEPT)
def read_parameter_types(text: str) -> ParameterTypes:
    """The types that the schema in `text` asks for. What cannot be read allows everything; never raises."""
    try:
        schema = json.loads(text)
        return replace(_parameter_types(schema, MAX_SCHEMA_DEPTH), meant=_meant(schema))
    except (ValueError, RecursionError):
        return _ANY


def _meant(schema: object) -> frozenset[str]:
    """What of `_REMARKS` may be a parameter."""
    # Any name may be one where the schema says so in words. Most say nothing, and mean those that they list.
    opened = isinstance(schema, dict) and (schema.get("additionalProperties") or "patternProperties" in schema)
    return _REMARKS if opened else _REMARKS & _names_in(schema)


def _names_in(schema: object) -> set[str]:
    """All that could be the name of a parameter, folded: in choices and definitions, too."""
    names: set[str] = set()
    unread = [schema]
    while unread:
        match unread.pop():
            case dict(members):
                names.update(map(folded_key, members))
                unread += members.values()
            case list(values):
                unread += values
            case _:
                pass
    return names


def _parameter_types(value: object, depth: int) -> ParameterTypes:
    if not isinstance(value, dict) or not depth:
        return _ANY
    value = _or_null(value)
    properties, required, items = value.get("properties"), value.get("required"), value.get("items")
    names = frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()
    members: dict[str, ParameterTypes] = {}
    if _UNPLAIN & value.keys():
        # Which types are allowed is not that simple, but which names there are is.
        if isinstance(properties, dict):
            members = dict.fromkeys(properties, _ANY)
        return ParameterTypes(members=members, required=names)
    if isinstance(properties, dict):
        members = {key: _parameter_types(inner, depth - 1) for key, inner in properties.items()}
    types, choices = _types(value), _choices(value)
    or_null: tuple[str, ...] = ()
    if isinstance(properties, dict) and choices is None:
        or_null = tuple(name for name in properties if name in names and _is_null_left_out(properties[name]))
    return ParameterTypes(
        # Among the choices may be the very string that stands there, or null: then that is what was meant.
        frozenset() if any(choice is None or isinstance(choice, str) for choice in choices or ()) else types,
        members,
        names,
        or_null,
        # Behind `prefixItems` they are the rest alone.
        _parameter_types(items, depth - 1) if isinstance(items, dict) and "prefixItems" not in value else None,
        _refused(value, types),
    )


def _or_null(value: dict[str, object]) -> dict[str, object]:
    """`anyOf` of a plain schema and null, as generators write an optional value, in the one plain schema it means."""
    match value:
        case {"anyOf": [dict(one), {"type": "null"}] | [{"type": "null"}, dict(one)]}:
            beside = value.keys() - {"anyOf"}
            if isinstance(kind := one.get("type"), str) and not (beside & one.keys() or beside & _MEANING):
                choices: dict[str, object] = {"enum": [*one["enum"], None]} if isinstance(one.get("enum"), list) else {}
                return {**one, "type": [kind, "null"], **choices}
        case _:
            pass
    return value


def _is_null_left_out(value: object) -> bool:
    """Whether null plainly fits the schema `value`, and a missing member means no other value, as a default."""
    if not isinstance(value, dict) or value.get("default") is not None:
        return False
    types, ways = value.get("type"), value.get("anyOf")
    if isinstance(ways, list):
        return {"type": "null"} in ways and not value.keys() & (_MEANING - {"anyOf"})
    plain = not value.keys() & _UNPLAIN and None in (_choices(value) or [None])
    return plain and isinstance(types, list) and "null" in types


def _types(value: dict[str, object]) -> frozenset[str]:
    """The types that are allowed, or none if that is not said plainly."""
    said = value.get("type")
    listed = said if isinstance(said, list) else [said]
    types = {name for name in listed if isinstance(name, str)}
    if len(types) < len(listed) or not types <= _TYPES:
        return frozenset()
    # OpenAPI's way to say that null may stand there. JSON Schema has no such word.
    if types and value.get("nullable") is True:
        types.add("null")
    return frozenset(types)


def _choices(value: dict[str, object]) -> list[object] | None:
    choices = value.get("enum")
    return choices if isinstance(choices, list) else None


def _refused(value: dict[str, object], types: frozenset[str]) -> frozenset[str]:
    """What of `_EMPTY` is to be left out where the schema `value` is asked for: it plainly may not stand there."""
    choices = _choices(value)
    if not types and choices is None:
        return frozenset()
    refused = {
        written
        for written, (empty, kind, least) in _EMPTY.items()
        # What is among the choices is meant, whatever the type says.
        if (empty not in choices if choices is not None else kind not in types)
        or (isinstance(few := value.get(least), int) and few > 0)
        or (kind == "object" and value.get("required"))
    }
    if value.get("nullable") is True:
        refused.discard("null")
    # Where one empty value may stand, another may be meant as that: `""` as `[]`.
    return frozenset(refused if refused >= _EMPTY.keys() - {"null"} else refused & {"null"})


def coerce(arguments: str, wanted: ParameterTypes) -> Coerced:
    """`arguments`, the JSON text of an object, with values of the `wanted` types. Never raises."""
    start, end = after_space(arguments, 0), len(arguments.rstrip(BLANKS))
    # What cannot be followed to its end is left alone: half a change would be another call.
    if not wanted.inside or end_of_value(arguments, start) != end:
        return Coerced(arguments)
    done: list[Coercion] = []
    text = _completed(_fitted(arguments[start:end], wanted, done), wanted, done)
    return Coerced(arguments[:start] + text + arguments[end:], tuple(done)) if done else Coerced(arguments)


def readings(text: str, wanted: ParameterTypes) -> Iterator[Coerced]:
    """`text` as it stands, and then coerced, if that changes it: whoever takes the first that fits changes no other."""
    yield Coerced(text)
    if (coerced := coerce(text, wanted)).coercions:
        yield coerced


def _fitted(value: str, wanted: ParameterTypes, done: list[Coercion]) -> str:
    """The value as it is written where that is `wanted`; notes what is `done` to it."""

    def member(name: str, inner: str) -> str | None:
        asked = wanted.members.get(name, _ANY)
        fitted = _fitted(inner, asked, done)
        # Models write null or an empty value for what they leave out. What is required is not left out, so there it is
        # a mistake to tell of.
        if name not in wanted.required and _without_blanks(fitted) in asked.refused:
            done.append(Coercion.NULL if fitted == "null" else Coercion.EMPTY)
            return None
        return _completed(fitted, asked, done)

    match value[0]:
        case "{" if wanted.members:
            return edited(value, member)
        case "[" if wanted.items:
            items = wanted.items
            return edited(value, lambda _, inner: _completed(_fitted(inner, items, done), items, done))
        case '"' if wanted.types and "string" not in wanted.types:
            inside = decode_string(value[1:-1])
            return _scalar(inside, wanted.types, done) or _container(inside, wanted, done) or value
        case _:
            return value


def _completed(value: str, wanted: ParameterTypes, done: list[Coercion]) -> str:
    """The object with null for what was left out of it, unless it lacks more than that."""
    if not wanted.or_null or value[0] != "{":
        return value
    missing = wanted.required - {key for key, _ in members_of(value)}
    left_out = [(name, "null") for name in wanted.or_null if name in missing]
    if not left_out or len(left_out) < len(missing):
        return value
    done += [Coercion.LEFT_OUT] * len(left_out)
    return _with_members(value, left_out)


def _with_members(text: str, members: Iterable[tuple[str, str]]) -> str:
    """An object with more members behind its others."""
    before = text.rstrip(BLANKS)[:-1]
    comma = "" if before.rstrip(BLANKS) == "{" else ", "
    more = ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {value}" for key, value in members)
    return f"{before}{comma}{more}}}"


def _without_blanks(value: str) -> str:
    """An empty object or array without the blanks in it."""
    return value[0] + value[-1] if value[0] in "{[" and not value[1:-1].strip(BLANKS) else value


class Doubtful(Struct, frozen=True):
    """The call is hardly the one that was meant: the model is told the `reason` and asked again."""

    reason: str


def fit(
    arguments: str, wanted: ParameterTypes, *, beside: Iterable[tuple[str, str]] = (), repaired: bool = False
) -> Coerced | Doubtful:
    """The arguments with what stands `beside` them and belongs in them, coerced.

    Doubtful if it belongs nowhere, or if what is required is missing from a call that was `repaired`, and may not be
    null.
    """
    strays = [(key, value) for key, value in beside if folded_key(key) not in _NO_PARAMETERS]
    if not (strays or wanted.required):
        return coerce(arguments, wanted)
    written = {key for key, _ in members_of(arguments)}
    lifted: list[tuple[str, str]] = []
    left: list[tuple[str, str]] = []
    for key, value in strays:
        if key in wanted.members and key not in written:
            lifted.append((key, value))
            written.add(key)
        elif folded_key(key) not in _IDLE:
            left.append((key, value))
    if lifted:
        arguments = _with_members(arguments, lifted)
    missing = wanted.required - written
    for key, value in left:
        # With a gap in the arguments it may be what belongs there.
        if missing or not _is_remark(key, value, wanted):
            return Doubtful(f"{key!r} stands beside the arguments")
    # A parameter of such a name may be what stands beside the arguments, and nobody can tell. What may be null was
    # hardly lost by the repair: it is what models leave out.
    if lost := (missing - {*wanted.or_null} if repaired else frozenset()) | (missing & _OURS):
        return Doubtful(f"the arguments have no {', '.join(map(repr, sorted(lost)))}")
    coerced = coerce(arguments, wanted)
    beside_them = [Coercion.LIFTED] * len(lifted) + [Coercion.REMARK] * len(left)
    return replace(coerced, coercions=(*beside_them, *coerced.coercions))


def _is_remark(key: str, value: str, wanted: ParameterTypes) -> bool:
    """Whether a member beside the arguments only says something about the call."""
    name = folded_key(key)
    return name in _REMARKS and name not in wanted.meant and value.startswith('"')


def _scalar(inside: str, types: frozenset[str], done: list[Coercion]) -> str | None:
    # A longer integer is text for good reason: as a number many readers would round it.
    if types & {"integer", "number"} and _INTEGER.fullmatch(inside):
        written, coercion = inside if abs(int(inside)) <= _MAX_INTEGER else None, Coercion.NUMBER
    elif "number" in types and _NUMBER.fullmatch(inside) and _is_exact(inside):
        written, coercion = inside, Coercion.NUMBER
    elif "boolean" in types and inside in _BOOLEANS:
        written, coercion = _BOOLEANS[inside], Coercion.BOOLEAN
    elif "null" in types and inside in _NULLS:
        written, coercion = "null", Coercion.WORD_NULL
    else:
        return None
    if written is not None:
        done.append(coercion)
    return written


def _is_exact(number: str) -> bool:
    """Whether a fraction or power means the same to a reader that makes a double of it."""
    # An integer that `_INTEGER` refused: too long for many readers, or minus nought.
    if not set(number) & set(".eE"):
        return False
    # Exact is what comes back when the double is written again. No double is `0.1`, but every reader that makes one of
    # it writes it as `0.1`.
    value = float(number)
    return math.isfinite(value) and Decimal(repr(value)) == Decimal(number)


def _container(inside: str, wanted: ParameterTypes, done: list[Coercion]) -> str | None:
    """An object or array that was written into a string."""
    text = inside.strip(BLANKS)
    kind, coercion = _CONTAINERS.get(text[:1], ("", Coercion.OBJECT))
    # Strict JSON and nothing behind it, or it is not an object that was only written into a string.
    if kind not in wanted.types or end_of_value(text, 0) != len(text):
        return None
    done.append(coercion)
    return _fitted(text, wanted, done)
