"""Fixtures that are run: each is asked at several cuts of the model's text, and its answers are held to its promise."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace

from proxy.cli.replay import run
from proxy.cli.replay.run import AS_RECORDED, CHUNKS, Case, Outcome, load_cases, open_servers, run_cases
from proxy.replay.answers import FixtureAnswer, FixtureBody, ReplayJson
from proxy.replay.asks import NOTHING_FITS
from proxy.replay.fixture import FixtureError

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures"
CALL, BODY, OTHER = "codex-0.169.0-two-calls", "codex-0.169.0-one-call-body", "codex-0.169.0-one-call-chat-body"
LEFT_EARLY = "codex-0.169.0-first-call-only"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (CALL, BODY, OTHER, LEFT_EARLY):
        shutil.copytree(FIXTURES / name, tmp_path / name)
    return tmp_path


Ask = Callable[[Case, int], FixtureAnswer]


class Servers:
    """Answer what a test wants; `most` counts those that are asked at a time."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._asked = 0
        self.most = 0

    async def ask(self, case: Case, chunk: int) -> FixtureAnswer:
        self._asked += 1
        self.most = max(self.most, self._asked)
        for _ in range(len(case.fixture.name)):  # some take longer
            await asyncio.sleep(0)
        self._asked -= 1
        return self._ask(case, chunk)


async def ran(
    folder: Path, patch: pytest.MonkeyPatch, ask: Ask, *names: str, jobs: int = 4
) -> tuple[dict[str, Outcome], Servers]:
    servers = Servers(ask)

    @asynccontextmanager
    async def opened(folder: Path, cases: Sequence[Case]) -> AsyncIterator[Servers]:
        yield servers

    patch.setattr(run, "open_servers", opened)
    cases = [case for case in load_cases(folder)[0] if not names or case.fixture.name in names]
    told: list[Outcome] = []
    outcomes = await run_cases(folder, cases, jobs=jobs, on_outcome=told.append)
    assert [outcome.case for outcome in outcomes] == cases, "in their order, whichever ended first"
    assert set(map(id, told)) == set(map(id, outcomes)), "each is told when it is there"
    return {outcome.case.fixture.name: outcome for outcome in outcomes}, servers


def promised(case: Case, chunk: int) -> FixtureAnswer:
    assert case.promised is not None
    return case.promised


def changed(answer: FixtureAnswer, old: str, new: str) -> FixtureAnswer:
    def inside(value: ReplayJson) -> ReplayJson:
        match value:
            case str():
                return value.replace(old, new)
            case dict():
                return {key: inside(inner) for key, inner in value.items()}
            case list():
                return [inside(inner) for inner in value]
            case _:
                return value

    assert isinstance(answer, FixtureBody)
    return replace(answer, body=inside(answer.body))


