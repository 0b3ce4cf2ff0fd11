"""The commands as a person starts them: child processes, their output and exit status."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from proxy.backends.codex import bundled_program
from proxy.cli.main import main
from tests.support.codex_homes import informed_home
from tests.support.command import Command
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.support.processes import app_servers

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "fixtures"
SCRIPT = """#!/bin/sh
echo "home=$CODEX_HOME arguments=$*"
exit 3
"""


def environment(**more: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if not name.startswith("TAGCALL_")}, **more}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proxy.cli", *arguments],
        cwd=ROOT, env=environment(**more), capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False,
    )  # fmt: skip


@contextmanager
def serve(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and its base URL; it is killed when the test is done with it."""
    child = subprocess.Popen(
        [sys.executable, "-m", "proxy.cli", "serve", "--port", "0", *arguments],
        cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    try:
        assert child.stdout is not None
        yield child, child.stdout.readline().strip().removeprefix("tagcall is ready on ")
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate(timeout=PATIENCE)


def stopped(child: subprocess.Popen[str]) -> tuple[str, str]:
    """What a server printed to the end, after it was told to stop."""
    assert child.stdout is not None
    assert child.stderr is not None
    child.send_signal(signal.SIGTERM)
    child.wait(timeout=PATIENCE)
    with child.stdout, child.stderr:
        return child.stdout.read(), child.stderr.read()


async def test_serve_says_where_it_is_and_how_to_use_it_and_stops_on_a_signal() -> None:
    with serve("--backend", f"replay:{FIXTURES}") as (child, url):
        assert url.startswith("http://127.0.0.1:")
        async with aiohttp.ClientSession() as session, session.get(f"{url}/models") as response:
            assert response.status == 200
        output, errors = stopped(child)
        assert child.returncode == 0
    assert "Obsidian Copilot" in output
    assert f"Base URL     {url}" in output
    assert "Traceback" not in errors


async def test_serve_logs_one_json_line_a_request_without_what_was_said() -> None:
    with serve("--backend", f"replay:{FIXTURES}", "--log-format", "json") as (child, url):
        async with aiohttp.ClientSession() as session:
            body = {"model": "m", "input": "a secret question"}
            async with session.post(f"{url}/responses", json=body, headers={"Authorization": "Bearer sk-secret"}):
                pass
        _, errors = stopped(child)
    lines = [line for line in errors.splitlines() if '"/responses"' in line]
    assert len(lines) == 1
    assert '"model": "m"' in lines[0]
    assert "secret" not in errors


def test_a_port_in_use_is_one_sentence_and_starts_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("serve", "--port", port, "--backend", f"replay:{FIXTURES}")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert port in done.stderr
    assert "--port" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--backend", "magic"], "--backend magic is unknown"),
        (["serve", "--backend", "replay:"], "is unknown"),
        (["serve", "--backend", "replay:/nowhere/at/all"], "is not a folder of fixtures"),
        (["serve", "--codex", "/nowhere/codex"], "is not a program that can be started"),
        (["serve", "--host", "0.0.0.0"], "set a key"),
        (
            ["serve", "--api-key-file", "/nowhere/keys"],
            "(No such file or directory): name another file with --api-key-f",
        ),
        (
            ["serve", "--base-instructions", "/nowhere/text", "--codex", sys.executable],
            "(No such file or directory): name another file with --base-instructions.\n",
        ),
        (["serve", "--backend-key-file", "/nowhere/key", "--backend", "ollama"], "file with --backend-key-file.\n"),
        (["serve", "--host", "nowhere.invalid", "--api-key", "x", "--backend", "ollama"], "): choose another with --h"),
        (["serve", "--port", "many"], "--port"),
        (["login", "--codex", "/nowhere/codex"], "is not a program that can be started"),
        (["login", "--codex", sys.executable, "--codex-home", f"{__file__}/home"], "--codex-home DIR"),
    ],
)
def test_what_a_person_must_change_is_one_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2, "in this process: none of them starts anything"
    told = capsys.readouterr().err
    assert said in told
    assert told.startswith("tagcall: ")
    assert told.count("\n") == 1
    assert "[Errno" not in told


