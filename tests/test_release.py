"""What is asked of the changelog before a release."""

from __future__ import annotations

import pytest

from tests.release import fault_of_changelog


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
