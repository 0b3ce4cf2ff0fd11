"""The commands as a table: what each takes, and how it runs. A command's own modules are loaded when it runs."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..advice import command as advised
from .command_line import CommandLine, one_of

if TYPE_CHECKING:
    from ..sources import Sources

SERVICE_ACTIONS = ("install", "status", "remove")

# What was typed, by name.
Arguments = Mapping[str, Any]


# Objects that may hold others, made and not yet looked at: each delta makes a few, and nearly all of them go without
# help. Python looks after 700 of them, which takes 4 to 10 % of the CPU that pieces of text take.
LOOKED_AT_TOGETHER = 10_000


@contextmanager
def loading() -> Iterator[None]:
    """For the imports of a command that runs for long, each of which brings what only it needs.

    What they make is not searched for garbage: it stays, and a tenth of a start went into that. What comes later is
    searched seldom.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
        gc.set_threshold(LOOKED_AT_TOGETHER)
    finally:
        gc.enable()


def _no_flags(parser: argparse.ArgumentParser) -> None:
    pass


class Command(Struct, frozen=True):
    """One row. `settings`: whose flags it has in the table of settings; `flags` adds those besides, and operands.

    `operands` stand behind the flags in its usage, `usage` in place of all that. `says_all`: it says itself what
    others would log.
    """

    help: str
    description: str
    run: Callable[[Sources, Arguments], int]
    settings: str | None = None
    flags: Callable[[argparse.ArgumentParser], None] = _no_flags
    operands: str = ""
    usage: str | None = None
    says_all: bool = False


def _serve(sources: Sources, _: Arguments) -> int:
    with loading():
        from .event_loop import run_server
        from .serve import run_serve
    return run_server(run_serve(sources))


def _login_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("codex_arguments", nargs="*", default=[], metavar="ARGUMENT", help="for `codex login`")


def _login(sources: Sources, arguments: Arguments) -> int:
    from .login import run_login

    return run_login(sources.settings, arguments["codex_arguments"])


def _doctor_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-turn", action="store_true", help="do not ask the model, which may cost")
    parser.add_argument("--forget", metavar="MODEL", help="forget whether MODEL writes the call key, then stop")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")


def _doctor(sources: Sources, arguments: Arguments) -> int:
    from .doctor import forget_model, run_doctor

    if arguments["forget"] is not None:
        return forget_model(sources.settings, arguments["forget"])
    return asyncio.run(run_doctor(sources.settings, turn=not arguments["no_turn"], as_json=arguments["json"]))


def _setup_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin", metavar="NAME", help="the plugin whose values to show, such as `copilot`; otherwise setup asks you"
    )


def _setup(sources: Sources, arguments: Arguments) -> int:
    from .setup import run_setup

    return run_setup(sources.settings, arguments)


def _settings(sources: Sources, _: Arguments) -> int:
    from .settings import run_settings

    return run_settings(sources)


def _record_flags(parser: argparse.ArgumentParser) -> None:
    from .record.options import add_record_flags

    add_record_flags(parser)


def _record(sources: Sources, arguments: Arguments) -> int:
    with loading():
        from .event_loop import run_server
        from .record import run_record
        from .record.options import record_options
    return run_server(run_record(sources.settings, record_options(arguments)))


def _replay_flags(parser: argparse.ArgumentParser) -> None:
    from .replay import add_replay_flags

    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="a folder of fixtures, or one fixture")
    add_replay_flags(parser)


def _replay(_: Sources, arguments: Arguments) -> int:
    from .replay import replay_options, run_replay

    return asyncio.run(run_replay(arguments["folder"], replay_options(arguments)))


def _demo(_: Sources, __: Arguments) -> int:
    from .demo import run_demo  # needs the `demo` extra

    return asyncio.run(run_demo())


def _log_flags(parser: argparse.ArgumentParser) -> None:
    from .log import add_log_flags

    add_log_flags(parser)


def _log(sources: Sources, arguments: Arguments) -> int:
    from .log import log_options, run_log

    return asyncio.run(run_log(sources.settings, log_options(arguments)))


def _service_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", metavar="|".join(SERVICE_ACTIONS), type=one_of(SERVICE_ACTIONS))
    parser.add_argument("--start", action="store_true", help="with install: start it at once")
    parser.add_argument("serve_flags", nargs="*", default=[], metavar="FLAG", help="for `tagcall serve`")


