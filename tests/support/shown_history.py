"""What a model is shown of a conversation, read back from a request of codex: as messages, or as one text.

Both forms are read into the same values, so that they can be compared with what a client sent. How a call's JSON is
spelled, its key, white space around a text and lines of ours at the end are no part of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# The lines that the prompt adds to a conversation, by how they begin: results have headers, and a note in them.
_LINES = dict(line.split(": ", 1) for line in (ROOT / "prompts/templates/lines.txt").read_text("utf-8").splitlines())
_BEGINNINGS = {name: line.split("$", 1)[0] for name, line in _LINES.items() if "result" not in name or len(line) > 40}
_OURS = re.compile("|".join(map(re.escape, _BEGINNINGS.values())))
_AGAIN = re.compile(
    "|".join(
        map(
            re.escape,
            ("A first attempt at this answer was discarded", _LINES["answer_now"], _LINES["answer_unless_open"]),
        )
    )
)
_HEADER = re.compile(r"\[(user|assistant|tool:([^\]\n]*))\](?:[ \n\0]|\Z)")
_MOVED = re.compile(r"^  (?=\s*\[\s*(?:user|assistant|tool)\b)", re.MULTILINE | re.IGNORECASE)
_ESCAPED = re.compile(r"<\\(?=\\*/?tool_call)")
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_PREAMBLE = "This is the conversation so far."


@dataclass(frozen=True, slots=True)
class ShownCall:
    """`id` only where the model wrote one itself. `arguments` is JSON in one spelling."""

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """One thing that somebody said. `kind` is user, image, result, assistant or developer."""

    kind: str
    text: str
    id: str | None = None
    calls: tuple[ShownCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownHistory:
    """`head` is the developer text in front; `again` whether a fault of a first answer is named."""

    head: str
    said: tuple[Shown, ...]
    again: bool


def plain(text: str) -> str:
    """A text without what does not count."""
    return "\n".join(text.splitlines()).strip()


def told(text: str) -> str:
    """A text of the assistant without what does not count: blank lines neither."""
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()).strip()


def one_spelling(arguments: str) -> str:
    """A call's arguments, JSON or not, comparable by value."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        return arguments


def joined(said: Iterable[Shown]) -> Iterator[Shown]:
    """`said` with neighbouring messages of the assistant as one, and none that is empty: no form has a border there."""
    last: Shown | None = None
    for one in said:
        if one.kind == "assistant" and not (one.text or one.calls):
            continue
        if last is not None and last.kind == one.kind == "assistant":
            last = Shown("assistant", told(f"{last.text}\n{one.text}"), None, (*last.calls, *one.calls))
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last


def read_back(body: Mapping[str, Any], *, as_messages: bool) -> ShownHistory:
    """What stands in `input` of a request. Raises ValueError for what nobody can have said."""
    items = [item for item in body["input"] if item["type"] != "reasoning"]
    if strange := [item for item in items if item["type"] != "message"]:
        raise ValueError(f"no message: {strange[0]}")
    head = ""
    if items and items[0]["role"] == "developer":
        head = _MOVED.sub("", "".join(part["text"] for part in items.pop(0)["content"]))
    again = any(_AGAIN.search(part.get("text", "")) for item in items for part in item["content"])
    said = _messages(items) if as_messages else _page(items)
    return ShownHistory(head, tuple(joined(said)), again)


# As messages


def _messages(items: Iterable[Mapping[str, Any]]) -> Iterator[Shown]:
    for item in items:
        for part in item["content"]:
            if part["type"] == "input_image":
                yield Shown("image", part["image_url"])
                continue
            text = part["text"]
            match item["role"]:
                case "assistant":
                    yield _answer(text)
                case "developer":
                    yield Shown("developer", plain(_as_said(text)))
                case "user" if (header := _HEADER.match(text)) and header[2] is not None:
                    yield Shown("result", plain(_as_said(text[header.end() :])), header[2])
                case "user" if not _OURS.match(text):
                    yield Shown("user", plain(_as_said(text)))
                case _:
                    pass


def _as_said(text: str) -> str:
    return _ESCAPED.sub("<", _MOVED.sub("", text))


def _answer(text: str) -> Shown:
    calls = [json.loads(found) for found in _CALL.findall(text)]
    rest = _CALL.sub("\n", text)
    return Shown("assistant", told(_as_said(rest)), None, tuple(map(_call, calls)))


def _call(call: Mapping[str, Any]) -> ShownCall:
    arguments = call["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ShownCall(call["name"], one_spelling(text), call.get("id"))


# As one text


def _page(items: Iterable[Mapping[str, Any]]) -> Iterator[Shown]:
    images: list[str] = []
    pieces: list[str] = []
    for item in items:
        if item["role"] != "user":
            raise ValueError(f"a message of {item['role']}")
        for part in item["content"]:
            if part["type"] == "input_image":
                images.append(part["image_url"])
                pieces.append("\0")
            else:
                pieces.append(part["text"])
    page = "".join(pieces)
    left = iter(images)
    if not page.startswith(_PREAMBLE):
        text, _, last = page.rpartition("\n\n")
        page = text if all(map(_OURS.match, last.split("\n"))) else page
        yield from _pieces("user", None, page, left)
        return
    kind, identifier, lines = "", None, list[str]()
    calls: list[ShownCall] = []
    for line in page.split("\n"):
        header = _HEADER.match(line)
        if header is not None:
            yield from _message(kind, identifier, lines, calls, left)
            kind, identifier = header[1].partition(":")[0], header[2]
            lines, calls = [line[header.end(1) + 1 :].removeprefix(" ")], []
        elif line.startswith("<tool_call>"):
            if kind != "assistant":
                raise ValueError(f"a call of {kind or 'nobody'}")
            calls.append(_call(json.loads(_CALL.fullmatch(line)[1])))  # type: ignore[index]
        elif line.startswith("  ") or not line or line[0] == "\0":
            lines.append(line.removeprefix("  "))
        elif kind and not _OURS.match(line):
            raise ValueError(f"a line of nobody: {line!r}")
    yield from _message(kind, identifier, lines, calls, left)


def _message(
    kind: str, identifier: str | None, lines: list[str], calls: list[ShownCall], images: Iterator[str]
) -> Iterator[Shown]:
    match kind:
        case "":
            pass
        case "assistant":
            yield Shown("assistant", told(_ESCAPED.sub("<", "\n".join(lines))), None, tuple(calls))
        case _:
            yield from _pieces("result" if kind == "tool" else kind, identifier, "\n".join(lines), images)


def _pieces(kind: str, identifier: str | None, text: str, images: Iterator[str]) -> Iterator[Shown]:
    """The texts of a message, and its images where a NUL stands."""
    for number, piece in enumerate(text.split("\0")):
        if number:
            yield Shown("image", next(images))
        if (own := plain(_ESCAPED.sub("<", piece))) or (kind == "result" and not number):
            yield Shown(kind, own, identifier) if not number or kind != "result" else Shown("user", own)