async def test_what_is_as_promised_at_all_cuts_is_good(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes, servers = await ran(folder, monkeypatch, promised, jobs=2)
    assert [outcome.lines for outcome in outcomes.values()] == [()] * 4
    assert all(outcome.good and outcome.answered for outcome in outcomes.values())
    assert servers.most == 2


@pytest.mark.parametrize(("chunk", "said"), [(3, "comes in pieces of 3"), (CHUNKS[-1], "comes in one piece")])
async def test_an_answer_that_depends_on_the_cuts_of_the_text_is_told_with_the_cut(
    folder: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, said: str
) -> None:
    def ask(case: Case, asked: int) -> FixtureAnswer:
        return changed(promised(case, asked), "completed", "incomplete") if asked == chunk else promised(case, asked)

    outcomes, _ = await ran(folder, monkeypatch, ask, BODY)
    outcome = outcomes[BODY]
    assert not outcome.good
    assert outcome.against_promise == ()
    assert outcome.against_cuts[0] == f"the answer is another when the model's text {said}"
    assert all(line.startswith("  ") for line in outcome.against_cuts[1:])
    assert "incomplete" in "".join(outcome.against_cuts)


async def test_an_answer_that_is_another_at_every_cut_is_told_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(case: Case, asked: int) -> FixtureAnswer:
        return changed(promised(case, asked), "completed", "incomplete")

    outcomes, _ = await ran(folder, monkeypatch, ask, BODY)
    assert outcomes[BODY].against_promise
    assert outcomes[BODY].against_cuts == ()


async def test_tokens_of_a_turn_that_was_left_early_are_estimates_and_no_part_of_the_promise(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(value: ReplayJson) -> ReplayJson:
        match value:
            case dict():
                return {
                    key: 7 if key in {"input_tokens", "prompt_tokens"} else counted(inner)
                    for key, inner in value.items()
                }
            case list():
                return [counted(inner) for inner in value]
            case _:
                return value

    def ask(case: Case, asked: int) -> FixtureAnswer:
        match promised(case, asked):
            case FixtureBody() as body:
                return replace(body, body=counted(body.body))
            case stream:
                events = tuple(replace(event, data=counted(event.data)) for event in stream.events)
                return replace(stream, events=events)

    outcomes, _ = await ran(folder, monkeypatch, ask)
    assert {name: outcome.good for name, outcome in outcomes.items()} == {
        CALL: False, BODY: False, OTHER: False, LEFT_EARLY: True,
    }  # fmt: skip


async def test_what_promises_nothing_and_what_another_fixture_answers_are_told_apart(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / BODY / "response.json").unlink()
    refusal = FixtureBody(400, {}, {"error": {"message": f"{NOTHING_FITS} this.", "type": "invalid_request_error"}})

    def ask(case: Case, asked: int) -> FixtureAnswer:
        return refusal if case.fixture.name == OTHER else FixtureBody(200, {}, {"status": "completed"})

    outcomes, _ = await ran(folder, monkeypatch, ask, BODY, OTHER)
    assert outcomes[BODY].lines == ("it promises no answer yet (--update writes the one that came)",)
    assert outcomes[BODY].answered
    assert not outcomes[OTHER].answered


async def test_every_case_is_asked_as_it_was_recorded_and_at_each_cut(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def ask(case: Case, chunk: int) -> FixtureAnswer:
        asked.append(chunk)
        return promised(case, chunk)

    await ran(folder, monkeypatch, ask, CALL)
    assert asked == [AS_RECORDED, *CHUNKS]


def test_what_was_written_for_playing_alone_is_named(folder: Path) -> None:
    (folder / OTHER / "request.json").unlink()
    cases, unasked = load_cases(folder)
    assert [case.fixture.name for case in cases] == sorted([CALL, BODY, LEFT_EARLY])
    assert unasked == [OTHER]


async def test_an_answer_may_take_as_long_as_its_text_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts: list[aiohttp.ClientTimeout] = []
    session = aiohttp.ClientSession

    def opened(*, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
        timeouts.append(timeout)
        return session(timeout=timeout)

    monkeypatch.setattr(aiohttp, "ClientSession", opened)
    async with open_servers(folder, []):
        assert timeouts == [aiohttp.ClientTimeout(total=None)]


def test_a_path_whose_answers_are_no_fixtures_is_told_before_anything_is_run(folder: Path) -> None:
    file = folder / BODY / "backend.jsonl"
    file.write_text(file.read_text("utf-8").replace("/v1/responses", "/api/chat", 1), "utf-8")
    with pytest.raises(FixtureError) as refused:
        load_cases(folder)
    assert str(refused.value) == (
        f'{file}: its "path" is /api/chat, but only /v1/chat/completions or /v1/responses can be run.'
    )


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
async def test_a_transcript_that_is_not_that_of_its_lines_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    said = {case.fixture.name: case.transcript for case in load_cases(folder)[0]}
    (folder / BODY / "transcript.txt").write_bytes(said[BODY].replace("\n", ends).encode())
    (folder / OTHER / "transcript.txt").write_text("mine", "utf-8")
    outcomes, _ = await ran(folder, monkeypatch, promised, BODY, OTHER)
    assert outcomes[BODY].good
    assert outcomes[OTHER].lines == ("transcript.txt is not what backend.jsonl says (--update writes it)",)
