"""What a thread holds, read from the lines between the proxy and an app-server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .conversation import ThreadMessage
from .key_placeholder import without_key

# The kinds of a Responses item's parts that are text.
_TEXTS = frozenset({"input_text", "output_text"})


class ThreadLog:
    """Each line is taken in the order in which it was said.

    `messages` have the placeholder for `key`, the one that the thread's calls carry. `tokens` is the newest total
    that was told of it, by name.
    """

    def __init__(self, key: str | None = None) -> None:
        self.messages: list[ThreadMessage] = []
        self.tokens: Mapping[str, int] = {}
        self._key = key
        # The pieces of each message that is not whole yet, by the id of its item.
        self._unfinished: dict[str, list[str]] = {}

    def take(self, line: object) -> None:
        """A request, an answer or a notification, of either side; most of them change nothing."""
        match line:
            case {"method": "thread/inject_items", "params": {"items": list(items)}}:
                for item in items:
                    self._inject(item)
            case {"method": "turn/start", "params": {"input": [_, *_] as parts}}:
                self._add("user", *_texts(parts, {"text"}))
            case {"method": "item/agentMessage/delta", "params": {"itemId": str(item_id), "delta": str(delta)}}:
                self._unfinished.setdefault(item_id, []).append(delta)
            case {
                "method": "item/completed",
                "params": {"item": {"type": "agentMessage", "id": str(item_id), "text": str(text)}},
            }:
                self._unfinished.pop(item_id, None)
                self._add("assistant", text)
            case {"method": "error", "params": {"willRetry": True}}:
                self._unfinished.clear()  # the model begins again
            case {"method": "turn/completed", "params": {"turn": {"status": str(status)}}}:
                self._end(status)
            case {"method": "thread/tokenUsage/updated", "params": {"tokenUsage": {"total": dict(total)}}}:
                self.tokens = {name: count for name, count in total.items() if isinstance(count, int)}
            case _:
                pass

    def _inject(self, item: object) -> None:
        match item:
            case {"type": "message", "role": str(role), "content": list(parts)}:
                self._add(role, *_texts(parts, _TEXTS))
            # As `--results-as tool` tells results: the words are the same.
            case {"type": "function_call_output", "output": str(text)}:
                self._add("user", text)
            case {"type": "function_call_output", "output": list(parts)}:
                self._add("user", *_texts(parts, _TEXTS))
            case _:
                pass

    def _end(self, status: str) -> None:
        # A message that was cut off is not kept.
        if status == "completed":
            for pieces in self._unfinished.values():
                self._add("assistant", "".join(pieces))
        self._unfinished.clear()

    def _add(self, role: str, *texts: str) -> None:
        self.messages.append(ThreadMessage(role, tuple(without_key(text, self._key) for text in texts)))


def _texts(parts: list[object], kinds: frozenset[str] | set[str]) -> Iterator[str]:
    """The texts among the parts; images do not count."""
    for part in parts:
        match part:
            case {"type": str(kind), "text": str(text)} if kind in kinds:
                yield text
            case _:
                pass


def counted_on(line: dict[str, object], spent: Mapping[str, int]) -> dict[str, object]:
    """`line` with `spent` added, by name, to the total of a thread's tokens if it tells one."""
    match line:
        case {
            "method": "thread/tokenUsage/updated",
            "params": {"tokenUsage": {"total": dict(total), **usage}, **params},
        }:
            more = {name: count + spent.get(name, 0) for name, count in total.items() if isinstance(count, int)}
            return {**line, "params": {**params, "tokenUsage": {**usage, "total": {**total, **more}}}}
        case _:
            return line


def item_fault(item: object) -> str | None:
    """Why an item cannot be injected, in the words of the real one; None if it can."""
    match item:
        case {"type": "message", "role": str(), "content": list(parts)}:
            return next((fault for part in parts if (fault := _part_fault(part)) is not None), None)
        case {"type": "message", **rest}:
            return f"missing field `{'content' if 'role' in rest else 'role'}`"
        case {"type": str()}:
            return None
        case dict():
            return "missing field `type`"
        case _:
            return "invalid type, expected internally tagged enum ResponseItem"


def _part_fault(part: object) -> str | None:
    match part:
        case {"type": "input_text" | "output_text", "text": str()} | {"type": "input_image", "image_url": str()}:
            return None
        case {"type": "input_text" | "output_text"}:
            return "missing field `text`"
        case {"type": "input_image"}:
            return "missing field `image_url`"
        case _:
            return "expected one of `input_text`, `input_image`, `input_audio`, `output_text`"
