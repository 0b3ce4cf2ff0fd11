"""A whole call as it was read, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from parser import CallCompleted, Tier, Tool
from prompts import CallWords, unescape_json

from .coercion import Coerced, Doubtful, fit, read_parameter_types
from .filters import masked
from .turn_key import Carried


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where in which answer a call stands.

    `quoted`: where a call is shown. `held`: in an answer that could be nothing but calls. `first`: in the first answer
    of its turn. `good`: behind a good call, which may have `left`, as may this one while it was written.
    `behind_keyed`: behind one with the key. `doubted`: behind one that may not be meant. `may_repeat`: one that was
    made before, or adds nothing, is as good as any.
    """

    quoted: bool = False
    held: bool = False
    first: bool = True
    good: bool = False
    left: bool = False
    behind_keyed: bool = False
    doubted: bool = False
    may_repeat: bool = False

    @property
    def may_ask(self) -> bool:
        """Whether the model can be asked for it once more. Not behind a call that leaves: that one would come twice."""
        return self.first and not (self.good or self.left)


@dataclass(frozen=True)
class ReadCall:
    """A call of `tool` (None: of one that is not on offer), the `key` where it belongs."""

    call: CallCompleted
    tool: Tool | None
    carried: Carried
    key: str | None = None

    @property
    def name(self) -> str:
        return self.tool.name if self.tool else self.call.name

    @cached_property
    def arguments(self) -> str:
        """With tags as the model meant them."""
        return unescape_json(self.call.arguments)

    @cached_property
    def fitted(self) -> Coerced | Doubtful:
        """The model's own characters, with the key masked, but for what its tool's schema took.

        Before any check, for a tool is called rightly when its schema says what a "3" is.
        """
        return fit(
            masked(self.arguments, self.key),
            read_parameter_types((self.tool and self.tool.parameters) or ""),
            beside=[(name, unescape_json(value)) for name, value in self.call.extra],
            repaired=self.call.tier not in {Tier.VALID, Tier.HELD},
        )

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name, self.call.name})

    @property
    def words(self) -> CallWords:
        return CallWords.of(self.names, self.arguments)

    @property
    def without_tags(self) -> bool:
        return self.call.tier in {Tier.BARE, Tier.HELD}

    def is_held(self, at: Standing) -> bool:
        """Whether its model could write nothing else, since the request demands a call."""
        return at.held and self.call.tier is Tier.HELD
