from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from proxy.errors import UsageError
from proxy.home import TURNS_NOTED, KeptHabits, forget_habits, habits_file, read_habits, read_secret
from proxy.server import turn_options
from proxy.settings import Settings
from proxy.turn import KeyHabit, KeyMode, Known, Speaker
from proxy.turn.turn_key import SECRET_BYTES


def test_a_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "call-key"
    secret = read_secret(path)
    assert len(secret) >= SECRET_BYTES
    assert read_secret(path) == secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_the_folder_of_the_secret_is_its_owners_alone_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    path = tmp_path / "data" / "call-key"
    before = os.umask(mask)
    try:
        read_secret(path)
        KeptHabits(habits_file(path)).note_key(A)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path, habits_file(path))]
    assert modes == [0o700, 0o600, 0o600]


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    read_secret(tmp_path / "call-key")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_servers_that_start_at_once_have_one_secret(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(read_secret, [tmp_path / "call-key"] * 32))
    assert len(secrets) == 1


def test_a_secret_of_ones_own_is_used_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x" * 40 + "\n", "utf-8")
    assert read_secret(tmp_path / "secret") == b"x" * 40


def test_a_secret_that_its_owner_names_and_nobody_can_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "call-key"):  # a folder, and what lies in none
        with pytest.raises(UsageError, match="can be neither read nor made"):
            turn_options(Settings(call_key_secret=path))
        assert len(read_secret(path)) == SECRET_BYTES


@pytest.mark.parametrize("text", ["", "short\n"])
def test_what_is_no_secret_is_refused_in_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(text, "utf-8")
    with pytest.raises(UsageError, match="holds no secret for call keys"):
        read_secret(tmp_path / "secret")


def test_where_nothing_can_be_written_the_secret_is_that_of_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    path = tmp_path / "file" / "call-key"
    assert len(read_secret(path)) == SECRET_BYTES
    assert read_secret(path) != read_secret(path)
    habits = KeptHabits(habits_file(path))
    habits.note_key(A)
    assert habits.of(A).habit is KeyHabit.WRITES


A, B = Speaker("one", "a", "first"), Speaker("one", "b", "first")


def test_habits_outlive_the_process(tmp_path: Path) -> None:
    path = habits_file(tmp_path / "call-key")
    habits = KeptHabits(path)
    habits.note_key(A)
    habits.note_lack(B)
    again = KeptHabits(path)
    assert (again.of(A), again.of(B)) == (Known(KeyHabit.WRITES), Known(KeyHabit.UNKNOWN, ("first",)))
    assert again.begin(replace(A, owner="another")) is KeyHabit.UNKNOWN


def test_nobody_else_can_read_them(tmp_path: Path) -> None:
    path = habits_file(tmp_path / "call-key")
    KeptHabits(path).note_key(A)
    assert path.stat().st_mode & 0o077 == 0
    assert [*tmp_path.iterdir()] == [path]


def test_turns_are_noted_now_and_then(tmp_path: Path) -> None:
    path = habits_file(tmp_path / "call-key")
    habits = KeptHabits(path)
    habits.note_key(A)
    for _ in range(TURNS_NOTED - 1):
        habits.begin(A)
    assert read_habits(path) == [("one", "a", Known(KeyHabit.WRITES))]
    habits.begin(A)
    assert read_habits(path) == [("one", "a", Known(KeyHabit.WRITES, turns=TURNS_NOTED))]


def test_a_server_that_runs_forgets_what_somebody_else_has_forgotten(tmp_path: Path) -> None:
    path = habits_file(tmp_path / "call-key")
    habits = KeptHabits(path)
    habits.note_key(A)
    habits.note_key(B)
    assert forget_habits(path, "a") == 1
    assert forget_habits(path, "a") == 0
    assert (habits.begin(A), habits.begin(B)) == (KeyHabit.UNKNOWN, KeyHabit.WRITES)


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"m": "writes"}', b'[{"habit": "sometimes"}]', b"[3]"])
def test_damaged_notes_are_none(damaged: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(damaged)
    assert read_habits(path) == []


@pytest.mark.parametrize(
    ("chosen", "mode"),
    [
        ({}, KeyMode.AUTO),
        ({"call_key": "required"}, KeyMode.REQUIRED),
        ({"call_key": "off"}, KeyMode.OFF),
    ],
)
def test_replicas_with_one_secret_make_the_same_keys(
    chosen: dict[str, str | bool], mode: KeyMode, tmp_path: Path
) -> None:
    def keys(secret: str) -> Callable[[], str]:
        options = turn_options(Settings(**{**chosen, "call_key_secret": tmp_path / secret}))  # type: ignore[arg-type]  # names are checked by the dataclass
        assert options.call_keys.mode is mode
        return lambda: options.call_keys.key("owner", "text", lambda key: False)

    if mode is not KeyMode.OFF:
        assert keys("a")() == keys("a")()
        assert keys("a")() != keys("b")()
    else:
        keys("a")
        assert list(tmp_path.iterdir()) == []