def _service(sources: Sources, arguments: Arguments) -> int:
    from .service import run_service

    return run_service(arguments["action"], arguments["serve_flags"], sources, start=arguments["start"])


def _eval_flags(parser: argparse.ArgumentParser) -> None:
    from .eval import add_eval_flags

    add_eval_flags(parser)


def _eval(sources: Sources, arguments: Arguments) -> int:
    from .eval import eval_options, run_eval

    # A time limit ends it as ctrl-C does, with what there is so far.
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return asyncio.run(run_eval(sources.settings, eval_options(arguments)))
    finally:
        signal.signal(signal.SIGTERM, before)


COMMANDS: Mapping[str, Command] = {
    "serve": Command("start the server", "Start the server.", _serve, settings="serve"),
    "login": Command(
        "log in with codex's own login",
        "Log in with codex's own login, into tagcall's private CODEX_HOME. Arguments behind `--` go to codex, for "
        "instance `tagcall login -- --device-auth`.",
        _login, settings="login", flags=_login_flags, operands=" [-- ARGUMENT ...]",
    ),
    "doctor": Command(
        "find out what works and what does not",
        "Try everything that `serve` needs, then one turn with one tool call. Takes the flags of `serve`.",
        _doctor, settings="doctor", flags=_doctor_flags, says_all=True,
    ),
    "setup": Command(
        "log in, try everything, and show what to enter in a plugin",
        "Log in, try everything, ask a first question, and show what to enter in a plugin. "
        "Takes the flags of `serve`.",
        _setup, settings="serve", flags=_setup_flags, says_all=True,
    ),
    "settings": Command(
        "show the settings in force",
        "Print each setting and where it comes from. Takes the flags of `serve`.",
        _settings, settings="serve",
    ),
    "record": Command(
        "serve, and write each turn as a fixture",
        "Start the server like `serve`, and write each turn into DIR as a fixture. `tagcall replay` runs them.",
        _record, settings="serve", flags=_record_flags, operands=" DIR",
    ),
    "replay": Command(
        "run fixtures and compare",
        "Run the fixtures in DIR through the whole proxy, and show where an answer differs from the recorded one.",
        _replay, flags=_replay_flags, usage="%(prog)s [FLAG ...] DIR",
    ),
    "demo": Command("show one whole tool loop", "Run one whole tool loop on a sample vault, without a login.", _demo),
    "log": Command(
        "follow the turns of a running server",
        "Print a line for each turn of the server on --host and --port. Turns that it remembers come first.",
        _log, settings="log", flags=_log_flags,
    ),
    "service": Command(
        "start the server after each login",
        "Have the system run `tagcall serve` after each login. Flags of `serve` stand behind `--`, for "
        "instance `tagcall service install --start -- --port 8788`.",
        _service, flags=_service_flags, usage="%(prog)s install|status|remove [--start] [-- FLAG ...]",
    ),
    "eval": Command(
        "measure how well a model calls tools",
        "Ask the backend's model questions that need tools, and show the results as a table.",
        _eval, settings="eval", flags=_eval_flags,
    ),
}  # fmt: skip


def first_day() -> str:
    """What `tagcall` alone shows."""
    return f"""\
tagcall gives real OpenAI tool calling to models that only speak text.

  tagcall demo             see one whole tool loop, without a login or a model
  tagcall setup            log in, try everything, and see what to enter in your client
  tagcall serve            start the server
  tagcall doctor           find out what does not work, and what to do about it
  tagcall service install  start the server after each login

{advised("--help")} lists all commands, {advised("serve --help")} all settings."""


class _ShowVersion(argparse.Action):
    """As argparse's own, which wants the version for every other command as well."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from ..version import own_version

        print(f"tagcall {own_version()}")
        parser.exit()


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands. `only`: one of them, when the flags of no other are wanted.

    Settings bring the tables with them whose names they offer, and these the server: too much for `--version`.
    """
    parser = CommandLine(
        prog="tagcall",
        description="Real OpenAI tool calling for LLM backends that only speak text.",
        epilog="Begin with `tagcall setup`. `tagcall COMMAND --help` lists the flags of a command.",
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and exit")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        row = parsers.add_parser(name, help=command.help, description=command.description, usage=command.usage)
        if only not in {None, name}:
            continue
        command.flags(row)
        if command.settings is not None:
            from ..settings import add_flags

            add_flags(row, command.settings)
            # The flags are too many for a line of usage.
            row.usage = f"%(prog)s [FLAG ...]{command.operands}"
    return parser
