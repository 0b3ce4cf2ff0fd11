"""Which codex is good for what, and that every place says the same."""

from __future__ import annotations

import re
import tomllib

import pytest

from proxy.backends.codex import Support, standing_of
from proxy.backends.codex.versions import FLOORS, SUPPORTED_SINCE
from tests.support.codex_programs import ROOT


def written(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


@pytest.mark.parametrize(
    ("version", "standing"),
    [
        ("0.20.0", Support.REFUSED),
        ("0.88.9", Support.REFUSED),
        ("0.89.0", Support.FIXTURES),
        ("0.159.2", Support.FIXTURES),
        ("0.160.0-alpha.1", Support.SUPPORTED),
        ("0.169.0", Support.SUPPORTED),
        ("1.0.0", Support.SUPPORTED),
        (None, Support.SUPPORTED),
    ],
)
def test_each_version_has_its_standing(version: str | None, standing: Support) -> None:
    assert standing_of(version) is standing


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs/reference/app-server.md").read_text("utf-8")
    section = page.split("## Which codex\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?:(\S+) and newer|older) \| ([a-z ]*[a-z])", section, re.MULTILINE)
    assert rows == [(written(since) if any(since) else "", standing.value) for since, standing in FLOORS]


def test_the_extra_asks_for_a_supported_one() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert extras["codex"] == [f"openai-codex-cli-bin>={written(SUPPORTED_SINCE)}"]
