"""Readers of Chat Completions streams as Obsidian plugins make them by hand: what these do not put up with, users see.

Each is given what arrived from the network, read by read, and gives the text and the first call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Seen:
    text: str
    call_id: str = ""
    call_name: str = ""
    call_arguments: str = ""


def lines_of_reads(reads: Iterable[str]) -> Seen:
    """Each line of a read is an event; a line that is none is lost, so that half an event is (BMO Chatbot)."""
    text = ""
    for read in reads:
        for line in filter(None, read.split("\n")):
            if "data: [DONE]" in line:
                break
            try:
                choice = json.loads(line.removeprefix("data: "))["choices"][0]
            except (ValueError, LookupError):
                continue
            if choice["finish_reason"] != "stop":
                text += str(choice["delta"].get("content", "undefined"))  # whatever is no text is shown as it is
    return Seen(text)


def after_data(reads: Iterable[str]) -> Seen:
    """What stands behind the first `data: ` of a line; all calls are one; only `[DONE]` ends it (Smart Connections)."""
    text, call = "", ["", "", ""]
    for line in filter(str.strip, "".join(reads).splitlines()):
        if line == "data: [DONE]":
            return Seen(text, *call)
        _, *data = line.split("data: ")
        choices = json.loads(data[0] if data else "{}").get("choices")
        delta = choices[0]["delta"] if choices else {}
        text += delta.get("content") or ""
        for piece in delta.get("tool_calls", ())[:1]:
            function = piece["function"]
            for place, new in enumerate((piece.get("id"), function.get("name"), function.get("arguments"))):
                call[place] += new or ""
    raise AssertionError("no [DONE]")


def first_choices(reads: Iterable[str]) -> Seen:
    """Every read is whole events and every event has a choice; anything else is an error (Text Generator)."""
    text = ""
    for read in reads:
        for part in read.split("\ndata: "):
            data = part.removeprefix("data: ").strip()
            if data not in {"", "[DONE]"}:
                text += json.loads(data)["choices"][0]["delta"].get("content") or ""
    return Seen(text)


# Each with what its plugin sends beside model, messages and stream.
READERS: dict[str, tuple[Callable[[Iterable[str]], Seen], dict[str, Any]]] = {
    "lines of reads": (lines_of_reads, {"temperature": 1, "max_tokens": 4096}),
    "after data": (after_data, {"temperature": 0.3, "stream_options": {"include_usage": True}}),
    "first choices": (
        first_choices,
        {
            "temperature": 0.7,
            "top_p": 1,
            "frequency_penalty": 0,
            "presence_penalty": 0.5,
            "max_tokens": 400,
            "n": 1,
            "stop": "",
        },
    ),
}
