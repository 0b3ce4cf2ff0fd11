"""The app-server that plays fixtures, as a backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxy.backends import make_backend, replay_backend
from proxy.contracts import TextPiece
from proxy.errors import UsageError
from proxy.settings import Settings
from tests.proxy.replay.child import answered, asked, jsonl
from tests.support.backend_events import merged, prompt, read_turn


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    case = tmp_path / "fixtures" / "hi"
    case.mkdir(parents=True)
    (case / "backend.jsonl").write_bytes(jsonl([asked("hi"), *answered(["Hello", " you"])]))
    return case.parent


async def test_it_answers_from_the_fixtures(folder: Path) -> None:
    async with make_backend(Settings(backend=f"replay:{folder}", model=("mine",))) as backend:
        assert merged(await read_turn(backend, prompt("hi")))[0] == TextPiece("Hello you")
        assert next(model.id for model in await backend.models()) == "mine"


@pytest.mark.parametrize("options", [{"speed": "soon"}, {"chunk": -1}])
async def test_speed_and_chunk_are_the_childs_business(folder: Path, options: dict[str, Any]) -> None:
    async with replay_backend(folder, **options) as backend:
        assert "the replay does not start" in str((await backend.health()).problem)


def test_what_is_wrong_with_a_fixture_is_told_before_anything_is_started(folder: Path) -> None:
    (folder / "hi" / "backend.jsonl").write_bytes(b"{")
    with pytest.raises(UsageError, match="line 1 is not JSON"):
        make_backend(Settings(backend=f"replay:{folder}"))


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder of fixtures"):
        make_backend(Settings(backend=f"replay:{tmp_path / 'none'}"))


async def test_it_says_what_it_has_played(folder: Path, tmp_path: Path) -> None:
    played = tmp_path / "played"
    async with make_backend(Settings(backend=f"replay:{folder}", played=played)) as backend:
        await read_turn(backend, prompt("hi"))
    assert played.read_text("utf-8") == "hi\n"
    with pytest.raises(UsageError, match=r"none/played cannot be written \(No such file or directory\)"):
        make_backend(Settings(backend=f"replay:{folder}", played=tmp_path / "none" / "played"))
