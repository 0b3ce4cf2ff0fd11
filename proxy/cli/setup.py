"""`tagcall setup`: from nothing to the values that are pasted into a plugin."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from parser import ToolRegistry
from prompts import Text, ToolChoice, Transcript, UserTurn

from ..advice import command
from ..backends import Finding, find_kind
from ..backends.codex import not_logged_in
from ..contracts import AnswerText, TextBackend, TurnFailed, TurnRequest
from ..errors import UsageError
from ..plugins import GOOD_NAME, PLUGINS, Plugin, lines_for, named_plugins
from ..server import base_url, turn_options
from ..settings import SETTINGS, Settings
from ..trial import PATIENCE, TOO_LATE
from ..turn import TurnReport, run_turn
from .doctor import examine, is_well, red, show
from .login import run_login
from .obsidian import NO_ADDRESS, from_elsewhere
from .settings import SECRET

QUESTION = "Say in one short sentence what a vault of notes is good for."


def run_setup(settings: Settings, arguments: Mapping[str, Any]) -> int:
    """Logs in where that is missing, looks whether all is there, asks one question, says what to enter.

    `arguments` are what was typed, by name: what is to be typed next is advised with the same flags.
    """
    flags = typed(arguments)
    name = arguments["plugin"]
    chosen = None if name is None else _choose(name)  # what is no plugin is told before anything else
    findings = asyncio.run(_look(settings, until=red("backend", not_logged_in())))
    if findings is None:
        if status := run_login(settings, []):
            return status
        findings = asyncio.run(_look(settings)) or []
    if not is_well(findings):
        print(f"\nMend each line with `no`, then run {_command('setup', flags)} again.")
        return 1
    listed = [name for each in findings if each.name == "models" and each.good for name in each.said.split(", ")]
    models = [*settings.model, *(name for name in listed if name not in settings.model)]
    if find_kind(settings.backend).has_model:
        if not models:
            print(f"\nRun {_command('setup', [*flags, '--model', 'NAME'])} with the name of a model.")
            return 1
        if not asyncio.run(_ask(settings, models[0])):
            return 1
    url = base_url(settings.host, settings.port, settings.base_path)
    keyed = settings.api_key or settings.api_key_file
    key = "the key that tagcall is started with" if keyed else "tagcall"
    plugin = chosen or _choose(None)
    names = [*(name for name, _ in settings.alias), *models]  # as a plugin sees them
    model = next((name for name in names if plugin.lacks(name) is None), None)
    lacking = None
    if model is None and models:
        lacking, model = plugin.lacks(models[0]), GOOD_NAME
        flags += ["--alias", f"{GOOD_NAME}={models[0]}"]
    # Before the fields: plugins try the address as soon as it is entered.
    print(f"\nStart the server, and leave it running: {_command('serve', flags)}\n")
    if settings.port == 0:
        print(NO_ADDRESS)
        return 0
    print("\n".join(lines_for(plugin, url, key, model)))
    if lacking is not None:
        print(f"{models[0]} is called {GOOD_NAME} there, because under its own name {plugin.name} {lacking}.")
    if (told := from_elsewhere(url, settings)) is not None:
        print(told)
    return 0


def _command(name: str, flags: Sequence[str]) -> str:
    return command(subprocess.list2cmdline([name, *flags]))


def typed(arguments: Mapping[str, Any]) -> list[str]:
    """The flags of `serve` among `arguments`, as words. Keys are not shown."""
    words = ["--config", arguments["config"]] if arguments["config"] else []
    for row in SETTINGS:
        match arguments[row.name]:
            case None:
                continue
            case _ if row.is_switch:
                words.append(row.flag)
            case given:
                values = [given] if isinstance(given, str) else given
                words += [word for value in values for word in (row.flag, "KEY" if row.name in SECRET else value)]
    return words


async def _look(settings: Settings, *, until: Finding | None = None) -> list[Finding] | None:
    """What is found, each shown as it is found once the backend has said how it is; None as soon as it says what
    `until` has, and nothing shown.
    """
    found: list[Finding] = []
    shown = 0
    async with aclosing(examine(settings)) as findings:
        async for finding in findings:
            if finding == until:
                return None
            found.append(finding)
            if any(each.name == "backend" for each in found):
                for each in found[shown:]:
                    show(each)
                shown = len(found)
    for each in found[shown:]:
        show(each)
    return found


async def _ask(settings: Settings, model: str) -> bool:
    """Shows the answer to a question while it is written; whether there was one."""
    print(f"\nA question to {model}: {QUESTION}")
    try:
        async with find_kind(settings.backend).make(settings) as backend, asyncio.timeout(PATIENCE):
            return await _answer(backend, settings, model)
    except TimeoutError:
        print(f"\ntagcall: {model} gave {TOO_LATE}: try again, or another model with --model NAME.", file=sys.stderr)
        return False


async def _answer(backend: TextBackend, settings: Settings, model: str) -> bool:
    request = TurnRequest(model, Transcript((UserTurn((Text(QUESTION),)),)), ToolRegistry(), ToolChoice())
    async with aclosing(run_turn(request, backend, turn_options(settings), TurnReport())) as batches:
        async for events in batches:
            for event in events:
                match event:
                    case AnswerText(text=text):
                        print(text, end="", flush=True)
                    case TurnFailed(error):
                        print(f"tagcall: {error.message}", file=sys.stderr)
                        return False
                    case _:
                        pass
    print()
    return True


def _choose(name: str | None) -> Plugin:
    """By its page; asked for by number at a terminal, else the values for any client. Raises `UsageError`."""
    if name is not None:
        named = named_plugins()
        if name not in named:
            raise UsageError(f"--plugin must be one of {', '.join(named)}, not '{name}'.")
        return named[name]
    if sys.stdin is None or not sys.stdin.isatty():
        return PLUGINS[-1]
    print("\nWhich plugin shall use it?")
    for number, plugin in enumerate(PLUGINS, 1):
        print(f"  {number}  {plugin.name}")
    while True:
        try:
            chosen = input("Number: ").strip()
        except EOFError:  # Ctrl+D: none of them
            print()
            return PLUGINS[-1]
        if chosen in map(str, range(1, len(PLUGINS) + 1)):
            return PLUGINS[int(chosen) - 1]
