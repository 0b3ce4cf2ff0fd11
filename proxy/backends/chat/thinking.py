"""Reasoning that a model writes in its text: `<think>...</think>` in front of its answer.

start --white space, <think>--> thinking --</think>, white space--> answer
  '---------------- anything else ------------------------------------^
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

OPENING, CLOSING = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of reasoning."""

    text: str


class ThinkingReader:
    """Tells thoughts from the answer. At most a tag and white space wait for what comes next; no text is lost."""

    def __init__(self) -> None:
        self._read = self._start
        self._begun = ""

    @property
    def over(self) -> bool:
        """Whether all that comes is the answer's."""
        return self._read == self._answer

    def receive_text(self, text: str) -> Iterator[Thought | str]:
        """What `text` adds, an answer's piece as a string."""
        begun, self._begun = self._begun + text, ""
        return self._read(begun)

    def receive_eof(self) -> Iterator[Thought | str]:
        """What still waits."""
        if self._begun:
            yield Thought(self._begun) if self._read == self._thinking else self._begun

    def _start(self, text: str) -> Iterator[Thought | str]:
        said = text.lstrip()
        if said.startswith(OPENING):
            self._read = self._opened
            yield from self._opened(said[len(OPENING) :])
        elif OPENING.startswith(said):
            self._begun = text
        else:
            self._read = self._answer
            yield text

    def _opened(self, text: str) -> Iterator[Thought | str]:
        if thought := text.lstrip():
            self._read = self._thinking
            yield from self._thinking(thought)

    def _thinking(self, text: str) -> Iterator[Thought | str]:
        thought, closing, rest = text.partition(CLOSING)
        if not closing:
            waits = _beginning_of(CLOSING, text)
            thought, self._begun = text[: len(text) - waits], text[len(text) - waits :]
        if thought:
            yield Thought(thought)
        if closing:
            self._read = self._gap
            yield from self._gap(rest)

    def _gap(self, text: str) -> Iterator[Thought | str]:
        if said := text.lstrip():
            self._read = self._answer
            yield said

    def _answer(self, text: str) -> Iterator[Thought | str]:
        yield text


def _beginning_of(tag: str, text: str) -> int:
    """How many characters at the end of `text` may be the first ones of `tag`."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
