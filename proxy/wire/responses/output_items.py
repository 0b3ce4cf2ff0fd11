"""The output items of a Response while they are being built; each knows its id from the first event to the last."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Literal

from ..builder import WireEvent
from ..custom_tools import unwrap_input

ItemStatus = Literal["in_progress", "completed", "incomplete"]


def text_part(text: str) -> WireEvent:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def summary_part(text: str) -> WireEvent:
    return {"type": "summary_text", "text": text}


@dataclass(slots=True)
class Message:
    """`over`: the model has ended it, and what comes next is another item."""

    id: str
    pieces: list[str] = field(default_factory=list)
    over: bool = False

    def item(self, status: ItemStatus) -> WireEvent:
        content = [] if status == "in_progress" else [text_part("".join(self.pieces))]
        return {"id": self.id, "type": "message", "status": status, "role": "assistant", "content": content}


@dataclass(slots=True)
class FunctionCall:
    id: str
    call_id: str
    name: str
    namespace: str | None
    pieces: list[str] = field(default_factory=list)

    def item(self, status: ItemStatus) -> WireEvent:
        item: WireEvent = {
            "id": self.id,
            "type": "function_call",
            "status": status,
            "arguments": "" if status == "in_progress" else "".join(self.pieces),
            "call_id": self.call_id,
            "name": self.name,
        }
        return item if self.namespace is None else {**item, "namespace": self.namespace}


@dataclass(slots=True)
class CustomCall:
    """`pieces` are the arguments of the function that stands for the tool: no input before they are whole."""

    id: str
    call_id: str
    name: str
    namespace: str | None
    pieces: list[str] = field(default_factory=list)

    @property
    def input(self) -> str:
        return unwrap_input("".join(self.pieces))

    def item(self, status: ItemStatus) -> WireEvent:
        item: WireEvent = {
            "id": self.id,
            "type": "custom_tool_call",
            "status": status,
            "call_id": self.call_id,
            "name": self.name,
            "input": self.input if status == "completed" else "",
        }
        return item if self.namespace is None else {**item, "namespace": self.namespace}


@dataclass(slots=True)
class ReasoningItem:
    """`parts` are the summary's. It has no `status`, as at OpenAI."""

    id: str
    encrypted: bool
    parts: list[list[str]] = field(default_factory=list)

    def item(self, status: ItemStatus) -> WireEvent:
        if status == "in_progress":
            return {"id": self.id, "type": "reasoning", "summary": []}
        texts = ["".join(pieces) for pieces in self.parts]
        item: WireEvent = {"id": self.id, "type": "reasoning", "summary": [summary_part(text) for text in texts]}
        if self.encrypted:
            # There is nothing to hide and nothing to carry over, but clients that asked for it must find it. The line
            # end is for them: they take an empty one for none.
            item["encrypted_content"] = b64encode(("\n\n".join(texts) + "\n").encode()).decode()
        return item


OutputItem = Message | FunctionCall | CustomCall | ReasoningItem
