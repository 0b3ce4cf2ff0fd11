"""The tools of one request, and which of them a name means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# Prefixes under which models are seen to file a tool that was declared without one.
KNOWN_PREFIXES = ("functions.", "function.", "tools.", "tool.", "default_api.")


@dataclass(frozen=True, slots=True)
class Tool:
    """One declared tool. `parameters` is the client's JSON Schema as compact JSON text, or None."""

    name: str
    description: str | None = None
    parameters: str | None = None
    strict: bool = False


def _folded(name: str) -> str:
    for prefix in KNOWN_PREFIXES:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return name.replace("-", "").replace("_", "").replace(".", "").casefold()


class ToolRegistry:
    """Declared tools in the client's order. Immutable; every name is unique."""

    __slots__ = ("_by_name", "_near")

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._by_name: dict[str, Tool] = {}
        self._near: dict[str, Tool | None] = {}
        for tool in tools:
            if tool.name in self._by_name:
                raise ValueError(f"duplicate tool name {tool.name!r}")
            self._by_name[tool.name] = tool
            # A name of punctuation alone is near to nothing.
            if folded := _folded(tool.name):
                # Two tools that fold to one name leave no unique reading: None marks that.
                self._near[folded] = None if folded in self._near else tool

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def match(self, name: str) -> Tool | None:
        """The tool of that name, else the only one that differs just in case, `-_.` or a known prefix."""
        return self._by_name.get(name) or self._near.get(_folded(name))

    def only(self, names: Iterable[str]) -> ToolRegistry:
        """The registry of those tools alone, in this registry's order."""
        wanted = set(names)
        return ToolRegistry(tool for tool in self if tool.name in wanted)
