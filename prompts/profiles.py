"""Which optional lines a kind of model is given. What is known about each: docs/reference/prompts.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class PromptProfile:
    """Switches of the prompt.

    `remind_after` is the length of the conversation, in characters, from which its end repeats how a tool is called;
    None means never. `after_results` adds a neutral line when tool results are the newest entry. `example` shows the
    worked example. `bare_calls` says that an answer which is nothing but one call is that call, also without its tags,
    or with a header in place of them.
    `named_results`: where the conversation is messages, results name their tool, and the line behind them repeats the
    request.
    `doubts_answers`: so are answers that say nothing of their own, and calls right behind results that add nothing
    (`grounds`).
    """

    name: str
    remind_after: int | None
    after_results: bool
    example: bool = True
    bare_calls: bool = False
    named_results: bool = False
    doubts_answers: bool = False


# Large models lose sight of a block far behind them, and decide well on their own whether a result is enough.
FRONTIER = PromptProfile("frontier", remind_after=20_000, after_results=False)
# Small models take a reminder for a part of the request, repeat calls unless told that they may stop, and often
# leave the tags out. A result alone they repeat where the next call was due.
SMALL = PromptProfile(
    "small",
    remind_after=None,
    after_results=True,
    bare_calls=True,
    named_results=True,
    doubts_answers=True,
)

PROFILES: Mapping[str, PromptProfile] = MappingProxyType({profile.name: profile for profile in (FRONTIER, SMALL)})
