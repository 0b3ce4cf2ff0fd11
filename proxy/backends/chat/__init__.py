"""A server that speaks OpenAI's Chat Completions API: it is given text and gives text.

kind             its rows in the table: an address, and the local servers whose address is known
servers          those servers: where they listen, how they are started and given more context
backend          the `TextBackend`: one request a turn, on connections that are kept alive
requests         pure: a prompt as the body of a request, in the manner that its server takes
grammar          pure: llama.cpp's grammar for text in which every call fits
patience         how long an answer's bytes are waited for
stream           pure: the bytes of an answer to backend events
characters       pure: those that a server cut, put together again
thinking         pure: reasoning that stands in the text, in front of the answer
errors           pure: every failure and the client's answer to it
context_size     how many tokens a model reads, as its server tells
examination      what `doctor` finds out

A name below is loaded when it is first asked for: most backends do without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .backend import ChatBackend

__all__ = ["ChatBackend"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import backend  # noqa: PLC0415 -- the point of this function

    return getattr(backend, name)
