"""Situations in which `serve` would not do: `doctor` names each with its next step, and exits with 1."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from parser import write_call
from proxy.advice import command
from proxy.backends import as_sentence
from proxy.backends.codex import turn_failure
from proxy.cli import main
from proxy.cli.doctor import examine, run_doctor
from proxy.errors import BackendError
from proxy.port_owner import owner_of
from proxy.settings import Settings
from tests.support.codex_homes import informed_home
from tests.support.codex_programs import child_environment, installed_programs
from tests.support.patience import PATIENCE
from tests.support.remembered_tools import remember_tools
from tests.support.scripted_chat import ScriptedChat
from tests.support.scripted_model import Message, Refusal, Reply, ScriptedModel

ROOT = Path(__file__).resolve().parents[3]
RECORDED = f"replay:{ROOT / 'fixtures'}"
OLD = """#!/bin/sh
[ "$1" = --version ] && echo codex-cli 0.20.0 && exit
echo "error: unexpected argument 'app-server' found" >&2
exit 2
"""
STUCK = """#!/bin/sh
[ "$1" = --version ] && echo codex-cli 0.169.0 && exit
exec sleep 600
"""
CALL = Reply([Message(write_call("read", '{"note": "welcome.md"}'))])


@pytest.fixture
def codex() -> str:
    program = installed_programs()[0].path
    assert program is not None, "openai-codex-cli-bin is not installed"
    return str(program)


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in child_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
        monkeypatch.setenv(name.lower(), value)
    remember_tools(monkeypatch)


def settings(folder: Path, **changes: Any) -> Settings:
    """Of a machine on which everything is there but what `changes` break."""
    defaults: dict[str, Any] = {
        "port": 0,
        "codex_home": folder / "codex-home",
        "store": f"sqlite:{folder / 'store'}",
        "call_key_secret": folder / "call-key",
    }
    program = installed_programs()[0].path
    assert program is not None
    informed_home(defaults["codex_home"], program)
    return Settings(**{**defaults, **changes})


def script(folder: Path, text: str) -> str:
    program = folder / "codex"
    program.write_text(text)
    program.chmod(0o755)
    return str(program)


async def diagnosis(
    capsys: pytest.CaptureFixture[str], given: Settings, *, turn: bool = True
) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit status, and what is said of each check."""
    status = await run_doctor(given, turn=turn, as_json=True)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["healthy"] is (status == 0)
    for check in told["checks"]:
        assert check["next_step"] or check["status"] != "failed", check
    return status, {check["name"]: check for check in told["checks"]}


def red(checks: dict[str, dict[str, str]]) -> dict[str, str]:
    """What is said of each that is red, with its next step."""
    return {
        name: f"{check['said']} {check['next_step']}" for name, check in checks.items() if check["status"] == "failed"
    }


