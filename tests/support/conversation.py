"""A model that goes through a conversation with calls, and goes on only when it was shown all results so far.

    model.choose = conversation([Round("I will look.", (ToolCall("find", {"q": "a"}),), ("found",)), Round("Done.")])

Results count when they are whole and in the order of their calls: who gets the last answer has
completed the tool loop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parser import write_call

from .scripted_model import Message, Refusal, Reply
from .tool_call import ToolCall


@dataclass(frozen=True, slots=True)
class Round:
    """What the model says, the calls it makes, and what they give."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    outputs: tuple[str, ...] = ()

    @property
    def written(self) -> str:
        """The model's own text."""
        calls = (write_call(call.name, json.dumps(call.arguments, ensure_ascii=False)) for call in self.calls)
        return "\n".join(filter(None, (self.text, *calls)))


def conversation(rounds: Sequence[Round], *, chunk: int = 3) -> Callable[[Mapping[str, Any]], Reply | Refusal]:
    """For `ScriptedModel.choose`: the next round, by the results that a request shows; cut into `chunk` characters."""
    states: list[tuple[list[str], Round]] = []
    outputs: list[str] = []
    for each in rounds:
        states.append((list(outputs), each))
        outputs += each.outputs

    def choose(body: Mapping[str, Any]) -> Reply | Refusal:
        shown = results_shown(body)
        for wanted, following in states:
            if shown == wanted:
                return Reply([Message(following.written)], chunk=chunk)
        return Refusal(400, {"message": f"The model was shown {shown}.", "code": "invalid_prompt"})

    return choose


def results_shown(body: Mapping[str, Any]) -> list[str]:
    """The results in a prompt, in their order, as the tools gave them: messages of their own, parts of one text, or
    outputs of tools.
    """
    texts = [text for item in body["input"] if item.get("role", "user") == "user" for text in texts_in(item)]
    if not texts[-1].startswith("This is the conversation"):
        outputs = [text.partition("]")[2].removeprefix(" ") for text in texts if text.startswith("[tool:")]
        # Lines that look like a header of ours stand two spaces to the right.
        return [re.sub(r"^  (?=\[(?:tool:|user\]|assistant\]))", "", text, flags=re.MULTILINE) for text in outputs]
    found = re.findall(r"^\[tool:[^\]\n]+\] (.*(?:\n(?:  .*)?$)*)", text_shown(body), re.MULTILINE)
    return [re.sub("^  ", "", result.rstrip("\n"), flags=re.MULTILINE) for result in found]


def all_shown(body: Mapping[str, Any]) -> str:
    """All that reached the model, in its order."""
    return "\n".join(text for item in body["input"] for text in texts_in(item))


def text_shown(body: Mapping[str, Any], role: str = "user") -> str:
    """The newest text of `role` that reached the model: the conversation is the user's, tools are the developer's."""
    return texts_of(body, role)[-1]


def texts_of(body: Mapping[str, Any], role: str) -> list[str]:
    """All texts of `role` in a request, in their order."""
    return [text for item in body["input"] if item.get("role") == role for text in texts_in(item)]


def texts_in(item: Mapping[str, Any]) -> list[str]:
    """Those of a message, or of an output of a tool."""
    said = item.get("content", item.get("output"))
    return [said] if isinstance(said, str) else [str(part["text"]) for part in said or () if "text" in part]
