"""Which optional lines a kind of model is given, and which rules are kept for it. What is known about each:
docs/reference/prompts.md and docs/reference/measurements.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace


class ModelRule(StrEnum):
    """What an answer is helped with because models write what they should not. None is kept without a figure.

    A figure says how many answers of a small model are right with the rule alone, of 80 behind results and 44 others.
    `tagcall eval --without RULE` measures one. What a rule did is counted under its name.
    """

    HEADER = "header"
    """A header of ours is taken out where an answer begins: 8 of the 80."""
    OWN_LINE = "own_line"
    """A line of ours that the model repeats is taken out: 2 of the 80."""
    INVENTED_RESULT = "invented_result"
    """A line behind a call that tells what the call returned is taken out: 4 of the 44."""
    NOTHING_NEW = "nothing_new"
    """A call right behind results that adds nothing to them is asked for once more (`Grounds`): 7 of the 80."""
    ECHO = "echo"
    """An answer that is nothing but a result is asked for once more: 1 of the 80."""
    ECHO_OF_LINE = "echo_of_line"
    """So is one that is nothing but a line of ours: it would be empty, which none of the 124 was."""


# What models of any size write.
_FOR_ALL = frozenset({ModelRule.HEADER, ModelRule.OWN_LINE, ModelRule.INVENTED_RESULT})


class PromptProfile(Struct, frozen=True):
    """Switches of the prompt.

    `remind_after` is the length of the conversation, in characters, from which its end repeats how a tool is called;
    None means never. `after_results` adds a neutral line when tool results are the newest entry. `example` shows the
    worked example. `bare_calls` says that an answer which is nothing but one call is that call, also without its tags,
    or with a header in place of them.
    `named_results`: where the conversation is messages, results name their tool, and the line behind them repeats the
    request.
    `rules` are those that are kept for such a model.
    """

    name: str
    remind_after: int | None
    after_results: bool
    example: bool = True
    bare_calls: bool = False
    named_results: bool = False
    rules: frozenset[ModelRule] = _FOR_ALL

    def without(self, rule: ModelRule) -> PromptProfile:
        return replace(self, rules=self.rules - {rule})


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
    rules=frozenset(ModelRule),
)

PROFILES: Mapping[str, PromptProfile] = MappingProxyType({profile.name: profile for profile in (FRONTIER, SMALL)})
