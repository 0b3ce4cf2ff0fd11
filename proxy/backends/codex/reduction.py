"""One turn's notifications to backend events: a state machine without I/O.

              item/started            deltas                item/completed
    no item  ------------->  open    -------->  open, told  ------------->  no item   ... turn/completed -> over
                               ^                    |
                               '--- willRetry or ---'  only while the turn has told nothing; else it has failed
                                    started again

A message may come whole, in its `started` or its `completed` line. A line that comes twice has no effect the second
time. Told events are never taken back. An item of a harmless kind, or of one that the owner allows, is passed over. If
an item is neither that nor a message nor reasoning, codex acts instead of answering, and the turn has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import ClassVar

from msgspec import Struct, field

from ...contracts import (
    PHASES,
    BackendEvent,
    MessageEnded,
    MessagePhase,
    ReasoningEnded,
    ReasoningPiece,
    TextPiece,
    TurnEnded,
    Usage,
    token_count,
)
from ...errors import BackendError
from ...rpc import RpcObject
from ..answers import FAILED, NOT_TEXT_ONLY
from .deltas import TEXT_DELTA
from .errors import Cut, turn_failure
from .item_kinds import ACTING, HARMLESS

# Parts of a summary. A client is told of each part, also of those that are left out in between. codex writes a few.
MOST_PARTS = 1000


class AttemptFailed(Struct, frozen=True):
    error: BackendError


class _Message(Struct):
    first: str
    """The text in its `started` line. It is the whole text if no delta follows."""
    phase: str | None = None
    """Told with the first text. Until then the message may still begin anew."""
    told: list[str] = field(default_factory=list)


class _Reasoning(Struct):
    told: dict[int, list[str]] = field(default_factory=dict)
    """The deltas, by the number of their part of the summary."""


Told = Iterator[BackendEvent | AttemptFailed]


class TurnReduction:
    """The state of one turn.

    Its id comes with its first line or with the answer to the request for it (`begin`), whichever is first. A line with
    the id of one of the thread's `earlier` turns waits for that answer: it is late, or codex uses ids again.
    `over`: no more events come. `completed`: codex has reported the end. `before`: the thread's tokens until now.
    Items of the kinds `allowed` are passed over; those that came are in `passed_over`. `log_in` as in `turn_failure`.
    """

    def __init__(
        self,
        before: Usage = Usage(),  # noqa: B008 -- frozen
        allowed: frozenset[str] = HARMLESS,
        log_in: str | None = None,
        earlier: Collection[str] = (),
    ) -> None:
        self.passed_over: set[str] = set()
        self.differs = False
        """The whole text of a message contradicts its deltas: the thread holds words that nobody was told."""
        self._allowed = allowed
        self._log_in = log_in
        self.turn_id: str | None = None
        self.total = before
        """All tokens of the thread, as codex reported them last."""
        self._before = before
        self.over = False
        self.completed = False
        self.unanswered = False
        """The service failed before codex had anything of an answer, and may do better when it is asked again: the
        thread holds what was asked, and nothing behind it. A newer codex compacts one that was too long."""
        self._earlier = earlier
        self._waiting: list[tuple[str, RpcObject]] = []
        self._open: dict[str, _Message | _Reasoning] = {}
        self._done: dict[str, str] = {}  # the text of messages that are whole, by item
        self._told = False
        self._usage: Usage | None = None
        self._error: RpcObject | None = None

    def receive(self, method: str, params: RpcObject) -> list[BackendEvent | AttemptFailed]:
        """The events of one notification of the turn's thread; none for unknown methods and for other turns.

        Raises LookupError, TypeError or AttributeError if the notification has another shape than its method promises.
        Ignore it then.
        """
        read = self._READERS.get(method)
        if read is None:
            return []
        turn_id = params["turnId"] if "turnId" in params else params["turn"]["id"]
        if turn_id != self.turn_id:
            if self.turn_id is not None:
                return []
            if turn_id in self._earlier:
                self._waiting.append((method, params))
                return []
            self.turn_id = turn_id
        if self.over:
            self.completed = self.completed or method == "turn/completed"
            return []
        events = []
        for event in read(self, params):
            events.append(event)
            if isinstance(event, AttemptFailed):
                self.over = True
                break
            self._told = True
        if method == "turn/completed":
            self.completed = self.over = True
        return events

    def next_piece(self, method: str, params: RpcObject) -> TextPiece | None:
        """The piece in a notification that goes on with a message, as nearly all do. None for any other: give that to
        `receive`.
        """
        if method != TEXT_DELTA or not isinstance(item_id := params.get("itemId"), str):
            return None
        message, text = self._open.get(item_id), params.get("delta")
        if not isinstance(message, _Message) or not message.told or item_id in self._done:
            return None
        if self.over or params.get("turnId") != self.turn_id or not text or not isinstance(text, str):
            return None
        message.told.append(text)
        return TextPiece(text)

    def begin(self, turn_id: str) -> list[BackendEvent | AttemptFailed]:
        """The answer says that the turn has this id. Returns the events of the lines that waited for it."""
        self.turn_id = turn_id
        waiting, self._waiting = self._waiting, []
        told: list[BackendEvent | AttemptFailed] = []
        for method, params in waiting:
            with suppress(LookupError, TypeError, AttributeError, ValueError):
                told += self.receive(method, params)
        return told

    def _turn_started(self, params: RpcObject) -> Told:
        yield from ()

    def _item_started(self, params: RpcObject) -> Told:
        item = params["item"]
        item_id = item["id"]
        if item_id in self._done:
            return
        if self._interrupts_what_was_told(item_id, item["type"]):
            yield from self._begun_again("codex began its answer again")
        match item["type"]:
            case "agentMessage":
                self._open[item_id] = _Message(_text(item.get("text") or ""), _phase(item))
            case "reasoning":
                self._open[item_id] = _Reasoning()
            case "userMessage":
                pass
            case kind:
                yield from self._other_kind(kind)

    def _other_kind(self, kind: str) -> Told:
        if kind in self._allowed:
            self.passed_over.add(kind)
        else:
            yield _not_text_only(kind)

    def _interrupts_what_was_told(self, item_id: str, kind: str) -> bool:
        """Whether a new item shows that another attempt began: codex writes one message at a time."""
        begun = self._open.get(item_id)
        others = (it for it in self._open.values() if kind == "agentMessage" and isinstance(it, _Message))
        return (begun is not None and bool(begun.told)) or any(it.told for it in others)

    def _text_delta(self, params: RpcObject) -> Told:
        if params["itemId"] in self._done:
            yield from self._begun_again("codex began a message again")
        text = _text(params["delta"])
        message = self._open.setdefault(params["itemId"], _Message(""))
        if isinstance(message, _Message) and text:
            if message.phase and not message.told:
                yield MessagePhase(message.phase)
            message.told.append(text)
            yield TextPiece(text)

    def _summary_delta(self, params: RpcObject) -> Told:
        if params["itemId"] in self._done:
            yield from self._begun_again("codex began its reasoning again")
        reasoning = self._open.setdefault(params["itemId"], _Reasoning())
        part, text = int(params["summaryIndex"]), _text(params["delta"])
        if not 0 <= part < MOST_PARTS:
            raise ValueError(f"no part of a summary has the number {part}")
        if isinstance(reasoning, _Reasoning) and text:
            reasoning.told.setdefault(part, []).append(text)
            yield ReasoningPiece(part, text)

    def _item_completed(self, params: RpcObject) -> Told:
        item = params["item"]
        match item["type"]:
            case "agentMessage":
                yield from self._message_completed(item["id"], _text(item.get("text") or ""), _phase(item))
            case "reasoning":
                if item["id"] in self._done:
                    return
                self._done[item["id"]] = ""
                reasoning = self._open.pop(item["id"], None)
                told = reasoning.told if isinstance(reasoning, _Reasoning) else {}
                summary = item.get("summary")
                for part, text in enumerate(summary[:MOST_PARTS] if isinstance(summary, list) else ()):
                    if isinstance(text, str) and (rest := _rest(text, told.get(part, []))):
                        yield ReasoningPiece(part, rest)
                yield ReasoningEnded()
            case "userMessage":
                pass
            case kind:
                yield from self._other_kind(kind)

    def _message_completed(self, item_id: str, text: str, phase: str | None) -> Told:
        if item_id in self._done:
            if text != self._done[item_id]:
                yield from self._begun_again("codex wrote a message twice")
            return
        message = self._open.pop(item_id, None)
        if not isinstance(message, _Message):
            message = _Message("")
        self._done[item_id] = text
        # codex reports the phase only now if the service told it with the whole message.
        if phase and (phase != message.phase or not message.told):
            yield MessagePhase(phase)
        whole = text or message.first
        self.differs = self.differs or (bool(whole) and not whole.startswith("".join(message.told)))
        if rest := _rest(whole, message.told):
            yield TextPiece(rest)
        yield MessageEnded()

    def _token_usage(self, params: RpcObject) -> Told:
        # The growth of the total is the turn's usage. `last` is zero, or an earlier turn's, after a cut answer.
        total = params["tokenUsage"]["total"]
        self.total = Usage(
            input_tokens=token_count(total["inputTokens"]),
            cached_tokens=token_count(total["cachedInputTokens"]),
            output_tokens=token_count(total["outputTokens"]),
            reasoning_tokens=token_count(total["reasoningOutputTokens"]),
            cache_write_tokens=token_count(total.get("cacheWriteInputTokens") or 0),
        )
        self._usage = self.total - self._before
        yield from ()

    def _error_reported(self, params: RpcObject) -> Told:
        # An error without a retry comes again in turn/completed.
        self._error = params["error"]
        if params.get("willRetry"):
            yield from self._begun_again("the connection to the model broke")

    def _begun_again(self, why: str) -> Told:
        # The new attempt repeats the answer from its start, so it must not follow text that was told.
        if self._told:
            yield AttemptFailed(BackendError(f"Part of an answer was lost: {why}.", **FAILED))
        self._open.clear()

    def _turn_completed(self, params: RpcObject) -> Told:
        # The turn is over whatever else the line says: nothing more will come.
        turn = params["turn"]
        match turn.get("status"):
            case "completed":
                yield from self._ended(None)
            case "failed":
                match turn_failure(turn.get("error") or self._error, self._log_in):
                    case Cut(reason):
                        yield from self._ended(reason)
                    case error:
                        blank = not (self._told or self._open or self._done or self.passed_over)
                        self.unanswered = blank and (error.status == 429 or error.status >= 500)
                        yield AttemptFailed(error)
            case status:
                yield AttemptFailed(BackendError(f"codex ended the turn as {status}.", **FAILED))

    def _ended(self, incomplete: str | None) -> Told:
        for item in self._open.values():
            if isinstance(item, _Reasoning):
                yield ReasoningEnded()
            elif item.told:
                yield MessageEnded()
        yield TurnEnded(self._usage, incomplete)

    _READERS: ClassVar[Mapping[str, Callable[[TurnReduction, RpcObject], Told]]] = {
        "turn/started": _turn_started,
        "item/started": _item_started,
        TEXT_DELTA: _text_delta,
        "item/reasoning/summaryTextDelta": _summary_delta,
        "item/completed": _item_completed,
        "thread/tokenUsage/updated": _token_usage,
        "error": _error_reported,
        "turn/completed": _turn_completed,
    }


def _text(told: object) -> str:
    if not isinstance(told, str):
        raise TypeError(f"what should be text is {type(told).__name__}")
    return told


def _phase(item: RpcObject) -> str | None:
    phase = item.get("phase")
    return phase if phase in PHASES else None


def _rest(whole: str, told: list[str]) -> str:
    """The text that `whole` has beyond the deltas; none if it contradicts them, for they have left."""
    begun = "".join(told)
    return whole[len(begun) :] if whole.startswith(begun) else ""


def _not_text_only(kind: str) -> AttemptFailed:
    sentence = f"codex used a tool of its own ({kind}) instead of answering in text; the turn was stopped."
    if kind not in ACTING:
        sentence = (
            f"codex sent an item of an unknown kind ({kind}); the turn was stopped. If it is "
            f"harmless, start tagcall with --allow-item {kind}."
        )
    return AttemptFailed(BackendError(sentence, **NOT_TEXT_ONLY))
