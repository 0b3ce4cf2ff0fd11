from __future__ import annotations

import os
import stat
from pathlib import Path

import orjson
import pytest

from proxy.backends.codex import Provider, prepare_home
from proxy.contracts import TextBackend
from tests.support.backend_events import prompt, read_turn
from tests.support.codex_programs import TestProgram, child_environment
from tests.support.scripted_model import Message, Reply, ScriptedModel

# A stand-in that has a model table but cannot be measured, and counts its starts.
STAND_IN = """#!/bin/sh
echo "$@" >> "$COUNT"
case "$1" in
  --version) echo codex-cli 0.169.0 ;;
  debug) [ -n "$TABLE" ] && echo "$TABLE" || exit 1 ;;
esac
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    path = tmp_path / "codex"
    path.write_text(STAND_IN)
    path.chmod(0o755)
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_the_home_is_its_owners_alone(tmp_path: Path, stand_in: Path) -> None:
    home = tmp_path / "deep" / "home"
    await prepare_home(home, stand_in, Provider(), 300, {"COUNT": str(tmp_path / "count")})
    assert mode(home) == 0o700
    assert mode(home / "empty") == 0o700
    assert {mode(path) for path in home.iterdir() if path.is_file()} == {0o600}


async def test_the_login_is_not_touched(tmp_path: Path, stand_in: Path) -> None:
    home = tmp_path / "home"
    make_login(home)
    before = (home / "auth.json").stat()
    await prepare_home(home, stand_in, Provider(), 300, {"COUNT": str(tmp_path / "count")})
    after = (home / "auth.json").stat()
    assert (before.st_mtime_ns, before.st_ino, before.st_mode) == (after.st_mtime_ns, after.st_ino, after.st_mode)


async def test_a_program_is_probed_once(tmp_path: Path, stand_in: Path) -> None:
    count, home = tmp_path / "count", tmp_path / "home"
    first = await prepare_home(home, stand_in, Provider(), 300, {"COUNT": str(count)})
    starts = count.read_text()
    again = await prepare_home(home, stand_in, Provider(), 300, {"COUNT": str(count)})
    assert first == again
    assert first.version == "0.169.0"
    assert count.read_text() == starts
    update(stand_in)
    assert (await prepare_home(home, stand_in, Provider(), 300, {"COUNT": str(count)})).version == "0.170.0"


async def test_a_program_without_a_table_gets_no_catalog(tmp_path: Path, stand_in: Path) -> None:
    home = tmp_path / "home"
    await prepare_home(home, stand_in, Provider(), 300, {"COUNT": str(tmp_path / "count")})
    assert "model_catalog_json" not in (home / "config.toml").read_text()


async def test_a_stand_in_that_says_no_version_is_asked_nothing_more(tmp_path: Path, stand_in: Path) -> None:
    stand_in.write_text(STAND_IN.replace("echo codex-cli 0.169.0", "true"))
    count = tmp_path / "count"
    program = await prepare_home(tmp_path / "home", stand_in, Provider(), 300, {"COUNT": str(count)})
    assert program.version is None
    assert not count.exists(), "only the question for the version knows no COUNT"


async def test_a_program_that_did_not_answer_is_asked_again_at_the_next_start(
    tmp_path: Path, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.backends.codex.program.ANSWER_TIMEOUT", 0.2)
    table = orjson.dumps({"models": [{"slug": "m"}]}).decode()
    stand_in.write_text(STAND_IN.replace("debug) ", 'debug) [ -n "$MUTE" ] && exec sleep 20; '))
    home, environment = tmp_path / "home", {"COUNT": str(tmp_path / "count"), "TABLE": table, "PATH": "/usr/bin:/bin"}
    await prepare_home(home, stand_in, Provider(), 300, {**environment, "MUTE": "yes"})
    assert not (home / "catalog.json").exists()
    monkeypatch.undo()
    await prepare_home(home, stand_in, Provider(), 300, environment)
    assert (home / "catalog.json").exists()


async def test_a_table_is_used_even_when_nothing_could_be_measured(tmp_path: Path, stand_in: Path) -> None:
    home = tmp_path / "home"
    table = orjson.dumps({"models": [{"slug": "m", "shell_type": "default"}]}).decode()
    await prepare_home(home, stand_in, Provider(), 300, {"COUNT": str(tmp_path / "count"), "TABLE": table})
    catalog = orjson.loads((home / "catalog.json").read_bytes())
    assert [(entry["slug"], entry["shell_type"]) for entry in catalog["models"]] == [("m", "disabled")]
    assert str(home / "catalog.json") in (home / "config.toml").read_text()
    assert not (home / "probed.json").exists(), "the next start must measure again"


def update(program: Path) -> None:
    program.write_text(program.read_text().replace("0.169.0", "0.170.0"))


def make_login(home: Path) -> None:
    home.mkdir()
    (home / "auth.json").write_text("{}")
    (home / "auth.json").chmod(0o600)


async def test_conversations_that_old_versions_wrote_down_are_removed(tmp_path: Path, stand_in: Path) -> None:
    home, day = tmp_path / "home", 24 * 3600
    old, running, archived = (
        home / folder / "rollout.jsonl"
        for folder in ("sessions/2026/01/01", "sessions/2026/01/02", "archived_sessions")
    )
    for file in (old, running, archived):
        file.parent.mkdir(parents=True)
        file.write_text("what somebody said")
    os.utime(old, (old.stat().st_atime, old.stat().st_mtime - day - 1))
    await prepare_home(home, stand_in, Provider(), 300, {"COUNT": str(tmp_path / "count")})
    assert [file.exists() for file in (old, running, archived)] == [False, True, False]


async def test_what_was_said_does_not_stay_in_the_home(
    home: Path, program: TestProgram, backend: TextBackend, model: ScriptedModel
) -> None:
    model.push(Reply([Message("the answer's mark")]))
    async with backend:
        await read_turn(backend, prompt("the prompt's mark"))
    assert program.path is not None
    await prepare_home(home / "upstream", program.path, Provider(model.url), 300, child_environment(home))
    kept = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert b"the prompt's mark" not in kept
    assert b"the answer's mark" not in kept
