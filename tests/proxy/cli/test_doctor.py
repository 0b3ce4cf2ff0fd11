from __future__ import annotations

from pathlib import Path

import pytest

from proxy.backends import Finding
from proxy.cli.doctor import examine
from proxy.home import KeptHabits, habits_file
from proxy.settings import Settings
from proxy.turn import KeyHabit

FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.mark.parametrize(
    ("habits", "mode", "good", "said"),
    [
        ({}, "auto", True, "no model has needed it yet"),
        ({"a": KeyHabit.WRITES, "b": KeyHabit.WRITES}, "auto", True, "is written by a, b"),
        ({"a": KeyHabit.WRITES, "b": KeyHabit.NEVER}, "auto", None, "was never written by b"),
        ({"b": KeyHabit.NEVER}, "required", True, "is required"),
    ],
)
async def test_doctor_tells_which_models_write_the_call_key(
    habits: dict[str, KeyHabit], mode: str, good: bool | None, said: str, tmp_path: Path
) -> None:
    secret = tmp_path / "call-key"
    kept = KeptHabits(habits_file(secret))
    for model, habit in habits.items():
        kept.learn(model, habit)
    settings = Settings(port=0, backend=f"replay:{FIXTURES}", call_key=mode, call_key_secret=secret)
    [found] = [finding async for finding in examine(settings) if finding.name == "call key"]
    assert found == Finding("call key", good, said, found.remedy)
    assert bool(found.remedy) is (good is None)
