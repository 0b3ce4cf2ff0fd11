"""Two builds can be told apart, and so can two commits of one checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def git(folder: Path, *words: str) -> str:
    named = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *named, *words]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()


def version_in(folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "proxy.cli", "--version"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.strip()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="these sources are no checkout")
def test_two_commits_of_a_checkout_have_two_versions(tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", ROOT.as_uri(), "checkout")
    checkout = tmp_path / "checkout"
    first = version_in(checkout)
    git(checkout, "commit", "--quiet", "--allow-empty", "--message", "Change nothing")
    second = version_in(checkout)
    assert first != second
    assert second.split("+g")[1].startswith(git(checkout, "rev-parse", "--short", "HEAD"))
    assert re.fullmatch(r"tagcall \d[\w.]*\+g[0-9a-f]+[\w.]*", second)


def test_sources_without_git_say_what_was_built(tmp_path: Path) -> None:
    for name in ("parser", "prompts", "proxy"):
        (tmp_path / name).symlink_to(ROOT / name)
    assert version_in(tmp_path).startswith("tagcall ")


def test_the_version_is_that_of_the_installation_which_is_found_first(tmp_path: Path) -> None:
    for name in ("parser", "prompts", "proxy"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "tagcall-9.8.7.dist-info").mkdir()
    assert version_in(tmp_path) == "tagcall 9.8.7"
