from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from proxy.backends import Finding
from proxy.backends.table import BACKENDS
from proxy.cli.doctor import examine, forget_model
from proxy.contracts import BackendEvent, Load, TextPiece, TurnEnded
from proxy.errors import BackendError
from proxy.home import habits_file, read_habits, write_habits
from proxy.quota import Quota, QuotaWindow
from proxy.settings import Settings
from proxy.turn import KeyHabit, Known
from tests.support.memory_backend import USAGE, MemoryBackend
from tests.support.scripted_backend import SCRIPTED, ScriptedBackend

FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.mark.parametrize(
    ("habits", "mode", "good", "said"),
    [
        ({}, "auto", True, "no model has shown yet if it writes the key"),
        ({"a": KeyHabit.WRITES, "b": KeyHabit.WRITES}, "auto", True, "is written by a, b"),
        ({"a": KeyHabit.WRITES, "b": KeyHabit.NEVER}, "auto", None, "was never written by b"),
        ({"b": KeyHabit.NEVER}, "required", True, "is required"),
    ],
)
async def test_doctor_tells_which_models_write_the_call_key(
    habits: dict[str, KeyHabit], mode: str, good: bool | None, said: str, tmp_path: Path
) -> None:
    secret = tmp_path / "call-key"
    write_habits(
        habits_file(secret), [(owner, model, Known(habit)) for model, habit in habits.items() for owner in "12"]
    )
    settings = Settings(port=0, backend=f"replay:{FIXTURES}", call_key=mode, call_key_secret=secret)
    [found] = [finding async for finding in examine(settings) if finding.name == "call key"]
    assert found == Finding("call key", good, said, found.remedy)
    assert bool(found.remedy) is (good is None)


def test_doctor_forgets_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(port=0, backend=f"replay:{FIXTURES}", call_key_secret=tmp_path / "call-key")
    file = habits_file(settings.call_key_secret)
    write_habits(file, [("one", "a", Known(KeyHabit.NEVER)), ("one", "b", Known(KeyHabit.WRITES))])
    assert forget_model(settings, "a") == 0
    assert "Forgot whether a writes the call key" in capsys.readouterr().out
    assert read_habits(file) == [("one", "b", Known(KeyHabit.WRITES))]
    assert forget_model(settings, "a") == 0
    assert capsys.readouterr().out == "tagcall has learnt nothing about a.\n"


def quota(limit: str, used: int) -> Quota:
    return Quota(limit, (QuotaWindow("primary", used, 300),), 0)


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        ([quota("codex", 40)], [("quota", True), ("turn", True)]),
        ([quota("codex", 100)], [("quota", False)]),  # no turn, which would be refused
        ([quota("codex", 40), quota("a-model", 100)], [("quota", True), ("quota", None), ("turn", True)]),
    ],
)
async def test_a_quota_is_red_only_when_it_is_used_up_and_is_the_main_one(
    told: list[Quota], seen: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counted(ScriptedBackend):
        def load(self) -> Load:
            return Load(quota=tuple(told))

    monkeypatch.setitem(BACKENDS, "scripted", replace(SCRIPTED, make=Counted))
    settings = Settings(port=0, backend="scripted:a.md", store="memory", call_key="off")
    findings = [(finding.name, finding.good) async for finding in examine(settings)]
    assert [finding for finding in findings if finding[0] in {"quota", "turn"}] == seen


HALF_A_CALL = TextPiece('<tool_call>{"name": "read", "arguments": {"note": "wel')
UNCUT = "The model did not call a tool although 'tool_choice' demands it, also when asked again."


@pytest.mark.parametrize("release", ["whole", "live"])
@pytest.mark.parametrize(
    ("answer", "why", "next_step"),
    [
        ([HALF_A_CALL, TurnEnded(USAGE, "max_output_tokens")], "its server cut the answer at a limit", "Raise"),
        ([TurnEnded(USAGE, "content_filter")], "a content filter cut the answer", "Try again"),
        ([TextPiece("I cannot read."), TurnEnded(USAGE)], UNCUT, "Try again"),
    ],
    ids=["limit", "filter", "uncut"],
)
async def test_a_turn_without_a_whole_call_says_whether_it_was_cut(
    answer: list[BackendEvent], why: str, next_step: str, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BACKENDS, "scripted", replace(SCRIPTED, make=lambda _: MemoryBackend([answer, answer])))
    settings = Settings(port=0, backend="scripted:a.md", store="memory", call_key="off", calls=release)
    [turn] = [finding async for finding in examine(settings) if finding.name == "turn"]
    assert turn.good is False
    assert turn.said.startswith(f"scripted did not call a tool: {why}")
    assert turn.remedy is not None
    assert turn.remedy.startswith(next_step)


@pytest.mark.parametrize(
    ("code", "next_step"),
    [
        ("newer_codex_required", "npm install -g @openai/codex"),
        ("inference_hook_denied", "Ask who runs your workspace"),
    ],
)
async def test_a_turn_that_the_service_refuses_has_the_cure_for_its_next_step(
    code: str, next_step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = BackendError("No.", status=400, code=code, retryable=False)
    monkeypatch.setitem(BACKENDS, "scripted", replace(SCRIPTED, make=lambda _: MemoryBackend([refused])))
    settings = Settings(port=0, backend="scripted:a.md", store="memory", call_key="off")
    [turn] = [finding async for finding in examine(settings) if finding.name == "turn"]
    assert turn.good is False
    assert next_step in (turn.remedy or "")
