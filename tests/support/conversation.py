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


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as a client sees it, its arguments decoded."""

    name: str
    arguments: Mapping[str, object]


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
    """The results in a prompt, in their order, as the tools gave them."""
    found = re.findall(r"^\[tool:[^\]\n]+\] (.*(?:\n(?:  .*)?$)*)", text_shown(body), re.MULTILINE)
    return [re.sub("^  ", "", result.rstrip("\n"), flags=re.MULTILINE) for result in found]


def text_shown(body: Mapping[str, Any], role: str = "user") -> str:
    """The newest text of `role` that reached the model: the conversation is the user's, tools are the developer's."""
    texts = [
        part["text"] for item in body["input"] if item.get("role") == role for part in item["content"] if "text" in part
    ]
    return str(texts[-1])
