"""From nothing to what is pasted: as `tagcall setup` says it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_aiohttp import AiohttpServer

from parser import write_call
from proxy.backends.codex import bundled_program
from proxy.cli.commands import build_parser
from proxy.cli.login import CODEX_LOGIN, advised
from proxy.cli.setup import _ask, _choose, typed
from proxy.plugins import PLUGINS, Plugin, lines_for
from proxy.settings import Settings
from tests.proxy.cli.test_commands import environment, run
from tests.support.codex_homes import informed_home
from tests.support.command import Command
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.support.scripted_chat import ScriptedChat
from tests.support.scripted_model import Message, Reply

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "howto" / "obsidian"


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.page)
def test_the_values_are_those_of_the_plugins_page(plugin: Plugin) -> None:
    page = (PAGES / plugin.page).read_text("utf-8")
    url = "http://127.0.0.1:8787/v1"
    lines = list(lines_for(plugin, url, "tagcall", "MODEL"))
    assert any(re.search(r"127\.0\.0\.1", line) for line in lines)
    for name in plugin.fields:
        row = re.search(
            rf"^\|(?: \*[^|]+\* \|)? \*?{re.escape(name)}\*? \| (.*) \|$|\*{re.escape(name)}\*", page, re.MULTILINE
        )
        assert row is not None, f"{name} is not on the page"
        value = plugin.fields[name].format(
            url=url, root=url[:-3], host="127.0.0.1", port=8787, path="/v1", key="tagcall", model=""
        )
        if row[1] and "a name from" not in row[1] and "{model}" not in plugin.fields[name]:
            assert value.replace(", for tools", "") in row[1].replace("*", "")


async def test_setup_goes_from_nothing_to_what_is_pasted(aiohttp_server: AiohttpServer, tagcall: Command) -> None:
    model = ScriptedChat()
    call = Reply([Message(write_call("read", '{"note": "welcome.md"}'))])
    answer = Reply([Message("It remembers for you.")])
    model.choose = lambda body: call if "read" in str(body["messages"]) and "vault of" not in str(body) else answer
    server = await aiohttp_server(model.app)
    port = free_port()
    words = ("setup", "--backend", str(server.make_url("/v1")), "--plugin", "chatgpt-md", "--port", str(port))
    done = await asyncio.to_thread(run, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "called a tool in" in done.stdout
    assert "It remembers for you." in done.stdout
    assert re.search(rf"API URL +http://127\.0\.0\.1:{port}\n", done.stdout)
    assert re.search(r"Tool-Enabled Models +add a line: gpt-5\.2\n", done.stdout)
    serve = f"serve --port {port} --backend {server.make_url('/v1')} --alias gpt-5.2=gpt-5.5`\n"
    assert serve in done.stdout, "with the flags of this, and a name that the plugin takes"
    assert done.stdout.index(serve) < done.stdout.index("API URL"), "the plugin tries what is entered"
    assert done.stderr == ""
    aliases = ("--alias", "notes=gpt-5.5", "--alias", "gpt-5.2=gpt-5.5")
    again = await asyncio.to_thread(tagcall, *words, *aliases)
    assert again.stdout.count("gpt-5.2=") == 1, "it has such a name already"


async def test_what_is_found_is_told_while_the_model_is_still_asked(aiohttp_server: AiohttpServer) -> None:
    model, gate = ScriptedChat(), asyncio.Event()
    model.default = Reply([Message("It is there.")], gate=gate)
    server = await aiohttp_server(model.app)
    words = ["-m", "proxy.cli", "setup", "--backend", str(server.make_url("/v1")), "--port", "0"]
    setup = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert setup.stdout is not None
    async with asyncio.timeout(PATIENCE):
        while b" models " not in await setup.stdout.readline():
            assert not setup.stdout.at_eof()
        gate.set()
        await setup.communicate()


async def test_a_server_that_lists_no_model_is_asked_nothing_before_one_is_named(
    aiohttp_server: AiohttpServer, tagcall: Command
) -> None:
    model = ScriptedChat()
    model.models = ()
    server = await aiohttp_server(model.app)
    done = await asyncio.to_thread(tagcall, "setup", "--backend", str(server.make_url("/v1")), "--port", "0")
    assert done.returncode == 1
    assert model.requests == []
    assert re.search(r"setup --port 0 --backend \S+ --model NAME`", done.stdout)


def test_what_was_typed_is_typed_again_without_its_keys() -> None:
    flags = ["--config", "none", "--api-key", "secret-key", "--alias", "a b=c", "--alias", "d=e", "--inspect"]
    given = vars(build_parser("setup").parse_args(["setup", *flags]))
    assert sorted(typed(given)) == sorted("KEY" if word == "secret-key" else word for word in flags)


def test_what_is_red_ends_it_with_its_next_step(tagcall: Command) -> None:
    done = tagcall("setup", "--backend", "http://127.0.0.1:9/v1", "--port", "0")
    assert done.returncode == 1
    assert "Start the model server" in done.stdout
    assert "Mend each line with `no`, then run" in done.stdout


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("Use `codex login --device-auth` instead.", "Use `tagcall login -- --device-auth` instead."),
        ("Run codex login again.", "Run `tagcall login` again."),
        ("Logged in.", "Logged in."),
    ],
)
def test_what_codex_advises_is_said_as_it_is_done_here(said: str, instead: str) -> None:
    assert CODEX_LOGIN.sub(advised, said) == instead


def test_make_has_a_target_for_each_that_is_advised() -> None:
    for target in ("login", "doctor", "setup", "serve", "demo"):
        done = subprocess.run(
            ["make", "--dry-run", "--silent", target], cwd=ROOT, capture_output=True, encoding="utf-8",
            timeout=PATIENCE, check=True, env=environment(),
        )  # fmt: skip
        assert f"tagcall {target}" in done.stdout


@pytest.mark.parametrize(
    ("stamp", "extras", "groups"),
    [
        ("demo", "demo", set()),
        ("codex", "codex", set()),
        ("dev", "codex,demo", {"dev"}),
        ("install", "", {"install"}),
        ("mutants", "codex,demo", {"dev", "mutants", "servers"}),
        ("servers", "codex", {"servers"}),
        ("model", "codex", {"model"}),
        ("site", "", {"site"}),
    ],
)
def test_make_installs_what_each_target_needs(stamp: str, extras: str, groups: set[str]) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--silent", "--always-make", f".venv/.{stamp}"], cwd=ROOT, capture_output=True,
        encoding="utf-8", timeout=PATIENCE, check=True, env=environment(),
    )  # fmt: skip
    assert set(re.findall(r"--editable (\S+?)[ ;]", done.stdout)) == {f"'.[{extras}]'" if extras else "."}
    assert set(re.findall(r"--group (\w+)", done.stdout)) == groups


def test_serve_says_that_codex_is_not_logged_in_before_and_with_ready(tmp_path: Path) -> None:
    codex = bundled_program()
    assert codex is not None, "openai-codex-cli-bin is not installed"
    home = informed_home(tmp_path / "home", codex)
    output = subprocess.run(
        [sys.executable, "-c", SERVE, "--codex-home", str(home), "--port", "0", "--log-level", "error"],
        cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
        timeout=PATIENCE, check=False,
    ).stdout  # fmt: skip
    said = [line for line in output.splitlines() if "not logged in" in line or "ready on" in line]
    assert [line.split()[0] for line in said] == ["tagcall:", "tagcall", "but"], output


# Waits for codex to have started, then is told to stop.
SERVE = """
import os, signal, sys
from proxy.cli import main, serve
serve.FIRST_LOOK = 240
told = serve.client_settings
def stop(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    return told(*arguments)
serve.client_settings = stop
sys.exit(main(["serve", *sys.argv[1:]]))
"""

# codex in all but its login, which fails as it does where there is no browser; it notes what it is asked.
HEADLESS = """#!/bin/sh
echo "$1 $2" >> '{asked}'
[ "$1" = login ] || exec '{codex}' "$@"
echo 'On a remote or headless machine? Use `codex login --device-auth` instead.' >&2
exit 7
"""


def test_a_missing_login_is_begun_and_what_it_advises_is_ours(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text(HEADLESS.format(codex=bundled_program(), asked=tmp_path / "asked"))
    program.chmod(0o755)
    done = run("setup", "--codex", str(program), "--codex-home", str(tmp_path / "home"), "--port", "0")
    assert done.returncode == 7, "codex's own exit status"
    assert "This is codex's own login" in done.stdout
    assert f"-m proxy.cli login --codex-home {tmp_path / 'home'} -- --device-auth` instead." in done.stdout
    assert "codex login" not in done.stdout
    assert "generate-json-schema" not in (tmp_path / "asked").read_text(), "nothing else is tried before the login"


def test_a_plugin_that_there_is_no_page_of_is_an_error_that_names_them(tagcall: Command) -> None:
    done = tagcall("setup", "--plugin", "copilt", "--backend", "http://127.0.0.1:9/v1")
    assert done.returncode == 2
    assert done.stderr.startswith("tagcall: --plugin must be one of copilot, chatgpt-md, ")
    assert done.stderr.endswith(", bmo, not 'copilt'.\n")
    assert done.stdout == ""


def test_at_a_terminal_a_number_is_asked_for_until_it_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = iter(["99", "copilot", "0", " 2 "])
    monkeypatch.setattr("builtins.input", lambda _: next(given))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert _choose(None) is PLUGINS[1]
    assert f"2  {PLUGINS[1].name}" in capsys.readouterr().out


def test_without_standard_input_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert _choose(None) is PLUGINS[-1]


def test_who_ends_the_question_is_given_what_any_client_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(_: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", ended)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert _choose(None) is PLUGINS[-1]
    assert capsys.readouterr().out.endswith("\n")


async def test_a_model_that_is_too_slow_is_told_in_one_sentence(
    aiohttp_server: AiohttpServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("proxy.cli.setup.PATIENCE", 0)
    server = await aiohttp_server(ScriptedChat().app)
    settings = Settings(backend=str(server.make_url("/v1")), call_key_secret=tmp_path / "key")
    assert await _ask(settings, "m") is False
    assert capsys.readouterr().err.endswith("try again, or another model with --model NAME.\n")


@pytest.mark.parametrize(("model", "advised"), [("gpt-6.1-sol", True), ("gpt-5.2", False), (None, True)])
def test_a_name_that_chatgpt_md_passes_over_is_told_with_one_that_it_does_not(model: str | None, advised: bool) -> None:
    (plugin,) = (plugin for plugin in PLUGINS if plugin.name == "ChatGPT MD")
    lines = list(lines_for(plugin, "http://127.0.0.1:8787/v1", "tagcall", model))
    assert any(f"--alias gpt-5.2={model or 'MODEL'}" in line for line in lines) is advised
