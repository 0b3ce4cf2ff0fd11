"""`tagcall eval` as a person sees it, with models that a test wrote."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from parser import write_call
from prompts import ModelRule, UserTurn
from proxy.backends.table import BACKENDS
from proxy.cli.eval import EvalOptions, run_eval
from proxy.cli.eval.cases import AFTER_RESULTS, CATEGORIES, EvalCase, chosen, load_cases
from proxy.cli.main import main
from proxy.contracts import BackendEvent, Model, Prompt
from proxy.errors import BackendError, RequestError, UsageError
from proxy.settings import Settings
from tests.support.backends import BACKENDS_UNDER_TEST, TestBackend
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.parts import text_of_parts
from tests.support.scripted_backend import SCRIPTED
from tests.support.scripted_model import Message, Reply, ScriptedModel

CASES = load_cases()
# What a model writes in a case.
Written = Callable[[EvalCase, Prompt], Script]


class CaseModel(MemoryBackend):
    """Looks up which case it is shown, and answers as it was told to."""

    def __init__(self, written: Written, *, problem: str | None = None) -> None:
        super().__init__([], problem=problem)
        self.asked: list[tuple[str, str]] = []
        self._written = written

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        case = _case_of(prompt)
        self.asked.append((prompt.model, case.id))
        self.answers.append(self._written(case, prompt))
        async with super().stream(prompt) as batches:
            yield batches


def _case_of(prompt: Prompt) -> EvalCase:
    shown = {text_of_parts(item.parts) for item in prompt.items}
    (case,) = (case for case in CASES if _asked(case) <= shown)
    return case


def _asked(case: EvalCase) -> set[str]:
    return {text_of_parts(entry.parts) for entry in case.request.transcript.entries if isinstance(entry, UserTurn)}


def right(case: EvalCase, prompt: Prompt) -> str:
    key = re.search(r'"key": "([^"]+)"', prompt.developer or "")
    calls = [write_call(call.name, json.dumps(call.example)) for call in case.calls]
    if key:
        calls = [call.replace("{", f'{{"key": "{key[1]}", ', 1) for call in calls]
    return "\n".join(calls) or " ".join(words.partition("|")[0] for words in case.says) or "Gladly."


def silent(case: EvalCase, prompt: Prompt) -> str:
    return ""


def gone(case: EvalCase, prompt: Prompt) -> Script:
    return BackendError("The model has gone.")


async def evaluated(folder: Path, written: Written = right, **options: Any) -> tuple[int, dict[str, Any]]:
    """The exit status, and what was written as JSON."""
    file = folder / "eval.json"
    status = await run_eval(Settings(), EvalOptions(json=file, **options), CaseModel(written))
    return status, json.loads(file.read_bytes())


def all_of(run: dict[str, Any]) -> dict[str, Any]:
    return dict(run["figures"]["all"])


async def test_a_model_that_does_all_things_right_is_right_in_all_cases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told = await evaluated(tmp_path)
    assert status == 0
    (run,) = told["runs"]
    assert all_of(run) | {"seconds": 0, "input_tokens": 0, "output_tokens": 0} == {
        "cases": len(CASES), "right": len(CASES), "lost": 0, "markup": 0, "beside": 0, "without_key": 0,
        "second_tries": 0, "failed": 0, "seconds": 0, "input_tokens": 0, "output_tokens": 0,
    }  # fmt: skip
    assert [*run["figures"]] == [*CATEGORIES.values(), "first turns", "after results", "all"]
    shown = capsys.readouterr().out
    assert re.search(rf"^all +{len(CASES)}/{len(CASES)} ", shown, re.MULTILINE)
    assert all(re.search(rf"^{words} +\d+/\d+ ", shown, re.MULTILINE) for words in CATEGORIES.values())


@pytest.mark.parametrize("profile", ["frontier", "small"])
@pytest.mark.parametrize("call_key", ["auto", "required", "off"])
async def test_a_right_answer_is_right_however_it_is_asked_for(tmp_path: Path, profile: str, call_key: str) -> None:
    file = tmp_path / "eval.json"
    settings = Settings(profile=profile, call_key=call_key)
    assert await run_eval(settings, EvalOptions(json=file, every=4), CaseModel(right)) == 0
    told = json.loads(file.read_bytes())
    assert (told["call_key"], told["runs"][0]["profile"]) == (call_key, profile)
    assert all_of(told["runs"][0])["right"] == all_of(told["runs"][0])["cases"]


async def test_a_model_that_says_nothing_is_never_right(tmp_path: Path) -> None:
    _, told = await evaluated(tmp_path, silent, every=3)
    assert all_of(told["runs"][0])["right"] == 0
    kinds = {mistake for case in told["runs"][0]["cases"] for mistake in case["mistakes"]}
    assert kinds == {"missing_call", "no_text"}


async def test_calls_of_tools_that_nobody_offered_are_written_down_with_why_they_did_not_come(tmp_path: Path) -> None:
    def inventive(case: EvalCase, prompt: Prompt) -> str:
        return write_call("invented", "{}")

    _, told = await evaluated(tmp_path, inventive, category=["single"], every=4)
    assert {tuple(case["refused"]) for case in told["runs"][0]["cases"]} == {("undeclared",)}


async def test_what_a_person_should_not_see_is_counted(tmp_path: Path) -> None:
    def chatty(case: EvalCase, prompt: Prompt) -> str:
        return f"I will do it.\n{right(case, prompt)}" if case.calls else 'I called {"name": "count_rows"}.'

    _, told = await evaluated(tmp_path, chatty, every=3, category=["single", "answer"])
    figures = told["runs"][0]["figures"]
    assert figures["one call"]["beside"] == figures["one call"]["cases"] == figures["one call"]["right"]
    assert figures["answer from results"]["markup"] == figures["answer from results"]["cases"]
    assert figures["answer from results"]["beside"] == figures["one call"]["markup"] == 0


async def test_a_line_of_ours_that_comes_back_is_no_answer(tmp_path: Path) -> None:
    def parrot(case: EvalCase, prompt: Prompt) -> str:
        return next((text_of_parts(item.parts) for item in prompt.items if item.ours), "Gladly.")

    _, told = await evaluated(tmp_path, parrot, category=["answer"], half="tuning", compare=["small"])
    frontier, small = map(all_of, told["runs"])
    assert (frontier["markup"], small["markup"]) == (0, 0)
    assert small["right"] == 0


async def test_a_call_that_was_written_and_did_not_come_is_lost(tmp_path: Path) -> None:
    def broken(case: EvalCase, prompt: Prompt) -> str:
        return right(case, prompt).replace('"arguments": {', '"arguments": [{')

    _, told = await evaluated(tmp_path, broken, category=["single"], half="tuning")
    found = all_of(told["runs"][0])
    assert (found["right"], found["lost"], found["second_tries"]) == (0, found["cases"], found["cases"])


async def test_calls_without_the_key_are_counted(tmp_path: Path) -> None:
    def forgetful(case: EvalCase, prompt: Prompt) -> str:
        return re.sub(r'"key": "[^"]+", ', "", right(case, prompt))

    _, told = await evaluated(tmp_path, forgetful, category=["parallel"], half="tuning")
    calls = sum(len(case.calls) for case in CASES if (case.category, case.half) == ("parallel", "tuning"))
    assert all_of(told["runs"][0])["without_key"] == calls


async def test_time_and_tokens_of_second_tries_are_counted_too(tmp_path: Path) -> None:
    _, once = await evaluated(tmp_path, category=["single"], half="tuning")

    def corrected(case: EvalCase, prompt: Prompt) -> str:
        return right(case, prompt) if "discarded" in repr(prompt.items) else '<tool_call>{"name": </tool_call>'

    _, twice = await evaluated(tmp_path, corrected, category=["single"], half="tuning")
    before, after = all_of(once["runs"][0]), all_of(twice["runs"][0])
    assert after["right"] == after["second_tries"] == after["cases"]
    assert after["input_tokens"] == 2 * before["input_tokens"]
    assert after["seconds"] > 0


async def test_two_profiles_are_compared_on_the_same_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def only_small(case: EvalCase, prompt: Prompt) -> str:
        # `small` alone has a closing line behind results.
        fitting = case.category not in AFTER_RESULTS or (prompt.items[-1].role == "user" and len(prompt.items) > 3)
        return right(case, prompt) if fitting else ""

    status, told = await evaluated(tmp_path, only_small, compare=["small", "frontier"])
    assert status == 0
    assert [run["profile"] for run in told["runs"]] == ["frontier", "small"]
    right_in = [all_of(run)["right"] for run in told["runs"]]
    assert right_in[0] < right_in[1]
    assert told["best"] == "--profile small"
    compared = told["compared"]["--profile frontier"]
    assert compared["right"] == right_in[::-1]
    assert compared["alone"] == [right_in[1] - right_in[0], 0]
    shown = capsys.readouterr().out
    assert "--profile small serves better than --profile frontier" in shown
    assert "hardly chance" in shown


async def test_two_models_are_compared_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backend = CaseModel(lambda case, prompt: right(case, prompt) if prompt.model == "large" else silent(case, prompt))
    options = EvalOptions(compare=["large"], category=["single"], half="tuning", json=tmp_path / "eval.json")
    assert await run_eval(Settings(model=("little", "other")), options, backend) == 0
    assert json.loads((tmp_path / "eval.json").read_bytes())["best"] == "large"
    assert {model for model, _ in backend.asked} == {"little", "large"}
    assert "large serves better than little" in " ".join(capsys.readouterr().out.split())


async def test_a_difference_of_a_few_cases_is_called_chance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def nearly(case: EvalCase, prompt: Prompt) -> str:
        return silent(case, prompt) if (prompt.model, case.id) == ("other", "single-1") else right(case, prompt)

    _, told = await evaluated(tmp_path, nearly, compare=["other"], category=["single"])
    assert told["compared"]["other"]["chance"] == 1.0
    assert "may be chance" in " ".join(capsys.readouterr().out.split())


async def test_what_a_rule_earns_is_measured_by_leaving_it_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_a_header(case: EvalCase, prompt: Prompt) -> str:
        return f"[assistant] {right(case, prompt)}"

    options = {"without": [ModelRule.HEADER, ModelRule.OWN_LINE], "category": ["answer"], "half": "confirmation"}
    _, told = await evaluated(tmp_path, with_a_header, **options)
    assert [run["without"] for run in told["runs"]] == [None, "header", "own_line"]
    assert [all_of(run)["markup"] for run in told["runs"]] == [0, all_of(told["runs"][0])["cases"], 0]
    assert "--profile frontier --without header" in capsys.readouterr().out


async def test_equals_serve_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await evaluated(tmp_path, compare=["small"], category=["single"])
    assert "--profile frontier and --profile small serve alike" in capsys.readouterr().out


async def test_the_answers_that_are_not_right_are_shown_when_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def mistaken(case: EvalCase, prompt: Prompt) -> str:
        return "I do not know." if case.id == "single-1" else right(case, prompt)

    await evaluated(tmp_path, mistaken, category=["single"], wrong=True)
    shown = capsys.readouterr().out
    assert "single-1: missing_call\n    said I do not know." in shown
    assert "single-2" not in shown


async def test_several_cases_at_a_time_are_all_there_once(tmp_path: Path) -> None:
    _, told = await evaluated(tmp_path, jobs=5)
    assert sorted(case["id"] for case in told["runs"][0]["cases"]) == sorted(case.id for case in CASES)


async def test_an_answer_that_fails_is_counted_and_told_by_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def shaky(case: EvalCase, prompt: Prompt) -> Script:
        return gone(case, prompt) if case.id == "single-1" else right(case, prompt)

    status, told = await evaluated(tmp_path, shaky, category=["single"], wrong=True)
    assert status == 1
    assert all_of(told["runs"][0])["failed"] == 1
    assert "failed: The model has gone." in capsys.readouterr().out


async def test_a_backend_that_answers_nothing_any_more_ends_the_run(tmp_path: Path) -> None:
    def tired(case: EvalCase, prompt: Prompt) -> Script:
        return right(case, prompt) if case.category == "single" else gone(case, prompt)

    with pytest.raises(UsageError, match=r"3 cases in a row .* The model has gone\."):
        await evaluated(tmp_path, tired)
    told = json.loads((tmp_path / "eval.json").read_bytes())
    assert all_of(told["runs"][0])["failed"] == 3


async def test_what_there_is_is_told_when_somebody_has_seen_enough(capsys: pytest.CaptureFixture[str]) -> None:
    begun = asyncio.Event()

    class Stuck(CaseModel):
        @asynccontextmanager
        async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
            if len(self.asked) == 4:
                begun.set()
                await asyncio.Event().wait()
            async with super().stream(prompt) as batches:
                yield batches

    backend = Stuck(right)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(run_eval(Settings(), EvalOptions(), backend), name="eval")
        await begun.wait()
        run.cancel()
    assert re.search(r"^all +4/4 ", capsys.readouterr().out, re.MULTILINE)


async def test_a_backend_that_is_not_ready_says_why() -> None:
    with pytest.raises(UsageError, match="Log in first"):
        await run_eval(Settings(), EvalOptions(), CaseModel(right, problem="Log in first."))


async def test_without_a_model_one_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[Model] = []

    async def models(self: CaseModel) -> Sequence[Model]:
        return listed

    monkeypatch.setattr(CaseModel, "models", models)
    with pytest.raises(UsageError, match="--model NAME"):
        await run_eval(Settings(), EvalOptions(), CaseModel(right))


async def test_a_list_of_models_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def models(self: CaseModel) -> Sequence[Model]:
        raise RequestError("There is no list.")

    monkeypatch.setattr(CaseModel, "models", models)
    with pytest.raises(UsageError, match=r"There is no list\."):
        await run_eval(Settings(), EvalOptions(), CaseModel(right))


async def test_a_file_that_cannot_be_written_is_told_before_a_model_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        await evaluated(tmp_path / "missing", category=["single"])
    assert capsys.readouterr().out == ""


def test_the_command_asks_the_backend_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(BACKENDS, "scripted", SCRIPTED)
    arguments = ["--backend", "scripted:a.md", "--profile", "small", "--category", "single", "--every", "7"]
    assert main(["eval", *arguments]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("scripted, backend scripted, --profile small, --call-key auto\n")
    assert re.search(r"^one call +0/2 ", shown, re.MULTILINE)


def test_a_run_that_is_terminated_tells_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminated(CaseModel):
        """Answers two cases, and not the third."""

        @asynccontextmanager
        async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
            if len(self.asked) == 2:
                signal.raise_signal(signal.SIGTERM)
                await asyncio.Event().wait()
            async with super().stream(prompt) as batches:
                yield batches

    model = Terminated(right)
    monkeypatch.setattr("proxy.cli.eval.make_backend", lambda settings: model)
    file, before = tmp_path / "eval.json", signal.getsignal(signal.SIGTERM)
    assert main(["eval", "--backend", "http://127.0.0.1:9/v1", "--model", "m", "--json", str(file)]) == 130
    assert signal.getsignal(signal.SIGTERM) == before
    assert all_of(json.loads(file.read_bytes())["runs"][0])["cases"] == 2
    assert re.search(r"^(all|one call) +2/2 ", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("stack", BACKENDS_UNDER_TEST, ids=lambda stack: stack.name)
async def test_a_real_backend_is_asked_whatever_its_kind(
    stack: TestBackend, model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (case,) = chosen(CASES, half="tuning", categories=["single"], every=100)
    (call,) = case.calls
    # It is asked twice, as it does not write the key.
    model.default = Reply([Message(write_call(call.name, json.dumps(call.example)))])
    settings = Settings(model=("gpt-5.5",), **stack.settings(model, tmp_path / "home"))
    assert await run_eval(settings, EvalOptions(half="tuning", category=["single"], every=100)) == 0
    assert re.search(r"^all +1/1 ", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--every", "0"], "'0' is not a number of 1 or more"),
        (["--half", "third"], "'third' is not one of tuning, confirmation."),
        (["--category", "all"], "'all' is not one of single, parallel, "),
        (["--without", "rounds"], "'rounds' is not a rule for models. The rules are header, own_line, "),
        (
            ["--without", "echo"],
            "The profile frontier has no rule 'echo': there are header, own_line, ",
        ),
    ],
)
def test_a_flag_that_means_nothing_is_refused(flags: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", *flags]) == 2
    assert told in capsys.readouterr().err
