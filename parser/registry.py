"""The tools of one request, and which of them a name means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

# Where models are seen to file a tool that was declared without a prefix, and the number of the call behind it.
KNOWN_PREFIXES = ("functions", "function", "tools", "tool", "default_api", "multi_tool_use")
_FILED = re.compile(rf"(?:{'|'.join(KNOWN_PREFIXES)})[.:/](.+?)(?::[0-9]+)?", re.IGNORECASE | re.DOTALL)
# Also the blanks of a title, and the backslash with which Markdown writes an `_`.
_FOLDED_AWAY = str.maketrans("", "", "-_. \\")
_ROUND = " \t\r\n\"'`"


class Tool(Struct, frozen=True):
    """One declared tool. `parameters` is the client's JSON Schema as compact JSON text, or None.

    `grammar`: the Lark grammar that `input`, the one argument of a tool of free text, is held to.
    """

    name: str
    description: str | None = None
    parameters: str | None = None
    strict: bool = False
    grammar: str | None = None


def _folded(name: str) -> str:
    return name.strip(_ROUND).removesuffix("()").translate(_FOLDED_AWAY).casefold()


def _bare(name: str) -> str:
    """The folded name without a known prefix."""
    filed = _FILED.fullmatch(name.strip())
    return _folded(filed[1] if filed else name)


class ToolRegistry:
    """Declared tools in the client's order. Immutable; every name is unique."""

    __slots__ = ("_by_name", "_near")

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._by_name: dict[str, Tool] = {}
        # By what a name is folded with; in each, None marks a name that several tools fold to.
        self._near: dict[Callable[[str], str], dict[str, Tool | None]] = {_folded: {}, _bare: {}}
        for tool in tools:
            if tool.name in self._by_name:
                raise ValueError(f"duplicate tool name {tool.name!r}")
            self._by_name[tool.name] = tool
            for fold, near in self._near.items():
                # A name of punctuation alone is near to nothing.
                if folded := fold(tool.name):
                    near[folded] = None if folded in near else tool

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def match(self, name: str) -> Tool | None:
        """The tool of that name, else the only one that differs in case, `-_.` and quotes alone, or by a prefix too."""
        if tool := self._by_name.get(name):
            return tool
        for fold, near in self._near.items():
            if (folded := fold(name)) in near:
                return near[folded]
        return None

    def only(self, names: Iterable[str]) -> ToolRegistry:
        """The registry of those tools alone, in this registry's order."""
        wanted = set(names)
        return ToolRegistry(tool for tool in self if tool.name in wanted)
