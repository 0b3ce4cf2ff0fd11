"""What a service runs, and what the system is told of it. Each system's module makes the second of the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

# What it is called wherever one has to find it.
NAME = "tagcall"
DESCRIPTION = "tagcall: OpenAI tool calling for text-only LLM backends"
# Seconds that the server may take to end: the turns that run, their farewell, the child's three waits, and some more.
STOP_TIMEOUT = 45


class ServiceJob(Struct, frozen=True):
    """`argv[0]` is an absolute path. `folder` is where relative paths among the arguments begin."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path


class Service(Struct, frozen=True):
    """What `file` holds, and the commands that put it in force, ask for it and take it out of force."""

    file: Path
    text: bytes
    start: Sequence[Sequence[str]]
    status: Sequence[str]
    stop: Sequence[Sequence[str]]
    remark: str
    """Where its log is, and what a person should know."""
