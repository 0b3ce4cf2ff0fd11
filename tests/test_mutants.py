"""The list of mutants that nobody can kill is about the code that is there."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_equivalent_mutant_is_one_of_a_line_that_still_stands_and_has_its_reason() -> None:
    listed = tomllib.loads((ROOT / "tests/mutants.toml").read_text("utf-8")).get("equivalent", [])
    for entry in (entry for entry in listed if entry["function"] != "*"):
        module, *_ = (
            path
            for path in (ROOT / f"{part.replace('.', '/')}.py" for part in _beginnings(entry["function"]))
            if path.is_file()
        )
        code = " ".join(map(str.strip, module.read_text("utf-8").splitlines()))
        assert entry["line"] in code, entry
        assert entry["mutant"] != entry["line"]
        assert entry["reason"].endswith("."), entry


def _beginnings(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
