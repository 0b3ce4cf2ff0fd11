"""`make release-check`: all of a release but its publication.

Each archive in dist/ is installed into an empty environment of each Python that is here, and the demo is run from it;
the changelog has a section for the version. Prints a line for each; exit status 1 where one is not as it should be.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.installation import ROOT, TOOLS, closed, opened

# Seconds for an installation, or for the demo.
_WAIT = 300
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def version_of(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def fault_of_changelog(text: str, version: str) -> str | None:
    """What the changelog lacks for this version, as a sentence. Between two releases it has one unreleased section."""
    sections = re.findall(r"^## \[?([^\]\s]+)\]?", text, re.MULTILINE)
    if "dev" in version:
        unreleased = sections.count("Unreleased")
        return None if unreleased == 1 else f"The changelog has {unreleased} sections 'Unreleased': one is right."
    if not sections or sections[0] != version:
        return f"The changelog begins with {', '.join(sections[:1]) or 'nothing'}: give {version} its section."
    return None


def pythons() -> Iterator[tuple[str, str]]:
    """Each Python that is here, as its version and its path."""
    for version in _PYTHONS:
        command = [str(TOOLS / "uv"), "python", "find", "--no-python-downloads", version]
        found = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=opened())
        if found.returncode == 0:
            yield version, found.stdout.strip()


def fault_of_archive(archive: Path, python: str) -> str | None:
    """What fails of this archive, as a program's own words."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        environment = place / "environment"
        what = f"tagcall[demo] @ {archive.resolve().as_uri()}"
        constraints = ["--constraints", str(ROOT / "constraints.txt")]
        steps = (
            ([TOOLS / "uv", "venv", "--quiet", "--python", python, environment], opened()),
            ([TOOLS / "uv", "pip", "install", "--quiet", "--python", environment, *constraints, what], opened()),
            ([environment / "bin" / "tagcall", "--version"], closed(place)),
            ([environment / "bin" / "tagcall", "demo"], closed(place)),
        )
        for command, variables in steps:
            done = subprocess.run(
                [str(word) for word in command], cwd=place, env=variables, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=_WAIT, check=False,
            )  # fmt: skip
            if done.returncode:
                return done.stdout.strip()
    return None


def main() -> int:
    archives = sorted([*(ROOT / "dist").glob("*.whl"), *(ROOT / "dist").glob("*.tar.gz")])
    (wheel,) = (archive for archive in archives if archive.suffix == ".whl")
    version = version_of(wheel)
    changelog = (ROOT / "docs" / "changelog.md").read_text("utf-8")
    checks = [(f"the changelog for {version}", fault_of_changelog(changelog, version))]
    for number, python in pythons():
        checks += [(f"{archive.name} on Python {number}", fault_of_archive(archive, python)) for archive in archives]
    for what, fault in checks:
        print(f"{'ok' if fault is None else 'no'}  {what}" + (f"\n    {fault}" if fault else ""))
    return int(any(fault for _, fault in checks))


if __name__ == "__main__":
    sys.exit(main())
