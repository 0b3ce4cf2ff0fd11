"""Reasoning that a model writes in its text, in front of its answer: `<think>...</think>` and other tags.

inside: no tag opens it, for the prompt has done so ---.
                                                       v
start --white space, a tag that opens it-----------> thinking --the tag that closes it, white space--> start
  '---- anything else --> answer
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from parser import CLOSE_TAG, OPEN_TAG

OPENING, CLOSING = "<think>", "</think>"
# What opens a thought -> what closes it. As the models' templates and the parsers of vLLM and SGLang have them.
TAGS: Mapping[str, str] = {
    OPENING: CLOSING,
    "<thinking>": "</thinking>",  # Apriel
    "<thought>": "</thought>",  # EXAONE Deep; Gemini behind Google's own Chat Completions
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "<mm:think>": "</mm:think>",  # MiniMax M3
    "[THINK]": "[/THINK]",  # Magistral
    "◁think▷": "◁/think▷",  # Kimi-VL
    "<|channel|>analysis<|message|>": "<|end|>",  # gpt-oss
    "<|start|>assistant<|channel|>analysis<|message|>": "<|end|>",
    "<|channel>thought\n": "<channel|>",  # Gemma 4
}
# What stands in front of an answer and is none of it, thought about or not.
_HEADS = (CLOSING, "<|channel|>final<|message|>", "<|start|>assistant<|channel|>final<|message|>")
_BEGINNINGS = (*TAGS, *_HEADS)
# What a tag, JSON and a call begin with, and no thought: they are made of words.
_NO_WORDS = {*"{[<", *(beginning[0] for beginning in _BEGINNINGS)}

# Models whose templates end the prompt in `<think>`, by their usual names: what they write begins inside of it.
_BEGIN_INSIDE = re.compile(
    r"qwq|deepseek[-_ ]?r1|\br1\b|think(?:ing)?\b|qwen[-_ ]?3\.[5-9]|minimax[-_ ]?m2|glm[-_ ]?(?:4\.[7-9]|5)"
    r"|nemotron[-_ ]?(?:3|nano)|step[-_ ]?3\.5",
    re.IGNORECASE,
)
_BEGIN_OUTSIDE = re.compile(r"non?[-_ ]?think|instruct", re.IGNORECASE)
# What closes a thought stands behind a line end, a word or a sentence's end; where it is spoken of, behind a blank, a
# quote or a bracket.
_CLOSED = re.compile(rf"[\n\w.!?:;)\]}}。]{CLOSING}")
# Characters. Longer text is read in pieces, so that what follows a tag is not copied once for every tag.
MAX_PIECE = 4096


def begins_inside(model: str) -> bool:
    """Whether a model of this name is likely to write no tag in front of its thoughts."""
    return _BEGIN_INSIDE.search(model) is not None and _BEGIN_OUTSIDE.search(model) is None


def calls_at_end(thought: str) -> str:
    """The calls that `thought` ends with, one behind the other; empty where something else is its end."""
    thought = thought.rstrip()
    start = end = len(thought)
    while thought.endswith(CLOSE_TAG, 0, end) and (before := thought.rfind(OPEN_TAG, 0, end)) >= 0:
        start = end = before
        while end and thought[end - 1].isspace():
            end -= 1
    return thought[start:]


class Thought(Struct, frozen=True):
    """A piece of reasoning."""

    text: str


_State = Callable[[str], tuple[Thought | str | None, str]]


class ThinkingReader:
    """Tells thoughts from the answer. At most a tag and white space wait for what comes next; no text is lost.

    `inside`: the first thought was begun in the prompt.
    """

    def __init__(self, *, inside: bool = False) -> None:
        self._read: _State = self._inside if inside else self._start
        self._begun = ""
        self._closing = CLOSING
        # Whether a thought came, here or elsewhere: then white space in front of the answer is none of it.
        self._thought = False
        # The end of an answer without thoughts, which may turn out to have been one.
        self._tail: str | None = ""
        # Whether that is no beginning of a tag, and the text is the answer's: for each delta.
        self._passing = False
        self.inside = inside
        """Whether what came was taken for a thought, though no tag has told that it is one."""
        self.begun_in_prompt: bool | None = None
        """Whether the model began inside of a thought, as far as its text has told."""

    def note_thought(self) -> None:
        """The server has told a thought apart: what comes is the answer, if none was begun in the text."""
        self._tail = None
        if self._read in (self._start, self._inside):
            self._note(self.begun_in_prompt or False)
            self._read, self._thought = self._start, True

    def note_answer(self) -> None:
        """What was taken for a thought was the answer."""
        self._note(False)

    def receive_text(self, text: str) -> Iterable[Thought | str]:
        """What `text` adds, an answer's piece as a string."""
        if self._passing and (self._tail is None or "<" not in text):
            if self._tail is not None:
                self._tail = text
            return (text,)
        return self._read_text(text)

    def _read_text(self, text: str) -> Iterator[Thought | str]:
        for at in range(0, len(text), MAX_PIECE):
            rest, self._begun = self._begun + text[at : at + MAX_PIECE], ""
            while rest:
                piece, rest = self._read(rest)
                if piece:
                    yield piece

    def receive_eof(self) -> Iterator[Thought | str]:
        """What still waits."""
        if self._read == self._thinking:
            begun: Thought | str = Thought(self._begun)
        else:
            begun = self._begun.lstrip() if self._thought else self._begun
        if self._begun and begun:
            yield begun

    # Each gives the piece that the text begins with, and what of it is still to be read.

    def _start(self, text: str) -> tuple[str, str]:
        said = text.lstrip()
        if opening := _first_of(said, TAGS):
            self._tail = None
            self._closing, self._read = TAGS[opening], self._opened
            return "", said[len(opening) :]
        if head := _first_of(said, _HEADS):
            if head == CLOSING and not self._thought:
                self._note(True)
            self._thought = True
            return "", said[len(head) :]
        if any(beginning.startswith(said) for beginning in _BEGINNINGS):
            self._begun = text
            return "", ""
        self._read = self._answer
        return "", said if self._thought else text

    def _inside(self, text: str) -> tuple[str, str]:
        said = text.lstrip()
        if not said:
            self._begun = text
        elif said[0] in _NO_WORDS:
            self.inside, self._read = False, self._start
        else:
            self._read = self._thinking
        return "", said

    def _opened(self, text: str) -> tuple[str, str]:
        thought = text.lstrip()
        if thought:
            self._read = self._thinking
        return "", thought

    def _thinking(self, text: str) -> tuple[Thought | None, str]:
        thought, closing, rest = text.partition(self._closing)
        if closing:
            if self.inside:
                self._note(True)
            self._tail, self._thought, self._read = None, True, self._start
        else:
            waits = _beginning_of(self._closing, text)
            thought, self._begun = text[: len(text) - waits], text[len(text) - waits :]
        return Thought(thought) if thought else None, rest

    def _answer(self, text: str) -> tuple[str, str]:
        if self._tail is not None:
            tail = self._tail[-len(CLOSING) :] + text
            if OPENING in tail:
                self._tail = None  # whatever is closed now was opened here
            elif _CLOSED.search(tail):
                self._note(True)
            else:
                self._tail = tail[-len(CLOSING) :]
        self._passing = self._tail is None or "<" not in self._tail
        return text, ""

    def _note(self, begun_in_prompt: bool) -> None:
        self.inside, self._tail = False, None
        self.begun_in_prompt = begun_in_prompt


def _first_of(text: str, beginnings: Iterable[str]) -> str:
    return next((beginning for beginning in beginnings if text.startswith(beginning)), "")


def _beginning_of(tag: str, text: str) -> int:
    """How many characters at the end of `text` may be the first ones of `tag`."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
