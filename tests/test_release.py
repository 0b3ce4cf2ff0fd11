"""What is asked before a release: the changelog, and a version for each package."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.release import fault_of_changelog
from tests.support.installation import ROOT

PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


@pytest.mark.parametrize(
    ("changelog", "version", "fault"),
    [
        ("# Changelog\n\n## [Unreleased]\n", "0.1.dev3+g1234567", None),
        ("# Changelog\n\n## [0.1.0] - 2026-12-01\n", "0.1.dev3+g1234567", "0 sections"),
        ("# Changelog\n\n## [0.1.0] - 2026-12-01\n", "0.1.0", None),
        ("# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n", "0.2.0", "begins with Unreleased: give 0.2.0 its section"),
        ("# Changelog\n", "0.1.0", "begins with nothing"),
    ],
)
def test_a_version_has_its_section_of_the_changelog(changelog: str, version: str, fault: str | None) -> None:
    said = fault_of_changelog(changelog, version)
    assert said is None if fault is None else fault in (said or "")


def pins(file: str) -> dict[str, str]:
    return {name.lower().replace("_", "-"): version for name, version in PIN.findall((ROOT / file).read_text("utf-8"))}


def test_what_builds_a_release_is_pinned_with_hashes_and_as_the_tests_have_it() -> None:
    pinned, tested = pins(".ci/release.txt"), pins("constraints.txt")
    assert {name: version for name, version in pinned.items() if tested.get(name, version) != version} == {}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [*project["build-system"]["requires"], *project["dependency-groups"]["release"]]
    assert {re.split(r"[>=]", one)[0] for one in wanted} <= set(pinned)
    blocks = re.split(PIN, (ROOT / ".ci" / "release.txt").read_text("utf-8"))[3::3]
    assert all("--hash=sha256:" in block for block in blocks)


def test_whatever_the_project_names_has_the_version_that_was_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = {name: named for name, named in project["dependency-groups"].items() if name != "release"}
    named = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *groups.values(),
    ]
    names = {re.split(r"[\[<>=;]", one)[0].lower() for several in named for one in several}
    assert names - set(pins("constraints.txt")) == set()
