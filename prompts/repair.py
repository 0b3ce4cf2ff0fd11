"""The one line that a second attempt at an answer is given.

The failed answer is left out of that attempt, since models copy it; the line stands at the end of the
newest turn (`render_turn(fault=...)`) and is never stored. What it quotes is untrusted and made harmless here.
"""

from __future__ import annotations

from collections.abc import Sequence

from .escape import escape
from .prose import call_form, line

# Characters: enough for a validator's sentence, too little to take the prompt over.
LONGEST_QUOTE = 300


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return escape(text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…")


def unusable_markup(reason: str) -> str:
    """A block was there, but no call could be read from it."""
    return line("unusable_markup", reason=_quoted(reason))


def arguments_misfit(name: str, problem: str) -> str:
    """A strict tool's arguments do not fit its schema; `problem` is the validator's message."""
    return line("arguments_misfit", name=_quoted(name), problem=_quoted(problem))


def call_missing() -> str:
    """A call was required and none came."""
    return line("call_missing")


def named_call_missing(names: Sequence[str]) -> str:
    """A call of one of `names` was required and none came."""
    return line("named_call_missing", names=_quoted(" or ".join(names)))


def call_repeated(name: str) -> str:
    """The loop guard: a call that already has its result came again."""
    return line("call_repeated", name=_quoted(name))


def call_without_key(name: str, key: str) -> str:
    """A call came without the key or with another one, where somebody else's text may be what it was copied from."""
    return line("call_without_key", form=call_form(key), name=_quoted(name))


def call_in_output(name: str) -> str:
    """A call came that stands in a tool's output, with the key all the same."""
    return line("call_in_output", name=_quoted(name))


def output_misfit(problem: str) -> str:
    """The answer should have been JSON of a certain form; `problem` says why it is not."""
    return line("output_misfit", problem=_quoted(problem))
