"""The settings of a recording, for who plays it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest

from proxy.cli.shaping import as_recorded, habit_as_recorded
from proxy.errors import UsageError
from proxy.settings import Settings
from proxy.sources import gather
from proxy.turn import FixedHabit, KeyHabit
from tests.proxy.replay.child import answered, asked, jsonl, write_fixture
from tests.support.tagcall_server import tagcall_process

SMALL = {"call_key": "auto", "profile": "small"}


def folder_of(path: Path, *recorded: Mapping[str, str | bool]) -> Path:
    for number, settings in enumerate(recorded):
        (path / str(number)).mkdir()
        (path / str(number) / "backend.jsonl").write_bytes(jsonl([asked("hi"), *answered(["Hi."])], settings=settings))
    return path


def played(folder: Path, **flags: str) -> dict[str, object]:
    settings = as_recorded(gather({"backend": f"replay:{folder}", **flags}, {}))
    return {name: getattr(settings, name) for name in ("calls", "call_key", "profile", "reasoning_content")}


USUAL = {"calls": "whole", "call_key": "auto", "profile": "auto", "reasoning_content": False}


def test_a_folder_is_played_as_all_of_it_was_recorded(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, SMALL, {**SMALL, "reasoning_content": True})
    assert played(folder) == {**USUAL, **SMALL}


def test_who_chooses_gets_what_was_chosen(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"profile": "small", "calls": "live"})
    assert played(folder, profile="frontier") == {**USUAL, "profile": "frontier", "calls": "live"}


def test_where_they_differ_nothing_is_taken_from_them(tmp_path: Path) -> None:
    assert played(folder_of(tmp_path, SMALL, {"call_key": "required"}, {})) == USUAL


@pytest.mark.parametrize(
    ("recorded", "habit"),
    [
        ([("off", None)], KeyHabit.NEVER),
        ([("auto", None)], KeyHabit.UNKNOWN),
        ([("auto", "writes"), ("auto", "writes")], KeyHabit.WRITES),
        ([("auto", "writes"), ("auto", None)], KeyHabit.UNKNOWN),
        ([("auto", "writes"), ("auto", "never")], KeyHabit.NEVER),
    ],
)
def test_what_was_known_of_the_model_is_known_again(
    recorded: list[tuple[str, str | None]], habit: KeyHabit, tmp_path: Path
) -> None:
    for number, (mode, known) in enumerate(recorded):
        lines = [asked("hi"), *answered(["Hi."])]
        settings = {} if mode == "off" else {"call_key": mode}
        meta = {} if known is None else {"key_habit": known}
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "backend.jsonl").write_bytes(jsonl(lines, settings=settings, **meta))
    assert habit_as_recorded(Settings(backend=f"replay:{tmp_path}")) == FixedHabit(habit)


def test_of_a_model_that_answers_nothing_is_known_by_recordings(tmp_path: Path) -> None:
    assert habit_as_recorded(Settings(backend="http://127.0.0.1:1/v1")) is None
    assert habit_as_recorded(Settings(backend=f"replay:{tmp_path / 'missing'}")) == FixedHabit()


def test_a_value_that_no_recorder_writes_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"0: the setting profile must be one of .*, not 'tiny'\."):
        played(folder_of(tmp_path, {"profile": "tiny"}))


async def test_a_small_models_call_is_one_and_nothing_is_learned_of_the_model(tmp_path: Path) -> None:
    folder, secret = tmp_path / "fixtures", tmp_path / "key"
    folder.mkdir()
    written = {
        "bare": '{"name": "look", "arguments": {}}',
        "keyed": '<tool_call>{"key": "[call key]", "name": "look", "arguments": {}}</tool_call>',
    }
    for name, text in written.items():
        write_fixture(folder, name, [asked(name), *answered([text])], settings=SMALL)
    words = [
        "serve",
        "--port",
        "0",
        "--store",
        "memory",
        "--backend",
        f"replay:{folder}",
        "--call-key-secret",
        str(secret),
    ]
    tools = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    async with tagcall_process(words, tmp_path) as (_, url), aiohttp.ClientSession() as http:
        for name in ("keyed", "bare"):
            body = {"model": "m", "input": name, "tools": tools}
            async with http.post(f"{url}/responses", json=body) as response:
                answer = await response.json()
            assert [item["type"] for item in answer["output"]] == ["function_call"], name
    assert [file.name for file in tmp_path.glob("key*")] == ["key"]


def test_other_backends_have_no_recording(tmp_path: Path) -> None:
    for backend in ("codex", "replay", "replay:", f"replay:{tmp_path / 'none'}"):
        sources = gather({"backend": backend}, {})
        assert as_recorded(sources) is sources.settings
