"""The items of an answer: they open, grow and close, one at a time. Every API that has items builds them here.

    text              opens a message, or grows the open one, if that is of its phase
    message ended     the next text is another message
    reasoning         opens an item and the parts of its summary, or grows the open part
    reasoning ended   closes it; reasoning without a text opens and closes at once
    call started      opens a call; arguments grow it, its end closes it
    end of the turn   closes what is open: completed, or incomplete

What opens closes what was open. The wire events are made by methods, in which each API says its own:

    message, reasoning   _item_opened  (_part_opened  _text_grew*  _part_closed)*  _item_closed
    call                 _item_opened  _arguments_grew*  _item_closed
    end of the turn      _finished | _failed

A message has one part. Reasoning has those of its summary, and none without a summary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct, field

from ..contracts import (
    AnswerMessageEnded,
    AnswerText,
    Compacted,
    Reasoning,
    ReasoningItemEnded,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    Usage,
)
from ..errors import ApiError
from ..ids import MintId
from .builder import WireEvent
from .json_body import JsonObject
from .tools import CallKind, DeclaredName

# In the words of the Responses API; the other APIs' are the same.
ItemType = Literal[
    "message", "reasoning", "function_call", "custom_tool_call", "tool_search_call", "tool_search_output", "compaction"
]

CALL_ITEMS: Mapping[CallKind, ItemType] = {
    "function": "function_call", "custom": "custom_tool_call", "tool_search": "tool_search_call",
}  # fmt: skip

# A call that broke off is incomplete, and so is what was open at a bad end.
ItemStatus = Literal["in_progress", "completed", "incomplete"]


class OutputItem(Struct):
    """An item of an answer. `index` is its place among all; a call has a `number`, its place among the calls.

    `name` and `namespace` are those that the client knows. `parts` are in pieces; a call's arguments are its only one.
    """

    type: ItemType
    id: str
    index: int
    call_id: str = ""
    name: str = ""
    namespace: str | None = None
    number: int | None = None
    status: ItemStatus = "in_progress"
    parts: list[list[str]] = field(default_factory=list)
    phase: str | None = None
    """Of a message: `commentary` or `final_answer`, where the model said so."""
    content: str = ""
    """What a compaction holds, which has no parts."""
    found: JsonObject | None = None
    """What a hosted search has brought, of the two items that tell it."""

    @property
    def is_call(self) -> bool:
        return self.number is not None

    @property
    def texts(self) -> list[str]:
        """The text of each part, as far as it has come."""
        return ["".join(pieces) for pieces in self.parts]

    @property
    def text(self) -> str:
        """What a message says, or the arguments of a call."""
        return "".join(self.parts[0])


class OutputBuilder(ABC):
    """Builds the items of one answer.

    `prefixes` are those of the items' ids; where reasoning has none, it is not told. `gap` stands between the
    messages of the model where they are one item; without it each is an item of its own.
    """

    def __init__(
        self,
        mint: MintId,
        prefixes: Mapping[str, str],
        *,
        client_name: Callable[[str], DeclaredName] = DeclaredName,
        gap: str | None = None,
    ) -> None:
        self._mint = mint
        self._prefixes = prefixes
        self._client_name = client_name
        self._gap = gap
        self._items: list[OutputItem] = []
        self._calls = 0
        self._open: OutputItem | None = None
        self._message_ended = False

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        """The wire events of one turn event. After `TurnFinished` or `TurnFailed` the answer is final."""
        match event:
            case AnswerText(text, phase):
                return self._say(text, phase)
            case ToolCallArguments(text):
                return self._grow_call(text)
            case AnswerMessageEnded(phase):
                # Closed by what comes next: only then is it known that the message was not cut.
                self._message_ended = True
                if self._open is not None and self._open.type == "message":
                    self._open.phase = self._open.phase or phase
                return []
            case ToolCallStarted(call_id, name):
                return self._start_call(call_id, name)
            case ToolCallEnded(complete):
                return self._close("completed" if complete else "incomplete")
            case Reasoning() | ReasoningItemEnded() if "reasoning" not in self._prefixes:
                return []
            case Reasoning(part, text):
                return self._reason(part, text)
            case ReasoningItemEnded():
                _, events = self._ensure_reasoning()
                return [*events, *self._close("completed")]
            case Compacted():
                return self._compacted(event)
            case TurnFinished(usage, incomplete):
                events = self._close("incomplete" if incomplete else "completed")
                return [*events, *self._finished(usage, incomplete)]
            case TurnFailed(error):
                return [*self._close("incomplete"), *self._failed(error)]

    # What each API tells

    @abstractmethod
    def _item_opened(self, item: OutputItem) -> list[WireEvent]: ...

    @abstractmethod
    def _part_opened(self, item: OutputItem, part: int) -> list[WireEvent]: ...

    @abstractmethod
    def _text_grew(self, item: OutputItem, part: int, text: str) -> list[WireEvent]: ...

    @abstractmethod
    def _part_closed(self, item: OutputItem, part: int, text: str) -> list[WireEvent]: ...

    @abstractmethod
    def _arguments_grew(self, call: OutputItem, text: str) -> list[WireEvent]: ...

    @abstractmethod
    def _item_closed(self, item: OutputItem) -> list[WireEvent]:
        """`item` has its last status. A call that broke off must not look finished to those who wait for its end."""

    @abstractmethod
    def _finished(self, usage: Usage, incomplete: str | None) -> list[WireEvent]: ...

    @abstractmethod
    def _failed(self, error: ApiError) -> list[WireEvent]: ...

    def _compacted(self, event: Compacted) -> list[WireEvent]:
        """Asked for by the Responses API alone."""
        return []

    # How items open, grow and close

    def _say(self, text: str, phase: str | None) -> list[WireEvent]:
        item = self._open
        if item is None or item.type != "message" or (self._gap is None and self._is_another(item, phase)):
            item = self._new("message")
            item.phase = phase
            return [*self._add(item), *self._add_part(item), *self._say(text, phase)]
        if self._message_ended:
            self._message_ended = False
            text = f"{self._gap}{text}"
        item.parts[0].append(text)
        return self._text_grew(item, 0, text)

    def _is_another(self, message: OutputItem, phase: str | None) -> bool:
        return self._message_ended or message.phase not in (None, phase)

    def _start_call(self, call_id: str, name: str) -> list[WireEvent]:
        tool = self._client_name(name)
        item = self._new(CALL_ITEMS[tool.kind])
        item.call_id, item.name, item.namespace = call_id, tool.name, tool.namespace
        item.number = self._calls
        self._calls += 1
        item.parts.append([])
        return self._add(item)

    def _grow_call(self, text: str) -> list[WireEvent]:
        call = self._open
        if call is None or call.number is None:
            raise TypeError("ToolCallArguments without ToolCallStarted")
        call.parts[0].append(text)
        return self._arguments_grew(call, text)

    def _reason(self, part: int, text: str) -> list[WireEvent]:
        item, events = self._ensure_reasoning()
        while len(item.parts) <= part:
            if item.parts:
                events += self._close_part(item)
            events += self._add_part(item)
        item.parts[-1].append(text)
        return [*events, *self._text_grew(item, len(item.parts) - 1, text)]

    def _ensure_reasoning(self) -> tuple[OutputItem, list[WireEvent]]:
        """The reasoning item that is open, or one that is added for it."""
        if self._open is not None and self._open.type == "reasoning":
            return self._open, []
        item = self._new("reasoning")
        return item, self._add(item)

    def _new(self, type: ItemType) -> OutputItem:
        return OutputItem(type, self._mint(self._prefixes[type]), len(self._items))

    def _add(self, item: OutputItem) -> list[WireEvent]:
        events = self._close("completed")
        self._items.append(item)
        self._open, self._message_ended = item, False
        return [*events, *self._item_opened(item)]

    def _add_part(self, item: OutputItem) -> list[WireEvent]:
        item.parts.append([])
        return self._part_opened(item, len(item.parts) - 1)

    def _close_part(self, item: OutputItem) -> list[WireEvent]:
        return self._part_closed(item, len(item.parts) - 1, "".join(item.parts[-1]))

    def _close(self, status: ItemStatus) -> list[WireEvent]:
        """Ends the open item, if there is one."""
        item, self._open = self._open, None
        if item is None:
            return []
        item.status = status
        item.parts = [[text] for text in item.texts]  # joined once: the text is told more than once
        events = [] if item.is_call or not item.parts else self._close_part(item)
        return [*events, *self._item_closed(item)]
