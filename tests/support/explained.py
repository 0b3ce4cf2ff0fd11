"""How models write a call that they only explain: in every form that says "this is no call"."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from parser import write_call
from proxy.contracts import TurnRequest

from .vault_talk import conversation, user

Form = Callable[[str], str]


class Place(Enum):
    """What the place of a call says of it."""

    QUOTED = "in a quoted position"
    """It is shown: there is something around it, or at the beginning of its line."""
    ONE_SIDED = "in a list or beside words"
    """Calls that are meant are seen there, too: "I delete it: " and the call."""
    ALONE = "on lines of its own"
    """As a call that is meant."""


@dataclass(frozen=True, slots=True)
class Explained:
    """An answer that nobody wants to run. `said` are its paragraphs, one of them the call in its form."""

    name: str
    said: tuple[str, ...]
    request: TurnRequest
    place: Place

    @property
    def answer(self) -> str:
        return "\n\n".join(self.said)


def _over_lines(call: str) -> str:
    """The call as it is, its tags on lines of their own."""
    return call.replace("<tool_call>", "<tool_call>\n").replace("</tool_call>", "\n</tool_call>")


def _each_line(prefix: str) -> Form:
    return lambda call: "\n".join(f"{prefix}{line}" for line in _over_lines(call).splitlines())


# What is around a call that is not meant -> the call in it.
QUOTED: dict[str, Form] = {
    "in double quotes": lambda call: f'"{call}"',
    "in double quotes with the point": lambda call: f'"{call}."',
    "in single quotes": lambda call: f"'{call}'",
    "in curly quotes": lambda call: f"“{call}”",
    "in backticks": lambda call: f"`{call}`",
    "in two backticks": lambda call: f"`` {call} ``",
    "in parentheses": lambda call: f"({call})",
    "in brackets": lambda call: f"[{call}]",
    "in bold": lambda call: f"**{call}**",
    "in a block quotation": lambda call: f"> {call}",
    "in a block quotation over lines": _each_line("> "),
    "in a table": lambda call: f"| what | call |\n|---|---|\n| delete | {call} |",
    "in <pre><code>": lambda call: f"<pre><code>{call}</code></pre>",
    "in <pre> on lines": lambda call: f"<pre>\n{call}\n</pre>",
    "in <pre> with a class": lambda call: f'<pre class="xml">\n{call}\n</pre>',
    "in a table without bars around it": lambda call: f"what | call\n---|---\ndelete | {call}",
    "in a table of HTML": lambda call: f"<table>\n<tr>\n<td>delete</td>\n<td>\n{call}\n</td>\n</tr>\n</table>",
    "in a line of JSON": lambda call: json.dumps({"role": "assistant", "content": _over_lines(call)}),
    "in YAML": lambda call: f"call: {call}",
    "in YAML below its name": lambda call: f"call:\n  {call}",
    "in guillemets": lambda call: f"\u00ab{call}\u00bb",
    "in German quotes": lambda call: f"\u201e{call}\u201c",
    "in CJK brackets": lambda call: f"\u300a{call}\u300b",
    "in an HTML comment": lambda call: f"<!-- {call} -->",
    "in a fence": lambda call: f"```\n{call}\n```",
    "in a fence with a language": lambda call: f"```xml\n{_over_lines(call)}\n```",
    "in a fence of tildes": lambda call: f"~~~\n{call}\n~~~",
    "indented": lambda call: f"    {call}",
    "in a comment of Python": lambda call: f"# {call}",
    "in a comment of C": lambda call: f"// {call}",
    "in a sentence": lambda call: f"For example, {call} would do it.",
    "between words": lambda call: f"To do it I would write {call} and then wait.",
}
ONE_SIDED: dict[str, Form] = {
    "in a list": lambda call: f"- {call}",
    "in a list with stars": lambda call: f"* {call}",
    "in a numbered list": lambda call: f"1. {call}",
    "behind words": lambda call: f"To do it I would write {call}",
    "in front of words": lambda call: f"{call} is what I would write.",
}
ALONE: dict[str, Form] = {
    "on a line of its own": lambda call: call,
    "on lines of its own": _over_lines,
}
FORMS = {Place.QUOTED: QUOTED, Place.ONE_SIDED: ONE_SIDED, Place.ALONE: ALONE}

# What is asked, with a call that it is about and the words in front of it and behind it.
_ASKED = (
    ("Don't run anything, just explain how you would delete a.md.",
     ("delete_note", '{"path": "a.md"}'), "You would delete it like this:", "Tell me when I shall do it."),
    ("How would you clean up the disk? Do not do it.",
     ("run", '{"input": "rm -rf /"}'), "I would make this call:", "It has not been made."),
    ("What does a call of the tool that wipes the vault look like? Only show it to me.",
     ("vault__wipe", '{"really": true, "times": 2}'), "It looks so:", ""),
    ("Write for a tutorial how a <tool_call> block reads a note. Call no tool yourself.",
     ("read_note", '{"path": "index.md"}'), "Notes are read by a tool.", "The result is the text of the note."),
)  # fmt: skip


def explanations() -> Iterator[Explained]:
    for place, forms in FORMS.items():
        for what, form in forms.items():
            for asked, (name, arguments), before, behind in _ASKED:
                shown = form(write_call(name, arguments))
                said = (before, shown, behind) if behind else (before, shown)
                yield Explained(f"{what}, {name}", said, conversation(user(asked)), place)
