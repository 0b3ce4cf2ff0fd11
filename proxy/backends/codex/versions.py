"""Pure: which codex can do what. Every decision by version is made here.

0.160 and newer    supported: no tool of its own reaches the model, and a conversation keeps its lane
from 0.89 on       plays fixtures only: its protocol is read, so its recordings replay. It starts, with a warning:
                   some of its tools cannot be taken away
older              refused: tagcall cannot speak to its app-server
"""

from __future__ import annotations

import re
from enum import Enum


class Support(Enum):
    SUPPORTED = "supported"
    FIXTURES = "plays fixtures only"
    REFUSED = "refused"


# From which release on, the newest first.
FLOORS: tuple[tuple[tuple[int, ...], Support], ...] = (
    ((0, 160), Support.SUPPORTED),
    ((0, 89), Support.FIXTURES),
    ((0,), Support.REFUSED),
)
SUPPORTED_SINCE = FLOORS[0][0]

# What a person does about a program that is not supported.
TAKE_A_NEWER_ONE = "npm install -g @openai/codex, or name another with --codex PATH"


def release_of(version: str | None) -> tuple[int, ...]:
    """The version as numbers, for comparing; () when it is unknown."""
    return tuple(map(int, re.findall(r"\d+", (version or "").partition("-")[0])))


def standing_of(version: str | None) -> Support:
    """One that tells no version is supported, for it may be a stand-in."""
    release = release_of(version)
    if not release:
        return Support.SUPPORTED
    return next(standing for since, standing in FLOORS if release >= since)


def written(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))
