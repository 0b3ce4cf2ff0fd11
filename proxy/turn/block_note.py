"""What became of a block that a model wrote, by names: what people are told of it, and what logs count."""

from __future__ import annotations

import re
from typing import Protocol

from msgspec import Struct

from .reason import Fate, Reason, Ruling

# Characters of a name that leave.
LONGEST_NAME = 64
_NAME = re.compile(r"[\w.:/-]+", re.ASCII)
# How a block that cannot be read names its tool, if it does.
_NAMED = re.compile(r'"(?:name|tool|function)"\s{0,20}:\s{0,20}"([^"\\]{1,200})"')
# The one fault of arguments whose sentence has no word of theirs: the name is the schema's.
_MISSING = re.compile(r"(?:at '[^']+': )?'([\w.-]+)' is a required property", re.ASCII)


def safe_name(name: str) -> str:
    """A name that a model wrote, as far as anybody may see it: nothing of one that is no name of a tool."""
    cut = name[:LONGEST_NAME]
    return cut if _NAME.fullmatch(cut) else ""


def name_in(block: str) -> str:
    """That of a block which cannot be read, where it has one."""
    found = _NAMED.search(block)
    return safe_name(found[1]) if found else ""


class BlockNote(Struct, frozen=True, kw_only=True):
    """`attempt` counts the turn's answers from 0. `name` is that of its tool, `written` the one that it had.

    Both are for anybody, and `problem` is for those who may see the model's words. `rules` are those that helped to
    read it; `fenced`: it stood in a code fence.
    """

    attempt: int
    ruling: Ruling
    name: str
    written: str = ""
    problem: str = ""
    rules: tuple[str, ...] = ()
    fenced: bool = False

    @property
    def reason(self) -> Reason:
        return self.ruling.reason

    @property
    def is_call(self) -> bool:
        """Whether it may leave as one, whatever comes of its answer."""
        return Fate.CALL in {self.ruling.fate, self.ruling.then}

    @property
    def renamed(self) -> str:
        """What its tool was called, where it was called otherwise."""
        return self.written if self.is_call and self.written not in {"", self.name} else ""

    @property
    def lacking(self) -> str:
        """In words for people, the argument that is missing, if that is its fault."""
        found = _MISSING.fullmatch(self.problem)
        return f" ({found[1]} is missing)" if found else ""


class TurnObserver(Protocol):
    """Told while the turn runs, perhaps on another thread. A `block` is as the model wrote it, its key included."""

    def judged(self, note: BlockNote, block: str) -> None:
        """This was made of it."""
