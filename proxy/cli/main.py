"""`tagcall`: pick the command, load its settings, run it."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..logs import configure, tell, tell_as
from .command_line import CommandLine, check_beginning, wants_json

if TYPE_CHECKING:
    from ..settings import Settings
    from ..sources import Sources

# Exit status of a command that a person has to call differently.
USAGE = 2

# Exit status of a command whose output nobody reads any more, as a shell tells it of SIGPIPE.
SEEN_ENOUGH = 141

# Command -> whose flags it has in the table of settings.
SETTINGS_OF = {
    "serve": "serve",
    "login": "login",
    "doctor": "doctor",
    "setup": "serve",
    "record": "serve",
    "eval": "eval",
    "log": "log",
    "settings": "serve",
}

# What stands behind the flags, which are too many for a line of usage.
OPERANDS = {"login": " [-- ARGUMENT ...]", "record": " DIR"}

SERVICE_ACTIONS = ("install", "status", "remove")


class _ShowVersion(argparse.Action):
    """As argparse's own, which wants the version for every other command as well."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib import metadata

        try:
            version = metadata.version("tagcall")
        except metadata.PackageNotFoundError:  # a checkout that is not installed
            version = "(not installed)"
        print(f"tagcall {version}")
        parser.exit()


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands. `only`: one of them, when the flags of no other are wanted.

    Settings bring the tables with them whose names they offer, and these the server: too much for `--version`.
    """
    parser = CommandLine(
        prog="tagcall",
        description="Real OpenAI tool calling for LLM backends that only speak text.",
        epilog="Begin with `tagcall setup`. `tagcall COMMAND --help` tells what each takes.",
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("serve", help="start the server", description="Start the server.")
    login = commands.add_parser(
        "login",
        help="log in, by codex's own login",
        description="Log tagcall's private CODEX_HOME in, by codex's own login. What follows `--` is passed to it, "
        "for instance `tagcall login -- --device-auth`.",
    )
    login.add_argument("codex_arguments", nargs="*", default=[], metavar="ARGUMENT", help="for `codex login`")
    doctor = commands.add_parser(
        "doctor",
        help="say what works and what does not",
        description="Try everything that `serve` needs, with its flags, and one turn with one tool call.",
    )
    doctor.add_argument("--no-turn", action="store_true", help="ask the model nothing, which may cost")
    doctor.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    setup = commands.add_parser(
        "setup",
        help="log in, look whether all is there, and say what to enter in a plugin",
        description="From nothing to a first answer, with the flags of `serve`.",
    )
    setup.add_argument("--plugin", metavar="NAME", help="the page of docs/howto/obsidian, as `copilot`; else it asks")
    commands.add_parser(
        "settings",
        help="say which settings are in force",
        description="Print each setting, and where it came from; the flags are those of `serve`.",
    )
    record = commands.add_parser(
        "record",
        help="serve, and write each turn as a fixture",
        description="Start the server as `serve` does, and write each turn into DIR as a fixture that `replay` runs.",
    )
    if only in {None, "record"}:
        from .record.options import add_record_flags

        add_record_flags(record)
    replay = commands.add_parser(
        "replay",
        help="run fixtures and compare",
        description="Run the fixtures in DIR through the whole proxy and show where an answer is not as promised.",
    )
    replay.add_argument("folder", type=Path, metavar="DIR", help="a folder of fixtures, or one fixture")
    if only in {None, "replay"}:
        from .replay import add_replay_flags

        add_replay_flags(replay)
    commands.add_parser(
        "demo", help="show one whole tool loop", description="One whole tool loop on a sample vault, without a login."
    )
    follow = commands.add_parser(
        "log",
        help="follow the turns of a running server",
        description="Print a line for each turn of the server on --host and --port, those that it still knows first.",
    )
    if only in {None, "log"}:
        from .log import add_log_flags

        add_log_flags(follow)
    service = commands.add_parser(
        "service",
        help="run by itself, after each login",
        description="Have the system run `tagcall serve` after each login. What follows `--` are the flags of `serve`, "
        "for instance `tagcall service install --start -- --port 8788`.",
        usage="%(prog)s install|status|remove [--start] [-- FLAG ...]",
    )
    service.add_argument("action", metavar="|".join(SERVICE_ACTIONS), choices=SERVICE_ACTIONS)
    service.add_argument("--start", action="store_true", help="with install: put it in force at once")
    service.add_argument("serve_flags", nargs="*", default=[], metavar="FLAG", help="for `tagcall serve`")
    evaluation = commands.add_parser(
        "eval",
        help="say whether a model calls tools rightly",
        description="Ask the backend's model questions that need tools, and show what came of it as a table.",
    )
    if only in {None, "eval"}:
        from .eval import add_eval_flags

        add_eval_flags(evaluation)
    for command, table in SETTINGS_OF.items():
        if only in {None, command}:
            from ..settings import add_flags

            add_flags(commands.choices[command], table)
            commands.choices[command].usage = f"%(prog)s [FLAG ...]{OPERANDS.get(command, '')}"
    return parser


@contextmanager
def loading() -> Iterator[None]:
    """For the imports of a command that runs for long, each of which brings what only it needs.

    What they make is not searched for garbage: it stays, and a tenth of a start went into that.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def _configured(command: str, arguments: Mapping[str, Any], *, as_json: bool) -> Sources:
    """The settings, with the log as they want it. `as_json`: what is told to a person as well."""
    with loading():
        from ..sources import config_file, gather
    # A command without flags of the table has nothing to be configured but its log.
    sources = gather(arguments, os.environ, config_file(arguments["config"]) if "config" in arguments else None)
    settings = sources.settings
    # What these have to say they say themselves.
    quiet = command in {"doctor", "setup"} and settings.log_level != "debug"
    configure("none" if quiet else settings.log_level, settings.log_format)
    if as_json:
        tell_as("json")
    for warning in sources.warnings:
        tell(f"tagcall: {warning}")
    return sources


