"""Which member of a call's object is which, and the other names that models give them."""

from __future__ import annotations

NAME = "name"
ARGUMENTS = "arguments"
IDS = ("call_id", "id")

NAME_ALIASES = frozenset({"name", "tool", "tool_name", "toolname", "function", "function_name", "recipient_name"})
ARGUMENTS_ALIASES = frozenset(
    {"arguments", "parameters", "params", "args", "input", "tool_input", "toolinput", "kwargs"}
)
# Members that hold the whole call, or an array of them.
NESTINGS = frozenset({"function", "function_call", "tool", "tool_call", "call"})
WRAPPERS = frozenset({"tool_calls", "tool_call", "function_calls", "calls"})
# Members that say nothing about the arguments: beside them, a call without arguments has none.
NEUTRAL = frozenset({*IDS, "type", "key"})


_RESERVED = (NAME_ALIASES | ARGUMENTS_ALIASES | NESTINGS | WRAPPERS) - {NAME, ARGUMENTS}
_FOLDED = _RESERVED | {NAME, ARGUMENTS}


def is_reserved(key: str) -> bool:
    """True for a key that, beside `name` and `arguments`, would leave more than one reading."""
    return key in _RESERVED or (key.casefold() in _FOLDED and key not in (NAME, ARGUMENTS))