async def file_server(aiohttp_server: AiohttpServer) -> str:
    async def list_files(request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.Response(text="<h1>Index</h1>", content_type="text/html")
        return web.Response(status=501, text="Unsupported method", content_type="text/html")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", list_files)
    return str((await aiohttp_server(app)).make_url("/v1"))


async def test_a_machine_that_has_everything_is_well(
    capsys: pytest.CaptureFixture[str], model: ScriptedModel, codex: str, tmp_path: Path
) -> None:
    model.default = CALL
    status, checks = await diagnosis(capsys, settings(tmp_path, codex=codex, upstream=model.url))
    assert status == 0, checks
    assert "called a tool in" in checks["turn"]["said"]
    assert "tokens read" in checks["turn"]["said"]


async def test_without_a_turn_the_model_is_asked_nothing(
    capsys: pytest.CaptureFixture[str], aiohttp_server: AiohttpServer, tmp_path: Path
) -> None:
    model = ScriptedChat()
    server = await aiohttp_server(model.app)
    given = settings(tmp_path, backend=str(server.make_url("/v1")))
    status, checks = await diagnosis(capsys, given, turn=False)
    assert status == 0
    assert checks["turn"]["said"] == "not tried (--no-turn)"
    assert model.requests == []


async def test_a_chat_server_that_has_everything_is_well(
    capsys: pytest.CaptureFixture[str], aiohttp_server: AiohttpServer, tmp_path: Path
) -> None:
    model = ScriptedChat()
    model.default = CALL
    server = await aiohttp_server(model.app)
    status, checks = await diagnosis(capsys, settings(tmp_path, backend=str(server.make_url("/v1"))))
    assert status == 0, checks
    assert checks["turn"]["status"] == "ok"
    assert "context" in checks


BROKEN: dict[str, tuple[Callable[[Path], dict[str, Any]], dict[str, tuple[str, str]]]] = {
    # What is wrong: what breaks it, and of each red line what is said and the next step.
    "dead upstream": (
        lambda _: {"upstream": "http://127.0.0.1:9/v1"}, {"service": ("cannot be reached", "give --upstream")}
    ),
    "no network, and not logged in": (
        lambda _: {},
        {"service": ("OpenAI cannot be reached", "Check the network"), "backend": ("is not logged in", "login`")},
    ),
    "store at an unwritable path": (
        lambda folder: {"backend": RECORDED, "store": f"sqlite:{folder / 'file' / 's'}"},
        {"store": ("cannot be kept", "Choose another --store")},
    ),
    "codex home not writable": (
        lambda folder: {"codex_home": folder / "file" / "home"}, {"home": ("cannot be written", "--codex-home DIR")}
    ),
    "codex too old": (
        lambda folder: {"codex": script(folder, OLD)}, {"program": ("0.20.0", "Install codex 0.160 or newer")}
    ),
    "dead ws": (
        lambda _: {"backend": "ws://127.0.0.1:9"},
        {"backend": ("does not start: Connection refused.", "codex app-server --listen")},
    ),
    "dead Chat Completions server": (
        lambda _: {"backend": "http://127.0.0.1:9/v1"}, {"backend": ("does not answer", "Start the model server")}
    ),
    "no program": (lambda _: {"codex": "/nowhere/codex"}, {"program": ("/nowhere/codex", "can be started")}),
}  # fmt: skip


@pytest.mark.parametrize("situation", BROKEN)
async def test_what_is_broken_is_told_with_its_next_step(
    capsys: pytest.CaptureFixture[str], codex: str, tmp_path: Path, situation: str
) -> None:
    breaks, lines = BROKEN[situation]
    (tmp_path / "file").touch()
    status, checks = await diagnosis(capsys, settings(tmp_path, **{"codex": codex, **breaks(tmp_path)}))
    assert status == 1
    for line, (said, step) in lines.items():
        assert said in red(checks)[line]
        assert step in red(checks)[line]
    assert checks.get("turn") is None, "nothing is asked of what is broken"


async def test_a_codex_that_hangs_is_told_in_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("proxy.backends.codex.examination.GREETING", 0.1)
    status, checks = await diagnosis(capsys, settings(tmp_path, codex=script(tmp_path, STUCK)))
    assert status == 1
    assert "does not answer within 0.1 seconds" in red(checks)["program"]
    assert "--codex PATH" in red(checks)["program"]


@pytest.mark.parametrize("kind", ["upstream", "backend"])
async def test_a_file_server_is_no_model_server(
    capsys: pytest.CaptureFixture[str], aiohttp_server: AiohttpServer, codex: str, tmp_path: Path, kind: str
) -> None:
    url = await file_server(aiohttp_server)
    status, checks = await diagnosis(capsys, settings(tmp_path, codex=codex, **{kind: url}), turn=False)
    assert status == 1
    (told,) = red(checks).values()
    assert ("is not a Responses endpoint" if kind == "upstream" else "without JSON") in told
    assert ("Give --upstream" if kind == "upstream" else "Give --backend the whole address") in told
    assert "tart it" not in told, "it runs"


async def test_a_missing_login_of_another_app_server_is_not_mended_here(
    capsys: pytest.CaptureFixture[str], aiohttp_server: AiohttpServer, tmp_path: Path
) -> None:
    async def app_server(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            asked = message.json()
            if "id" in asked:
                told = {"account/read": {"account": None, "requiresOpenaiAuth": True}, "model/list": {"data": []}}
                await socket.send_json({"id": asked["id"], "result": told.get(asked["method"], {})})
        return socket

    app = web.Application()
    app.router.add_get("/", app_server)
    server = await aiohttp_server(app)
    given = settings(tmp_path, backend=f"ws://127.0.0.1:{server.port}")
    status, checks = await diagnosis(capsys, given, turn=False)
    assert status == 1
    assert red(checks)["backend"].endswith("Run `codex login` where the app-server runs, and restart it.")


async def test_a_port_in_use_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        given = settings(tmp_path, port=taken.getsockname()[1], backend=RECORDED)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("proxy.cli.doctor.NEIGHBOUR_TIMEOUT", 0.1)
            status, checks = await diagnosis(capsys, given)
        owner = owner_of(given.port)
    assert status == 1
    assert "Choose another with --port" in red(checks)["port"]
    if owner is not None:  # not every system tells it
        assert f"process {os.getpid()}, has it" in red(checks)["port"]


async def test_one_more_port_in_use_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        given = settings(tmp_path, port=0, also_port=taken.getsockname()[1:2], backend=RECORDED)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("proxy.cli.doctor.NEIGHBOUR_TIMEOUT", 0.1)
            status, checks = await diagnosis(capsys, given)
    assert status == 1
    assert "Choose another with --also-port" in red(checks)["port"]


@pytest.mark.parametrize("key", [None, "sk-of-another"])
async def test_a_model_server_that_wants_a_key_is_told_from_one_that_refuses_it(
    capsys: pytest.CaptureFixture[str], aiohttp_server: AiohttpServer, tmp_path: Path, key: str | None
) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "Incorrect API key."}}, status=401)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    changes: dict[str, Any] = {"backend": str((await aiohttp_server(app)).make_url("/v1"))}
    if key is not None:
        (tmp_path / "key").write_text(key)
        changes["backend_key_file"] = tmp_path / "key"
    status, checks = await diagnosis(capsys, settings(tmp_path, **changes))
    assert status == 1
    assert ("wants a key" if key is None else "refuses the key") in red(checks)["backend"]
    step = "Give it one with --backend-key-file." if key is None else "Put the right one into the file"
    assert checks["backend"]["next_step"].startswith(step)


