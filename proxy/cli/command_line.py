"""What a person typed, read by argparse; what is wrong with it is one sentence, as every other error is."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, NoReturn

from ..advice import command
from ..errors import UsageError

# Commands whose `--json` is for all that they print; that of the others names a file.
PRINT_JSON = ("doctor", "log")

_LOG_FORMAT = "--log-format"
# argparse's words for what else is wrong -> ours.
_WORDS = (
    (r"argument (.*?): expected (?:at least )?one argument", r"\1 needs a value"),
    (r"argument (.*?): ignored explicit argument .*", r"\1 takes no value"),
    (r"argument (.*?): (.*)", r"\1: \2"),
    (r"the following arguments are required: (.*)", r"\1 is missing"),
    (r"ambiguous option: (.*) could match (.*)", r"\1 may be any of \2"),
)


class CommandLine(argparse.ArgumentParser):
    """Raises `UsageError` for whatever is wrong; `add_subparsers` makes more of its kind."""

    def error(self, message: str) -> NoReturn:
        _, choice, told = message.partition(": invalid choice: '")
        if choice:
            typed, _, choices = told.rpartition("' (choose from ")
            known = re.findall(r"[\w-]+", choices)
            near = _near(typed, known)
            raise UsageError(f"'{typed}' is " + (f"unknown{near}" if near else f"none of {', '.join(known)}."))
        for pattern, words in _WORDS:
            if match := re.fullmatch(pattern, message, re.DOTALL):
                message = match.expand(words)
                break
        raise UsageError(f"{message}: {self._help} tells what it takes.")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # noqa: ANN401 -- as argparse
        parsed, strange = super().parse_known_args(args, namespace)
        if strange:
            name = strange[0].partition("=")[0]
            near = _near(name, self._option_string_actions) if name.startswith("-") else ""
            raise UsageError(f"`{self.prog}` takes no {name}{near or f': see {self._help}.'}")
        return parsed, strange

    @property
    def _help(self) -> str:
        return command(f"{self.prog} --help".partition(" ")[2])


def _near(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, known, n=1, cutoff=0.75)
    return f": did you mean {near[0]}?" if near else ""


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 on")
    return int(text)


def check_beginning(words: Sequence[str]) -> None:
    """Raises `UsageError` where the command is missing, or a flag stands before it."""
    if not words or (words[0].startswith("-") and words[0] not in {"-h", "--help", "--version"}):
        raise UsageError(f"Begin with a command, as in {command('serve')}: {command('--help')} names all.")


def wants_json(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether errors are to be JSON, as far as it can be seen before `words` are understood."""
    form = environment.get("TAGCALL_LOG_FORMAT")
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if _LOG_FORMAT.startswith(name) and len(name) > len("--log-"):
            form = value if equals else following
    return form == "json" or ("--json" in words and words[0] in PRINT_JSON)