def test_in_json_what_is_wrong_with_the_settings_is_a_json_line_too(
    tagcall: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, more in ((["--log-format", "json"], {}), ([], {"TAGCALL_LOG_FORMAT": "json"})):
        for name, value in more.items():
            monkeypatch.setenv(name, value)
        done = tagcall("serve", "--port", "99999", *arguments)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        told = json.loads(line)
        assert (told["level"], told["event"][:15]) == ("error", "tagcall: --port")


def test_login_is_codexs_own_on_the_private_home(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text(SCRIPT)
    program.chmod(0o755)
    home = tmp_path / "home"
    done = run("login", "--codex", str(program), "--codex-home", str(home), "--", "--device-auth")
    assert done.returncode == 3, "codex's own exit status"
    assert f"home={home} arguments=login --device-auth" in done.stdout
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_program_that_is_none_is_told_by_login_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "codex"
    program.write_text("neither a script nor a program\n", "utf-8")
    program.chmod(0o755)
    assert main(["login", "--codex", str(program), "--codex-home", str(tmp_path / "home")]) == 2
    told = capsys.readouterr().err
    assert re.fullmatch(r"tagcall: \S+ cannot be started \(.+\): name another with --codex PATH\.\n", told)


def test_doctor_tells_of_a_missing_login_and_what_to_do(tmp_path: Path) -> None:
    codex = bundled_program()
    assert codex is not None, "openai-codex-cli-bin is not installed"
    home = informed_home(tmp_path / "home", codex)
    done = run("doctor", "--codex", str(codex), "--codex-home", str(home), "--port", "0")
    assert done.returncode == 1
    assert "  ok  program " in done.stdout
    assert "  no  backend    codex is not logged in\n" in done.stdout
    told = rf"\n +Run `\S+ -m proxy.cli login --codex-home {re.escape(str(home))}`\.\n"
    assert re.search(told, done.stdout), "as it was started, into this home"
    assert "  ok  models " in done.stdout
    assert "  ok  text-only  no built-in tool reaches the model" in done.stdout
    assert "Obsidian Copilot" not in done.stdout, "there is nothing to enter yet"
    assert "\x1b" not in done.stdout
    assert app_servers() == []


def test_doctor_is_content_with_a_backend_that_works(tagcall: Command) -> None:
    port = free_port()
    done = tagcall("doctor", "--backend", f"replay:{FIXTURES}", "--port", str(port))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Obsidian Copilot" in done.stdout
    assert f"http://127.0.0.1:{port}/v1" in done.stdout


def test_of_a_port_that_is_another_at_each_start_no_address_is_told(tagcall: Command) -> None:
    done = tagcall("doctor", "--backend", f"replay:{FIXTURES}", "--port", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ":0/" not in done.stdout
    assert "the address changes at each start" in done.stdout
    assert "that the server printed" in tagcall("log", "--port", "0").stderr


def test_doctor_knows_a_running_tagcall_by_its_answer(tagcall: Command) -> None:
    with serve("--backend", f"replay:{FIXTURES}") as (_, url):
        port = url.rpartition(":")[2].removesuffix("/v1")
        done = tagcall("doctor", "--backend", f"replay:{FIXTURES}", "--port", port)
    assert done.returncode == 0
    assert "already running" in done.stdout


async def test_behind_a_path_of_a_proxy_all_that_is_printed_has_it(tagcall: Command) -> None:
    path = ["--base-path", "/llm"]
    with serve("--backend", f"replay:{FIXTURES}", *path) as (child, url):
        port = url.rpartition(":")[2].removesuffix("/llm/v1")
        assert url == f"http://127.0.0.1:{port}/llm/v1"
        port_and_path = ["--port", port, *path]
        here = ["--backend", f"replay:{FIXTURES}", *port_and_path]
        doctor = await asyncio.to_thread(tagcall, "doctor", *here)
        setup = await asyncio.to_thread(tagcall, "setup", "--plugin", "smart-connections", *here)
        log = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "proxy.cli", "log", "--json", *port_and_path,
            cwd=ROOT, env=environment(), stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        body = {"model": "m", "input": "x"}
        async with aiohttp.ClientSession() as session, session.post(f"{url}/responses", json=body):
            pass
        assert log.stdout is not None
        turn = (await log.stdout.readline()).decode()
        log.terminate()
        await log.communicate()
        output, errors = stopped(child)
    assert '"model": "m"' in turn
    for printed in (output, doctor.stdout, setup.stdout):
        assert f"Through the proxy: the proxy's address with /llm/v1, in place of {url}" in printed
    assert f"What happens: {url.removesuffix('v1')}\n" in output
    assert "already running" in doctor.stdout
    assert "/llm/v1/chat/completions" in setup.stdout
    for printed in (errors, doctor.stdout):
        assert "any key is accepted, from everybody whom the proxy lets in" in printed
        assert "Set one with --api-key or --api-key-file." in printed


def test_what_the_encoding_of_the_output_lacks_is_told_by_its_number() -> None:
    done = run("settings", "--config", "none", "--model", "caf\u00e9", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "caf\\xe9" in done.stdout


def test_version_and_help_are_told(tagcall: Command) -> None:
    assert run("--version").stdout.startswith("tagcall ")
    assert "doctor" in tagcall("--help").stdout
    assert "TAGCALL_LOG_LEVEL" in tagcall("serve", "--help").stdout
