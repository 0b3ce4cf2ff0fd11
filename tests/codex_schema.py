"""`make codex-newest`: what the protocol of one codex program gained and lost since another's, by their own schemas.

python -m tests.codex_schema OLD NEW        two programs; npm's launchers will do
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from proxy.backends.codex.item_kinds import unknown_kinds
from proxy.backends.codex.program import native_program, printed_by, read_version

# What is told first, by the definition that lists it and the member that has the name; "" where the name is the value.
LISTS: Mapping[str, tuple[str, str]] = {
    "requests": ("ClientRequest", "method"),
    "notifications": ("ServerNotification", "method"),
    "requests of the server": ("ServerRequest", "method"),
    "kinds of items": ("ThreadItem", "type"),
    "kinds of errors": ("CodexErrorInfo", ""),
}
REST = "members and values"


@dataclass(frozen=True, slots=True)
class Protocol:
    """The names in a schema, by what they are names of."""

    names: Mapping[str, frozenset[str]]

    def beyond(self, other: Protocol) -> dict[str, list[str]]:
        """What this one has and `other` has not."""
        return {what: sorted(names - other.names[what]) for what, names in self.names.items()}


@cache
def protocol_of(program: Path) -> Protocol:
    """As the program writes it. Raises `OSError` or `subprocess.TimeoutExpired`."""
    with tempfile.TemporaryDirectory(prefix="tagcall-") as folder:
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "CODEX_HOME": folder}
        schema = Path(folder) / "schema"
        command: list[str | Path] = [program, "app-server", "generate-json-schema", "--out", schema]
        # Older programs have no such flag, and write nothing then.
        printed_by([*command, "--experimental"], environment)
        if not schema.exists():
            printed_by(command, environment)
        return read_protocol(schema)


def read_protocol(schema: Path) -> Protocol:
    """That of the files in this folder and below."""
    names: dict[str, set[str]] = {what: set() for what in (*LISTS, REST)}
    for file in sorted(schema.rglob("*.json")):
        written = orjson.loads(file.read_bytes())
        definitions = {str(written.get("title", file.stem)): written, **written.get("definitions", {})}
        for name, definition in definitions.items():
            for what, (listed, member) in LISTS.items():
                if name == listed:
                    names[what] |= set(_listed(definition, member))
            names[REST] |= {f"{name}{found}" for found in _members(definition)}
    return Protocol({what: frozenset(found) for what, found in names.items()})


def _listed(definition: Mapping[str, Any], member: str) -> Iterator[str]:
    for case in (*definition.get("oneOf", ()), *definition.get("anyOf", ())):
        yield from case.get("properties", {}).get(member, {}).get("enum", ()) if member else case.get("enum", ())
        if not member and "enum" not in case:
            yield from case.get("properties", {})
    if not member:
        yield from definition.get("enum", ())


def _members(schema: object, path: str = "") -> Iterator[str]:
    """The members of objects and the values of strings, where they stand; not those of other definitions."""
    match schema:
        case {"$ref": _}:
            pass
        case dict():
            for name, member in schema.get("properties", {}).items():
                yield f"{path}.{name}"
                yield from _members(member, f"{path}.{name}")
            yield from (f"{path} = {value}" for value in schema.get("enum", ()))
            for key in ("oneOf", "anyOf", "allOf", "items"):
                yield from _members(schema.get(key), path)
        case list():
            for each in schema:
                yield from _members(each, path)
        case _:
            pass


def told(old: Protocol, new: Protocol) -> Iterator[str]:
    """Lines for a person: what was gained, then what was lost, each under what it is."""
    gained, lost = new.beyond(old), old.beyond(new)
    for what in new.names:
        if gained[what] or lost[what]:
            yield f"{what}:"
            yield from (f"  + {name}" for name in gained[what])
            yield from (f"  - {name}" for name in lost[what])
    if not any(gained.values()) and not any(lost.values()):
        yield "Nothing was gained and nothing lost."


def main(old: Path, new: Path) -> None:
    print(f"The protocol of codex {read_version(new)} beside that of {read_version(old)}:")
    print("\n".join(told(protocol_of(old), protocol_of(new))))
    unknown = unknown_kinds(new)
    if unknown:
        print(f"A turn with one of these items is ended: {', '.join(unknown)} (proxy/backends/codex/item_kinds.py)")


if __name__ == "__main__":
    main(*(native_program(Path(argument)) for argument in sys.argv[1:3]))
