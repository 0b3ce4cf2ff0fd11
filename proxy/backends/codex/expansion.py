"""Turns the backend events of one turn into the lines of an app-server: `reduction` backwards.

Reduced again, the lines give the same events, except where no line can say it: an empty piece is lost, and a message
that is open when the turn ends counts as whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...contracts import (
    BackendEvent,
    MessageEnded,
    MessagePhase,
    Prompt,
    ReasoningEnded,
    ReasoningPiece,
    TextPiece,
    TurnEnded,
    Usage,
)
from ...errors import BackendError
from ...rpc import RpcObject
from .deltas import TEXT_DELTA
from .errors import Cut, turn_error
from .requests import turn_params


class TurnExpansion:
    """The lines of one turn, in the order in which its methods are called; the client's are `ask` and `leave`.

    The turn ends with a `TurnEnded` that is told, or with `fail` or `interrupt`.
    """

    def __init__(self, thread_id: str, turn_id: str) -> None:
        self._thread_id = thread_id
        self._turn_id = turn_id
        self._ids = (f"item-{number}" for number in itertools.count(1))
        self._message: tuple[str, list[str]] | None = None
        self._phase: str | None = None
        # The texts by part of the summary.
        self._reasoning: tuple[str, dict[int, list[str]]] | None = None

    def ask(self, prompt: Prompt) -> RpcObject:
        return {"method": "turn/start", "params": turn_params(self._thread_id, prompt, prompt.parts)}

    def leave(self) -> RpcObject:
        return {"method": "turn/interrupt", "params": self._told()}

    def begin(self) -> RpcObject:
        return self._turn("turn/started", "inProgress")

    def tell(self, event: BackendEvent) -> Iterator[RpcObject]:
        match event:
            case TextPiece(text):
                yield from self._text(text)
            case MessagePhase(phase):
                self._phase = phase
            case MessageEnded():
                yield self._whole_message()
            case ReasoningPiece(part, text):
                if text:
                    yield from self._summary(part, text)
            case ReasoningEnded():
                yield self._whole_reasoning()
            case TurnEnded(usage, incomplete):
                if self._reasoning is not None:
                    yield self._whole_reasoning()
                if self._message is not None:
                    yield self._whole_message()
                if usage is not None:
                    yield self._line("thread/tokenUsage/updated", tokenUsage=_token_usage(usage))
                if incomplete is None:
                    yield self._turn("turn/completed", "completed")
                else:
                    yield from self._failed(turn_error(Cut(incomplete)))

    def fail(self, error: BackendError) -> Iterator[RpcObject]:
        yield from self._failed(turn_error(error))

    def interrupt(self) -> RpcObject:
        return self._turn("turn/completed", "interrupted")

    def _text(self, text: str) -> Iterator[RpcObject]:
        if not text:
            return
        if self._message is None:
            self._message = next(self._ids), []
            yield self._message_item("item/started", self._message[0], "")
        item, told = self._message
        told.append(text)
        yield self._line(TEXT_DELTA, itemId=item, delta=text)

    def _whole_message(self) -> RpcObject:
        item, told = self._message or (next(self._ids), [])
        whole = self._message_item("item/completed", item, "".join(told))
        self._message = self._phase = None
        return whole

    def _message_item(self, method: str, item: str, text: str) -> RpcObject:
        phase = {} if self._phase is None else {"phase": self._phase}
        return self._item(method, type="agentMessage", id=item, text=text, **phase)

    def _summary(self, part: int, text: str) -> Iterator[RpcObject]:
        if self._reasoning is None:
            self._reasoning = next(self._ids), {}
            yield self._item("item/started", type="reasoning", id=self._reasoning[0], summary=[])
        item, told = self._reasoning
        told.setdefault(part, []).append(text)
        yield self._line("item/reasoning/summaryTextDelta", itemId=item, summaryIndex=part, delta=text)

    def _whole_reasoning(self) -> RpcObject:
        item, told = self._reasoning or (next(self._ids), {})
        self._reasoning = None
        summary = ["".join(told.get(part, ())) for part in range(max(told, default=-1) + 1)]
        return self._item("item/completed", type="reasoning", id=item, summary=summary)

    def _failed(self, error: RpcObject) -> Iterator[RpcObject]:
        yield self._line("error", error=error, willRetry=False)
        yield self._turn("turn/completed", "failed", error)

    def _told(self, **params: object) -> RpcObject:
        return {"threadId": self._thread_id, "turnId": self._turn_id, **params}

    def _line(self, method: str, **params: object) -> RpcObject:
        return {"method": method, "params": self._told(**params)}

    def _item(self, method: str, **item: object) -> RpcObject:
        return self._line(method, item=item)

    def _turn(self, method: str, status: str, error: RpcObject | None = None) -> RpcObject:
        params = {
            "threadId": self._thread_id,
            "turn": {"id": self._turn_id, "items": [], "status": status, "error": error},
        }
        return {"method": method, "params": params}


def _token_usage(usage: Usage) -> RpcObject:
    tokens = {
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "inputTokens": usage.input_tokens,
        "cachedInputTokens": usage.cached_tokens,
        "outputTokens": usage.output_tokens,
        "reasoningOutputTokens": usage.reasoning_tokens,
    }
    return {"total": tokens, "last": tokens}