def test_a_login_that_has_expired_is_made_anew() -> None:
    said = "Your access token could not be refreshed because you have since logged out. Please sign in again."
    failed = turn_failure({"message": said, "codexErrorInfo": "other"})
    assert isinstance(failed, BackendError)
    assert failed.code == "backend_auth"
    assert failed.remedy == f"run {command('login')}"
    assert as_sentence(failed.remedy).startswith("Run `")


async def test_a_model_that_the_backend_does_not_list_is_not_told_as_one_of_its(
    capsys: pytest.CaptureFixture[str], aiohttp_server: AiohttpServer, tmp_path: Path
) -> None:
    model = ScriptedChat()
    model.default = CALL
    server = await aiohttp_server(model.app)
    given = settings(tmp_path, backend=str(server.make_url("/v1")), model=("nope",))
    told = [finding async for finding in examine(given, turn=False) if finding.name == "models"]
    assert [finding.good for finding in told] == [True, None]
    assert "nope" not in told[0].said
    assert "--model names nope" in told[1].said


@pytest.mark.parametrize(
    ("changes", "next_step"),
    [
        ({"store": "redis://127.0.0.1:9"}, "Start it, or choose another --store"),
        ({"store": f"sqlite:{__file__}"}, "Move it away, or choose another --store."),
        ({"store": "nothing"}, "Use sqlite:PATH"),
        ({"backend": "nothing"}, "Use auto, codex, "),
        ({"call_key_secret": Path(os.devnull)}, "Delete it, and tagcall makes a new one"),
        ({"api_key_file": Path("/nowhere")}, "Name another file with --api-key-file."),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
async def test_what_is_to_be_done_is_the_next_step(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, changes: dict[str, Any], next_step: str
) -> None:
    given = settings(tmp_path, **{"backend": RECORDED, **changes})
    status, checks = await diagnosis(capsys, given)
    assert status == 1
    (step,) = (check["next_step"] for check in checks.values() if check["status"] == "failed")
    assert step.startswith(next_step)


async def test_an_upstream_that_wants_a_login_is_told_from_one_that_has_expired(
    capsys: pytest.CaptureFixture[str], model: ScriptedModel, codex: str, tmp_path: Path
) -> None:
    model.default = Refusal(401, {"message": "Provided authentication token is expired.", "code": "token_expired"})
    status, checks = await diagnosis(capsys, settings(tmp_path, codex=codex, upstream=model.url))
    assert status == 1
    assert "refused codex's login" in red(checks)["turn"]
    assert "Name an --upstream that needs no login" in red(checks)["turn"], "no login of ours would be sent to it"


async def test_a_wrong_model_shows_in_the_turn(
    capsys: pytest.CaptureFixture[str], model: ScriptedModel, codex: str, tmp_path: Path
) -> None:
    model.default = Refusal(404, {"message": "The model 'nope' does not exist.", "code": "model_not_found"})
    given = settings(tmp_path, codex=codex, upstream=model.url, model=("nope",))
    status, checks = await diagnosis(capsys, given)
    assert status == 1
    assert "nope" in red(checks)["turn"]
    assert "Name a model that the backend has with --model NAME" in red(checks)["turn"]


async def test_a_model_that_calls_nothing_is_told(
    capsys: pytest.CaptureFixture[str], model: ScriptedModel, codex: str, tmp_path: Path
) -> None:
    model.default = Reply([Message("Hello.")])
    status, checks = await diagnosis(capsys, settings(tmp_path, codex=codex, upstream=model.url))
    assert status == 1
    assert "another model with --model NAME" in red(checks)["turn"]


def run(*arguments: str, environment: dict[str, str], before: str = "") -> subprocess.CompletedProcess[str]:
    program = f"import sys\n{before}\nfrom proxy.cli import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("home", [{}, {"HOME": ""}])
def test_without_a_home_the_system_is_asked_for_one_and_else_it_is_said(home: dict[str, str]) -> None:
    others = {name: value for name, value in os.environ.items() if name not in {"HOME", "XDG_DATA_HOME"}}
    environment = others | home
    nobody = "import pwd\npwd.getpwuid = lambda uid: (_ for _ in ()).throw(KeyError(uid))"
    done = run("doctor", environment=environment, before=nobody)
    assert done.returncode == 2
    assert done.stderr == "tagcall: ~/.local/share needs your home folder, and there is none: set HOME.\n"


@pytest.mark.parametrize(
    "flags",
    [
        ["--backend", "replay:~no-such-user/x"],
        ["--store", "sqlite:~no-such-user/x"],
        ["--base-instructions", "~no-such-user/x"],
        ["--config", "~no-such-user/x"],
    ],
)
def test_a_home_of_nobody_is_told(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "0", *flags]) == 2
    assert capsys.readouterr().err.endswith("no user has the home ~no-such-user: write the whole path.\n")


def test_a_home_that_cannot_be_written_is_told_even_with_the_store_in_memory(tmp_path: Path, codex: str) -> None:
    (tmp_path / "home").touch()
    environment = {**child_environment(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    done = run("doctor", "--port", "0", "--codex", codex, "--store", "memory", environment=environment)
    assert done.returncode == 1
    assert "Name a folder of yours with --codex-home DIR." in done.stdout
    assert "--call-key-secret FILE" in done.stdout
    assert done.stderr == "", "no log lines in between"
    assert "Obsidian" not in done.stdout, "there is nothing to enter yet"
