"""What became of the mutants that `make mutants` tried: a row a room, the survivors, exit code 1 below a goal.

A mutant that nobody can tell from the code is no hole in the tests. Those are listed in `mutants.toml`, each with its
function, its line before and after, and the reason: equivalent ones do not count.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

# What share of a room's mutants has to be killed.
GOALS: Mapping[str, float] = {
    "parser": 0.90,
    "proxy/schema": 0.90,
    "proxy/turn": 0.95,
    "proxy/wire": 0.90,
    "proxy/backends": 0.85,
    "proxy/cli/record": 0.85,
    "proxy/cli/replay": 0.85,
    "proxy/ingress": 0.85,
    "proxy/replay": 0.85,
    "proxy/rpc": 0.85,
    "proxy/stores": 0.85,
}
LIST = Path(__file__).with_suffix(".toml")

# mutmut's words. One that never ends or crashes is seen by whoever runs the tests.
KILLED = frozenset({"killed", "timeout", "segfault", "suspicious"})
SURVIVED = frozenset({"survived", "no tests"})


@dataclass(frozen=True, slots=True)
class Change:
    """`function` with its module, for a method with its class, or `*`; the lines are stripped."""

    function: str
    line: str
    mutant: str


@dataclass(slots=True)
class Room:
    made: int = 0
    killed: int = 0
    equivalent: int = 0
    survivors: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return self.killed + self.equivalent + len(self.survivors)

    @property
    def share(self) -> float:
        return self.killed / max(1, self.tried - self.equivalent)


def equivalents() -> dict[Change, str]:
    """The listed changes, and why each changes nothing."""
    entries = tomllib.loads(LIST.read_text("utf-8")).get("equivalent", [])
    return {Change(entry["function"], entry["line"], entry["mutant"]): entry["reason"] for entry in entries}


def function_of(mutant: str) -> str:
    """`a.b.Class.method` of mutmut's `a.b.xǁClassǁmethod__mutmut_1`, `a.b.name` of `a.b.x_name__mutmut_1`."""
    module, _, name = mutant.partition("__mutmut_")[0].rpartition(".")
    parts = name.split("ǁ")[1:] if "ǁ" in name else [name.removeprefix("x_")]
    return ".".join([module, *parts])


def change_of(mutant: str, diff: Iterable[str]) -> Change:
    lines = [line for line in diff if not line.startswith(("---", "+++"))]
    before, after = (" ".join(line[1:].strip() for line in lines if line[0:1] == sign) for sign in "-+")
    return Change(function_of(mutant), before, after)


def tried() -> Iterator[tuple[Path, str, str]]:
    """The path, the name and the status of each mutant."""
    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        data.load()
        for name, exit_code in data.exit_code_by_key.items():
            yield path, name, status_by_exit_code[exit_code]


def main() -> int:
    listed = equivalents()
    rooms: dict[str, Room] = {name: Room() for name in GOALS}
    for path, name, status in tried():
        room = rooms[next(room for room in GOALS if path.is_relative_to(room))]
        room.made += 1
        if status in KILLED:
            room.killed += 1
        elif status in SURVIVED:
            change = change_of(name, get_diff_for_mutant(name, path=path).splitlines())
            if not listed.keys().isdisjoint({change, replace(change, function="*")}):
                room.equivalent += 1
            else:
                room.survivors.append(f"{name}\n  - {change.line}\n  + {change.mutant}\n")
    if "--survivors" in sys.argv:
        print("\n".join(survivor for room in rooms.values() for survivor in sorted(room.survivors)))
    print("| room | mutants | tried | killed | equivalent | survived | killed of the others | goal |")
    print("|---|---|---|---|---|---|---|---|")
    for name, room in rooms.items():
        row = (name, room.made, room.tried, room.killed, room.equivalent, len(room.survivors))
        print(f"| {' | '.join(map(str, row))} | {room.share:.1%} | {GOALS[name]:.0%} |")
    return int(any(room.tried and room.share < GOALS[name] for name, room in rooms.items()))


if __name__ == "__main__":
    sys.exit(main())
