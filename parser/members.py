"""Which member of a call's object is which, and the other names that models give them.

Names are compared folded: without case, `_` and `-`.
"""

from __future__ import annotations

NAME = "name"
ARGUMENTS = "arguments"
IDS = ("call_id", "id")

NAME_ALIASES = frozenset({"name", "tool", "toolname", "function", "functionname", "recipientname"})
ARGUMENTS_ALIASES = frozenset({"arguments", "parameters", "params", "args", "input", "toolinput", "kwargs"})
# These count only where none of the others stands: beside one of those they may mean anything.
LATE_NAME_ALIASES = frozenset({"action", "func", "funcname"})
LATE_ARGUMENTS_ALIASES = frozenset(
    {
        *("argument", "actioninput", "actionargs"),
        *(f"{owner}{what}" for owner in ("tool", "function") for what in ("args", "arguments", "parameters", "params")),
    }
)
# Members that hold the whole call, or an array of them.
NESTINGS = frozenset({"function", "functioncall", "tool", "toolcall", "call"})
WRAPPERS = frozenset({"toolcalls", "toolcall", "functioncalls", "calls", "tooluses"})
# The name of a call that only holds others, as OpenAI's models know it.
PARALLEL = "multi_tool_use.parallel"
# Members that say nothing about the arguments: beside them, a call without arguments has none.
NEUTRAL = frozenset({"callid", "toolcallid", "id", "type", "key"})
# Beside `name` and `arguments` these would leave more than one reading.
RESERVED = NAME_ALIASES | ARGUMENTS_ALIASES | NESTINGS | WRAPPERS


def folded_key(key: str) -> str:
    return key.replace("_", "").replace("-", "").casefold()
