"""A conversation that is too long: how the model is asked for a summary of it, and how the summary is shown later."""

from __future__ import annotations

from .prose import passage


def compaction_request() -> str:
    """The last message of a conversation that is to be summarised."""
    return passage("compaction")


def summarised(summary: str) -> str:
    """A message that stands for the part of a conversation that `summary` sums up."""
    return f"{passage('summary')}\n\n{summary}"
