"""Settings that change the answer to the same words of a model. A recording keeps them for the server that plays it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..backends import find_kind
from ..errors import UsageError
from ..setting_values import user_path
from ..settings import SETTINGS, Settings
from ..sources import DEFAULT, Sources
from ..turn import FixedHabit, KeyHabit

if TYPE_CHECKING:
    from ..replay.fixture import Fixture

# What they are where a fixture says nothing.
SHAPING: Mapping[str, str | bool] = {
    "calls": "whole",
    "call_key": "off",
    "profile": "frontier",
    "reasoning_content": False,
}


def shaping_settings(settings: Settings) -> dict[str, str | bool]:
    """Those of `SHAPING` that a fixture has to say."""
    named = replace(settings, profile=settings.profile_name)
    return {name: value for name, usual in SHAPING.items() if (value := getattr(named, name)) != usual}


def check_settings(fixture: Fixture, place: Path) -> None:
    """Raises `UsageError` for a name or a value that no recorder writes."""
    if unknown := set(fixture.settings) - set(SHAPING):
        raise UsageError(f"{place}: no answer depends on the setting {min(unknown)}", "leave it out")
    for row in SETTINGS:
        if (value := fixture.settings.get(row.name)) is None:
            continue
        if isinstance(value, bool) != row.is_switch:
            kind = "true or false" if row.is_switch else "a text"
            raise UsageError(f"{place}: the setting {row.name} is not {kind}.")
        row.value(str(value), f"{place}: the setting {row.name}")


def habit_of(fixture: Fixture) -> KeyHabit:
    """What was known of the model when it was recorded; where there was no key, that it never writes one."""
    if "call_key" not in fixture.settings:
        return KeyHabit.NEVER
    return KeyHabit(fixture.key_habit or KeyHabit.UNKNOWN)


def habit_as_recorded(settings: Settings) -> FixedHabit | None:
    """What a server that plays fixtures takes for known of all models; None of one that has a model of its own."""
    if find_kind(settings.backend).has_model:
        return None
    from ..replay.fixture import load_fixtures  # noqa: PLC0415 -- other kinds do without

    _, _, address = settings.backend.partition(":")
    folder = user_path(address)
    if not address or not folder.is_dir():  # the backend says what is wrong
        return FixedHabit()
    habits = {habit_of(fixture) for fixture in load_fixtures(folder).values()}
    # Calls that have the key are calls whatever is known, those that have none only so.
    for habit in (KeyHabit.NEVER, KeyHabit.UNKNOWN):
        if habit in habits:
            return FixedHabit(habit)
    return FixedHabit(KeyHabit.WRITES)


def as_recorded(sources: Sources) -> Settings:
    """The settings; of a server that plays fixtures those on which all of them agree, where nobody has chosen.

    Raises `UsageError`.
    """
    settings = sources.settings
    kind, _, address = settings.backend.partition(":")
    folder = user_path(address)
    if kind != "replay" or not address or not folder.is_dir():  # the backend says what is wrong
        return settings
    from ..replay.fixture import load_fixtures  # noqa: PLC0415 -- other kinds do without

    fixtures = load_fixtures(folder)
    for name, fixture in fixtures.items():
        check_settings(fixture, folder / name)
    said = {name: {fixture.settings.get(name) for fixture in fixtures.values()} for name in SHAPING}
    # What a fixture leaves out is what such a server does anyway.
    agreed: dict[str, Any] = {
        name: values.pop()
        for name, values in said.items()
        if len(values) == 1 and None not in values and sources.origins[name] == DEFAULT
    }
    return replace(settings, **agreed)
