"""The command line, read by argparse. A mistake in it is one sentence, like every other error."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

from ..advice import command
from ..errors import UsageError
from ..near_names import near_name

# Commands whose `--json` is for all that they print; that of the others names a file.
PRINT_JSON = ("doctor", "log")


class CommandLine(argparse.ArgumentParser):
    """Raises `UsageError` for whatever is wrong; `add_subparsers` makes more of its kind.

    The sentences come from what argparse tells by types and fields. Its words differ between versions of Python.
    An operand without a default has to be there.
    """

    def __init__(self, **named: Any) -> None:  # noqa: ANN401 -- as argparse
        # A flag has one name: a shortened one would become ambiguous with the next version's flags.
        super().__init__(exit_on_error=False, allow_abbrev=False, **named)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}: {self._help} lists what it takes.")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # noqa: ANN401 -- as argparse
        behind: list[str] = []
        last = next((action for action in self._actions if action.nargs == argparse.ZERO_OR_MORE), None)
        if last is not None and "--" in args:  # argparse gives it nothing of these when a flag stands in front of `--`
            at = args.index("--")
            args, behind = args[:at], args[at + 1 :]
        try:
            parsed, strange = super().parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            self.error(self._fault(error))
        needed = [action for action in self._actions if action.nargs == argparse.OPTIONAL]
        missing = [action.metavar for action in needed if getattr(parsed, action.dest) is None]
        if strange:
            name = strange[0].partition("=")[0]
            near = _near(name, self._option_string_actions) if name.startswith("-") else ""
            step = f"see {self._help}" if last is None or missing else f"write {self._with_dashes(args, behind)}"
            raise UsageError(f"`{self.prog}` takes no {name}{near or f': {step}.'}")
        if missing:
            self.error(f"{missing[0]} is missing")
        if last is not None:
            setattr(parsed, last.dest, [*getattr(parsed, last.dest), *behind])
        return parsed, strange

    def _fault(self, error: argparse.ArgumentError) -> str:
        name = str(error.argument_name).partition("/")[0]
        if isinstance(error.__context__, argparse.ArgumentTypeError):  # whose words are ours
            return f"{name}: {error.__context__}"
        action = self._option_string_actions.get(name)
        if action is None:
            return str(error)
        return f"{name} takes no value" if action.nargs == 0 else f"{name} needs a value"

    def _with_dashes(self, words: Iterable[str], behind: Sequence[str]) -> str:
        """The line as it was meant: from the first flag on that is none of ours, all others stand behind `--`."""
        own: list[str] = []
        others: list[str] = []
        rest = iter(words)
        for word in rest:
            name, equals, _ = word.partition("=")
            if (action := self._option_string_actions.get(name)) is not None:
                own += [word] if equals or action.nargs == 0 else [word, next(rest, "")]
            else:
                (others if others or name.startswith("-") else own).append(word)
        return self._line([*own, "--", *others, *behind])

    @property
    def _help(self) -> str:
        return self._line(["--help"])

    def _line(self, words: Sequence[str]) -> str:
        return command(f"{self.prog} {subprocess.list2cmdline(words)}".partition(" ")[2])


def _near(word: str, known: Iterable[str]) -> str:
    near = near_name(word, known, 0.75)
    return f": did you mean {near}?" if near else ""


def one_of(words: Iterable[str]) -> Callable[[str], str]:
    """A type for argparse: one of `words`. Raises `UsageError`, with the nearest of them."""
    known = tuple(words)

    def check(typed: str) -> str:
        if typed in known:
            return typed
        # Who means the opposite puts something in front: `uninstall` is no `install`.
        near = _near(typed, [word for word in known if word[0] == typed[:1]])
        raise UsageError(f"'{typed}' is " + (f"unknown{near}" if near else f"not one of {', '.join(known)}."))

    return check


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of 1 or more")
    return int(text)


def check_beginning(words: Sequence[str], commands: Iterable[str]) -> None:
    """Raises `UsageError` unless `words` begin with a command, or ask for help or the version."""
    if words[0] in {"-h", "--help", "--version"}:
        return
    if words[0].startswith("-"):
        raise UsageError(f"Begin with a command, as in {command('serve')}: {command('--help')} lists all commands.")
    one_of(commands)(words[0])


def wants_json(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether errors are to be JSON, as far as it can be seen before `words` are understood."""
    form = environment.get("TAGCALL_LOG_FORMAT")
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name == "--log-format":
            form = value if equals else following
    return form == "json" or ("--json" in words and words[0] in PRINT_JSON)
