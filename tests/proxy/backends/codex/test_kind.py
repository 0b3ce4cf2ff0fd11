"""What `doctor` finds out about a codex program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from proxy.backends import Finding, find_kind
from proxy.settings import Settings
from tests.support.codex_programs import TestProgram
from tests.support.ports import free_port


def program_that(folder: Path, script: str) -> Settings:
    program = folder / "codex"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Settings(codex=str(program), codex_home=folder / "home")


GREETS = 'read line; echo \'{"id": 1, "result": {"userAgent": "x"}}\'; read line'


@pytest.mark.parametrize(
    ("script", "good", "said"),
    [
        (f'[ "$1" = --version ] && echo codex-cli 0.169.0 && exit; {GREETS}', True, "codex 0.169.0, "),
        ("exit 1", False, "does not say its version"),
        ("echo codex-cli 0.20.0; exit 2", False, "it is too old, or broken"),
    ],
)
async def test_the_program_is_asked_for_its_version_and_greeted(
    tmp_path: Path, script: str, good: bool, said: str
) -> None:
    finding, home = await find_kind("auto").check_before(program_that(tmp_path, script))
    assert (finding.name, finding.good) == ("program", good)
    assert said in finding.said
    assert str(tmp_path) in finding.said
    assert bool(finding.remedy) is not good
    assert home == Finding("home", True, f"{tmp_path / 'home'} can be written")


async def test_a_program_below_every_floor_is_red(tmp_path: Path) -> None:
    script = f'[ "$1" = --version ] && echo codex-cli 0.42.0 && exit; {GREETS}'
    finding, _ = await find_kind("auto").check_before(program_that(tmp_path, script))
    assert (finding.name, finding.good) == ("program", False)
    assert "too old" in finding.said
    assert "npm install -g @openai/codex" in (finding.remedy or "")


@pytest.mark.parametrize(("other", "told"), [("0.170.0", True), ("0.168.0", False), ("", False)])
async def test_a_newer_program_on_the_machine_is_named_with_the_flag_that_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str, told: bool
) -> None:
    settings = program_that(tmp_path, f'[ "$1" = --version ] && echo codex-cli 0.169.0 && exit; {GREETS}')
    newer = tmp_path / "bin" / "codex"
    newer.parent.mkdir()
    newer.write_text(f"#!/bin/sh\necho codex-cli {other}\n")
    newer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{newer.parent}:/usr/bin:/bin")
    first, *notes, _ = await find_kind("auto").check_before(settings)
    assert first.good
    note = Finding("program", None, f"codex {other} is here, too: {newer}", f"Take it with --codex {newer}.")
    assert notes == ([note] if told else [])


async def test_a_home_that_cannot_be_written_is_told_with_its_way_out(tmp_path: Path) -> None:
    settings = program_that(tmp_path, "exit 1")
    home = tmp_path / "codex" / "home"
    *_, finding = await find_kind("auto").check_before(replace(settings, codex_home=home))
    said, remedy = f"{home} cannot be written (Not a directory)", "Name a folder of yours with --codex-home DIR."
    assert finding == Finding("home", False, said, remedy)


ADDRESS = "ive --upstream the base URL of a Responses endpoint, as http://127.0.0.1:8000/v1."


@pytest.mark.parametrize(
    ("status", "body", "good"),
    [
        (400, {"error": {"message": "no model"}}, True),
        (401, {}, True),
        (404, {"error": {"message": "no such model"}}, True),
        (404, {"detail": "Not Found"}, False),
        (405, [], False),
    ],
)
async def test_an_upstream_is_one_that_knows_the_path(
    status: int, body: object, good: bool, aiohttp_server: AiohttpServer, tmp_path: Path
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(body, status=status)

    app = web.Application()
    app.router.add_post("/v1/responses", answer)
    upstream = str((await aiohttp_server(app)).make_url("/v1"))
    settings = replace(program_that(tmp_path, "exit 1"), upstream=f"{upstream}/")
    *_, finding = await find_kind("codex").check_after(settings)
    said = f"{upstream} is not a Responses endpoint: POST /responses answers {status}"
    assert finding == (
        Finding("service", True, f"{upstream} knows POST /responses")
        if good
        else Finding("service", False, said, f"G{ADDRESS}")
    )


async def test_an_upstream_where_nothing_listens_is_to_be_started(tmp_path: Path) -> None:
    upstream = f"http://127.0.0.1:{free_port()}/v1"
    *_, finding = await find_kind("codex").check_after(replace(program_that(tmp_path, "exit 1"), upstream=upstream))
    said = f"{upstream} cannot be reached (connection refused)"
    assert finding == Finding("service", False, said, f"Start it, or g{ADDRESS}")


async def test_a_missing_program_is_told_with_its_way_out(tmp_path: Path) -> None:
    finding, _ = await find_kind("codex").check_before(Settings(codex="no-such-program", codex_home=tmp_path))
    told = "no-such-program is not a program that can be started"
    assert finding == Finding("program", False, told, "Name another with --codex PATH.")


async def test_tools_that_reach_the_model_are_named(program: TestProgram) -> None:
    settings = Settings(codex=str(program.path), upstream="http://127.0.0.1:9/v1")
    finding, *_ = await find_kind("codex").check_after(settings)
    assert (finding.name, finding.good) == ("text-only", program.supported)
    assert finding.said.startswith("no built-in tool" if program.supported else "this codex gives the model tools")
