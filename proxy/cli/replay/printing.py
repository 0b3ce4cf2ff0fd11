"""The report of a run: for a person at the terminal, and for a CI system as JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from .run import Outcome

# Lines that are shown of one fixture.
_SHOWN = 40


def print_outcomes(outcomes: Sequence[Outcome], unasked: Sequence[str], seconds: float, updated: int | None) -> None:
    """Every difference, and one line at the end. `updated` is the number of fixtures that were rewritten."""
    for outcome in outcomes:
        if not outcome.good:
            print(outcome.case.fixture.name)
            print("\n".join(f"  {line}" for line in _shown(outcome.lines)))
    for name in unasked:
        print(f"{name} was not run: it has no request.json")
    differ = sum(not outcome.good for outcome in outcomes)
    verdict = "all as promised" if not differ else f"{differ} not as promised"
    rewritten = "" if updated is None else f", {updated} rewritten"
    print(f"{len(outcomes)} fixture{'' if len(outcomes) == 1 else 's'} in {seconds:.1f} s, {verdict}{rewritten}")


def _shown(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"... and {more} more lines"] if more > 0 else [])]


def write_junit(path: Path, outcomes: Sequence[Outcome], unasked: Sequence[str]) -> None:
    """Raises `OSError`."""
    failures = sum(not outcome.good for outcome in outcomes)
    counts = {"tests": len(outcomes) + len(unasked), "failures": failures, "skipped": len(unasked)}
    suite = ET.Element("testsuite", {"name": "tagcall replay", **{key: str(count) for key, count in counts.items()}})
    for outcome in outcomes:
        case = _case(suite, outcome.case.fixture.name, outcome.seconds)
        if not outcome.good:
            failure = ET.SubElement(case, "failure", message="not as promised")
            failure.text = "\n".join(_xml_text(line) for line in outcome.lines)
    for name in unasked:
        ET.SubElement(_case(suite, name, 0.0), "skipped", message="it has no request.json")
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _case(suite: ET.Element, name: str, seconds: float) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname="tagcall.replay", name=name, time=f"{seconds:.3f}")


def _xml_text(line: str) -> str:
    """Without the characters that XML has no way to write."""
    return "".join(char if char in "\t\n" or char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
