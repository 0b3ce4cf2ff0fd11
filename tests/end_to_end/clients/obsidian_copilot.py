"""Obsidian Copilot's requests, byte for byte, and how it reads the streams that answer them.

It rebuilds its messages for each request: the assistant's text, which may be empty, then its calls
without item ids, then their results. Calls are folded by their index; what does not fit is lost in
silence, so what is lost here would be lost there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

TOOLS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("obsidian_copilot_tools.json").read_text("utf-8"))
SYSTEM = "You are Obsidian Copilot, a helpful assistant that integrates AI to Obsidian note-taking.\n\nBe brief."
HEADERS = {
    "origin": "app://obsidian.md",
    "authorization": "Bearer any key",
    "content-type": "application/json",
    "accept": "application/json",
    "user-agent": "langchainjs-openai/1.0.0 (Obsidian)",
    "x-stainless-lang": "js",
    "x-stainless-package-version": "6.49.0",
    "x-stainless-os": "Unknown",
    "x-stainless-arch": "unknown",
    "x-stainless-runtime": "browser:chrome",
    "x-stainless-runtime-version": "142.0.0",
    "x-stainless-retry-count": "0",
}


@dataclass(frozen=True, slots=True)
class Call:
    """`arguments` is the JSON text as it was put together."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """An answer and what its calls gave."""

    answer: Answer
    outputs: tuple[str, ...]


class Api(Protocol):
    """One of the two APIs, as Copilot speaks it; the model's name decides which."""

    path: str

    def body(self, question: str, steps: Sequence[Step] = (), *, tools: bool = True) -> dict[str, Any]: ...

    def read(self, events: Iterable[Any]) -> Answer: ...


class Responses:
    """For models whose name begins with `gpt-5`."""

    path = "/responses"

    def body(self, question: str, steps: Sequence[Step] = (), *, tools: bool = True) -> dict[str, Any]:
        items: list[dict[str, Any]] = [
            {"type": "message", "role": "system", "content": SYSTEM},
            {"type": "message", "role": "user", "content": question},
        ]
        for step in steps:
            items.append({"type": "message", "role": "assistant", "content": step.answer.text})
            items += (
                {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
                for call in step.answer.calls
            )
            items += (
                {"type": "function_call_output", "call_id": call.id, "output": output}
                for call, output in zip(step.answer.calls, step.outputs, strict=True)
            )
        body = {"model": "gpt-5.5", "input": items, "stream": True, "temperature": 1, "text": {}}
        belt = {"tools": [{"type": "function", **tool, "strict": None} for tool in TOOLS]}
        return body | (belt if tools else {})

    def read(self, events: Iterable[Any]) -> Answer:
        text, calls = "", dict[int, Call]()
        for event in events:
            match event:
                case {"type": "response.output_text.delta", "delta": str(delta)}:
                    text += delta
                case {"type": "response.output_item.added", "item": {"type": "function_call"} as item}:
                    _fold(calls, event["output_index"], item["call_id"], item["name"], item["arguments"])
                case {"type": "response.function_call_arguments.delta", "delta": str(delta)}:
                    _fold(calls, event["output_index"], "", "", delta)
                case {"type": "response.output_item.done", "item": {"type": "message", "content": content}}:
                    assert all(list(part["annotations"]) == [] for part in content), "LangChain maps over them"
                case {"type": "response.completed"}:
                    return Answer(text, tuple(calls.values()))
                case _:
                    pass
        raise AssertionError("the stream ended without response.completed")


class Chat:
    """For models of any other name."""

    path = "/chat/completions"

    def body(self, question: str, steps: Sequence[Step] = (), *, tools: bool = True) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": question},
        ]
        for step in steps:
            made = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in step.answer.calls
            ]
            messages.append({"role": "assistant", "content": step.answer.text, "tool_calls": made})
            messages += (
                {"role": "tool", "content": output, "name": call.name, "tool_call_id": call.id}
                for call, output in zip(step.answer.calls, step.outputs, strict=True)
            )
        body = {"model": "my-codex", "messages": messages, "stream": True, "temperature": 0.1}
        return body | ({"tools": [{"type": "function", "function": tool} for tool in TOOLS]} if tools else {})

    def read(self, events: Iterable[Any]) -> Answer:
        text, role, finished, calls = "", "", "", dict[int, Call]()
        for event in events:
            [choice] = event["choices"]  # usage was not asked for, so no chunk is without a choice
            delta = choice["delta"]
            role = delta.get("role") or role
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls", ()) if role == "assistant" else ():
                function = piece.get("function", {})
                _fold(calls, piece["index"], piece.get("id", ""), function.get("name", ""), function["arguments"])
            finished = choice["finish_reason"] or finished
        assert finished == ("tool_calls" if calls else "stop")
        return Answer(text, tuple(calls.values()))


def _fold(calls: dict[int, Call], index: int, id: str, name: str, arguments: str) -> None:
    before = calls.get(index, Call("", "", ""))
    calls[index] = Call(before.id or id, before.name + name, before.arguments + arguments)


APIS: dict[str, Api] = {"responses": Responses(), "chat": Chat()}


def encoded(body: object) -> bytes:
    """As JSON.stringify writes it."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
