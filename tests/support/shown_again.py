"""A call that was made and answered, shown once more because the user asks what it was: with its key, as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parser import write_call
from prompts import AssistantText, PastCall, Text, ToolResult
from proxy.contracts import TurnRequest

from .explained import ONE_SIDED, QUOTED, Form
from .vault_talk import conversation, user

BEFORE = "I wrote this:"


@dataclass(frozen=True, slots=True)
class ShownAgain:
    """`behind` stands right behind what is shown. `beside_words`: nothing but words on one side says that it is."""

    name: str
    request: TurnRequest
    call: tuple[str, str]
    form: Form
    behind: str
    beside_words: bool

    def shown(self, key: str | None) -> str:
        """What the answer shows of the call."""
        return self.form(write_call(*self.call, key=key))

    def answer(self, key: str | None) -> str:
        return f"{BEFORE}\n\n{self.shown(key)}{self.behind}\n"


_CALLS = (
    (("delete_note", '{"path": "a.md"}'), "Delete a.md.", "Show me what you wrote to delete it."),
    (("run", '{"input": "make clean"}'), "Clean up.", "What exactly was your call? Quote it."),
)


def shown_again() -> Iterator[ShownAgain]:
    forms = [(what, form, "") for what, form in (QUOTED | ONE_SIDED).items()]
    forms.append(("with its result", str, "\n[tool:call_1] ok"))
    for what, form, behind in forms:
        for call, wish, asked in _CALLS:
            done = (PastCall("call_1", *call), ToolResult("call_1", (Text("ok"),)), AssistantText("It is done."))
            request = conversation(user(wish), *done, user(asked))
            yield ShownAgain(f"{what}, {call[0]}", request, call, form, behind, what.endswith("words"))