def _parse(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The command, and what it was given. Raises `UsageError`."""
    check_beginning(words)
    with loading():
        parser = build_parser(only=words[0])
    arguments = vars(parser.parse_args(words))
    command = arguments.pop("command")
    if command == "service":  # what the service could not be started with is told now
        arguments |= vars(build_parser("serve").parse_args(["serve", *arguments["serve_flags"]]))
    return command, arguments


async def _without_backend(command: str, settings: Settings, arguments: Mapping[str, Any]) -> int:
    """What asks no backend of the user's."""
    match command:
        case "log":
            from .log import log_options, run_log

            return await run_log(settings, log_options(arguments))
        case "replay":
            from .replay import replay_options, run_replay

            return await run_replay(arguments["folder"], replay_options(arguments))
        case _:
            from .demo import run_demo  # needs the `demo` extra

            return await run_demo()


def _print_any_character() -> None:
    """Not every locale has those of a note or an answer: they are printed as numbers then, as on standard error."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    _print_any_character()
    as_json = wants_json(words, os.environ)
    tell_as("json" if as_json else "console")
    try:
        command, arguments = _parse(words)
        codex_arguments = arguments.pop("codex_arguments", [])
        serve_flags = arguments.pop("serve_flags", [])
        sources = _configured(command, arguments, as_json=as_json)
        settings = sources.settings
        match command:
            case "serve":
                with loading():
                    from .serve import run_serve
                return asyncio.run(run_serve(settings))
            case "login":
                from .login import run_login

                return run_login(settings, codex_arguments)
            case "doctor":
                from .doctor import run_doctor

                return asyncio.run(run_doctor(settings, turn=not arguments["no_turn"], as_json=arguments["json"]))
            case "setup":
                from .setup import run_setup

                return run_setup(settings, arguments)
            case "settings":
                from .settings import run_settings

                return run_settings(sources)
            case "service":
                from .service import run_service

                return run_service(arguments["action"], serve_flags, settings, start=arguments["start"])
            case "record":
                with loading():
                    from .record import run_record
                    from .record.options import record_options
                return asyncio.run(run_record(settings, record_options(arguments)))
            case "eval":
                from .eval import eval_options, run_eval

                return asyncio.run(run_eval(settings, eval_options(arguments)))
            case _:
                return asyncio.run(_without_backend(command, settings, arguments))
    except UsageError as error:
        tell(f"tagcall: {error}", logging.ERROR)
        return USAGE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # who reads has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in its buffer would say it again
        return SEEN_ENOUGH
