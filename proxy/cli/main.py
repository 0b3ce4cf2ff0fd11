"""`tagcall`: pick the command, load its settings, run it."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..logs import configure, discard_output, tell, tell_as
from .command_line import check_beginning, wants_json
from .commands import COMMANDS, build_parser, first_day, loading

if TYPE_CHECKING:
    from ..sources import Sources

# Exit status of a command that a person has to call differently.
USAGE = 2

# Exit status of a command whose output nobody reads any more, as a shell tells it of SIGPIPE.
SEEN_ENOUGH = 141

# Exit status of a command for whose output there is no room.
FULL = 1


def _configured(command: str, arguments: Mapping[str, Any], *, as_json: bool) -> Sources:
    """The settings, with the log as they want it. `as_json`: what is told to a person as well."""
    with loading():
        from ..sources import config_file, gather
    # A command without flags of the table has nothing to be configured but its log.
    sources = gather(arguments, os.environ, config_file(arguments["config"]) if "config" in arguments else None)
    settings = sources.settings
    quiet = COMMANDS[command].says_all and settings.log_level != "debug"
    configure("none" if quiet else settings.log_level, settings.log_format)
    if as_json:
        tell_as("json")
    for warning in sources.warnings:
        tell(f"tagcall: {warning}")
    return sources


def _parse(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The command, and what it was given. Raises `UsageError`."""
    check_beginning(words, COMMANDS)
    with loading():
        parser = build_parser(only=words[0])
    arguments = vars(parser.parse_args(words))
    command = arguments.pop("command")
    if command == "service":  # what the service could not be started with is told now
        arguments |= vars(build_parser("serve").parse_args(["serve", *arguments["serve_flags"]]))
    return command, arguments


def _print_any_character() -> None:
    """Not every locale has those of a note or an answer: they are printed as numbers then, as on standard error."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    try:
        try:
            return _run(sys.argv[1:] if argv is None else argv)
        finally:
            if sys.stdout is not None:  # as it is behind `>&-`
                sys.stdout.flush()  # what nobody takes is found out now, not by the interpreter as it ends
    except BrokenPipeError:  # who reads has seen enough, as `head` has
        discard_output()
        return SEEN_ENOUGH
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        discard_output()
        tell(f"tagcall: {error.strerror}.", logging.ERROR)
        return FULL


def _run(words: Sequence[str]) -> int:
    if os.environ.get("HOME") == "":  # would be `/`; without one, the system is asked
        del os.environ["HOME"]
    _print_any_character()
    as_json = wants_json(words, os.environ)
    tell_as("json" if as_json else "console")
    if not words:
        print(first_day())
        return USAGE
    try:
        command, arguments = _parse(words)
        return COMMANDS[command].run(_configured(command, arguments, as_json=as_json), arguments)
    except UsageError as error:
        tell(f"tagcall: {error}", logging.ERROR)
        return USAGE
    except KeyboardInterrupt:
        return 130
