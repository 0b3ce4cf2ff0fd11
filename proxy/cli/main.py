"""`tagcall`: pick the command, load its settings, run it."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from ..errors import UsageError
from ..logs import configure
from ..settings import add_flags, load
from .doctor import run_doctor
from .login import run_login
from .serve import run_serve

# Exit status of a command that a person has to call differently.
USAGE = 2


def _version() -> str:
    try:
        return metadata.version("tagcall")
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return "(not installed)"


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tagcall", description="Real OpenAI tool calling for LLM backends that only speak text."
    )
    parser.add_argument("--version", action="version", version=f"tagcall {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    serve = commands.add_parser("serve", help="start the server", description="Start the server.")
    add_flags(serve, "serve")
    login = commands.add_parser(
        "login",
        help="log in, by codex's own login",
        description="Log tagcall's private CODEX_HOME in, by codex's own login. What follows `--` is passed to it, "
        "for instance `tagcall login -- --device-auth`.",
    )
    add_flags(login, "login")
    login.add_argument("codex_arguments", nargs="*", metavar="ARGUMENT", help="for `codex login`")
    doctor = commands.add_parser(
        "doctor", help="say what works and what does not", description="Check everything that `serve` needs."
    )
    add_flags(doctor, "doctor")
    commands.add_parser(
        "demo", help="show one whole tool loop", description="One whole tool loop on a sample vault, without a login."
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    arguments = vars(build_parser().parse_args(argv))
    command = arguments.pop("command")
    codex_arguments = arguments.pop("codex_arguments", [])
    try:
        settings = load(arguments, os.environ)
        configure(settings.log_level, settings.log_format)
        match command:
            case "serve":
                return asyncio.run(run_serve(settings))
            case "login":
                return run_login(settings, codex_arguments)
            case "doctor":
                return asyncio.run(run_doctor(settings))
            case _:
                from .demo import run_demo  # noqa: PLC0415  # needs the `demo` extra

                return asyncio.run(run_demo())
    except UsageError as error:
        print(f"tagcall: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return 130
