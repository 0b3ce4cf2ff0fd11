"""The one line that a second attempt at an answer is given.

The failed answer is left out of that attempt, because models copy it. The line stands at the end of the newest turn
(`render_turn(fault=...)`) and is never stored. What it quotes is untrusted and made harmless here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile

from .conversation import one_line, visible
from .escape import escape, escape_json
from .passages import call_form, line
from .transcript import Text, ToolResult, Transcript, UserTurn

# Characters: enough for a validator's sentence, too little to take the prompt over.
LONGEST_QUOTE = 300
# Of the user's request, which stands in the conversation as a whole.
LONGEST_REQUEST = 2000


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


def answer_now(transcript: Transcript) -> str | None:
    """An attempt without tools where results are the newest entry, with the user's last words; elsewhere None."""
    entries = visible(transcript)
    if not (entries and isinstance(entries[-1], ToolResult)):
        return None
    return _with_request(line("answer_now"), transcript)


def answer_unless_open(transcript: Transcript) -> str:
    """An attempt with the tools behind results, where it looks as if they said it all, with the user's last words."""
    return _with_request(line("answer_unless_open"), transcript)


def newest_results(transcript: Transcript) -> list[str]:
    """The texts of the results that are the newest entries."""
    newest = takewhile(lambda entry: isinstance(entry, ToolResult), reversed(visible(transcript)))
    results = [entry for entry in newest if isinstance(entry, ToolResult)]
    return ["".join(part.text for part in entry.parts if isinstance(part, Text)) for entry in results]


def after_named_results(transcript: Transcript) -> str:
    """What a small model is told behind results that are messages: no fault, but the same words of the user."""
    return _with_request(line("after_named_results"), transcript)


def _with_request(told: str, transcript: Transcript) -> str:
    """`told`, and the user's last words behind it."""
    return " ".join(filter(None, (told, request_told(transcript))))


def request_told(transcript: Transcript) -> str:
    """How such a line ends, which models repeat by itself; empty without words of the user."""
    entries = transcript.entries
    request = next((entry for entry in reversed(entries) if isinstance(entry, UserTurn)), UserTurn(()))
    text = "\n".join(part.text for part in request.parts if isinstance(part, Text)).strip()
    if not text:
        return ""
    if len(text) > LONGEST_REQUEST:
        text = text[: LONGEST_REQUEST - 1] + "…"
    return line("request", request=one_line(escape_json(json.dumps(text, ensure_ascii=False))))


def write_held(form: str) -> str:
    """The decoder lets the model write nothing but `form`, which is not how the prompt asks for calls."""
    return line("write_held", form=form)


def call_forbidden() -> str:
    """A call came where no tool is on offer."""
    return line("call_forbidden")


def tool_unfound(name: str) -> str:
    """A call came of a tool that is not on offer, and there is a search that may find it."""
    return line("tool_unfound", name=_quoted(name))


def call_without_key(name: str, key: str) -> str:
    """A call came without the key or with another one, where somebody else's text may be what it was copied from."""
    return line("call_without_key", form=call_form(key), name=_quoted(name))


def call_in_output(name: str, transcript: Transcript) -> str:
    """A call came that stands in a tool's output, with the key all the same: the user's words tell if it is meant."""
    return _with_request(line("call_in_output", name=_quoted(name)), transcript)


def result_repeated() -> str:
    """The answer was a result, word for word, where it may be that a call was due."""
    return line("result_repeated")


def output_misfit(problem: str) -> str:
    """The answer should have been JSON of a certain form; `problem` says why it is not."""
    return line("output_misfit", problem=_quoted(problem))
