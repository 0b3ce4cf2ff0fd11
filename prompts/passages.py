"""The words in `templates/`, read once at import.

A `.txt` file is one passage; `lines.txt` holds the one-line texts, `name: text` each. Placeholders are
those of `string.Template`; `$open` and `$close` are always filled from the parser's grammar.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from string import Template

from parser import CLOSE_TAG, OPEN_TAG, write_call

FORM_NAME = "<tool name>"
FORM_ARGUMENTS = '{"<parameter>": <value>}'

_TEMPLATES = Path(__file__).with_name("templates")


def _passage(name: str) -> Template:
    return Template((_TEMPLATES / f"{name}.txt").read_text("utf-8").rstrip("\n"))


_PASSAGES = {
    name: _passage(name)
    for name in ("conversation", "tools", "form", "example", "key", "compaction", "summary", "json_answer")
}
_LINES = {
    name: Template(text) for name, _, text in (line.partition(": ") for line in _passage("lines").template.splitlines())
}


@lru_cache
def call_form(key: str | None) -> str:
    """The form of a call, with placeholders where the model writes its own words."""
    return write_call(FORM_NAME, FORM_ARGUMENTS, key=key)


def passage(name: str, /, **values: str) -> str:
    """The text of `templates/<name>.txt`. Values are put in as they are and not searched for placeholders."""
    return _PASSAGES[name].substitute(values, open=OPEN_TAG, close=CLOSE_TAG)


def line(name: str, /, form: str = "", **values: str) -> str:
    """The text of one line of `templates/lines.txt`, with `form` as the form of a call where it shows one."""
    return _LINES[name].substitute(values, open=OPEN_TAG, close=CLOSE_TAG, form=form)


def no_tools() -> str:
    """The line of a turn that may call none of the tools that the model sees."""
    return line("no_tools")


def already_offered(names: Sequence[str]) -> str:
    """The result of a search that has found what is on offer anyway."""
    return line("already_offered", names=", ".join(names))


def no_longer_offered(names: Sequence[str]) -> str:
    """Tools that a client has taken back."""
    return line("no_longer_offered", names=", ".join(names))


def nothing_said() -> str:
    """Stands where a conversation shows nothing: without any input some backends do not ask the model at all."""
    return line("no_message")


def no_result() -> str:
    """Stands where a past call has no result."""
    return line("no_result")
