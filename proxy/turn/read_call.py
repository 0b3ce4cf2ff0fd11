"""A whole call as it was read, its place, and whether it is only shown. The text behind it may decide that."""

from __future__ import annotations

import re
from functools import cached_property

from msgspec import Struct, field

from parser import CallCompleted, Tier, Tool
from prompts import CallWords, Place, essence, unescape_json

from ..schema.coercion import Coerced, Doubtful, fit, read_parameter_types
from ..schema.declared import ToolSchemas
from .filters import masked
from .plan import Attempt
from .turn_key import Carried

# Characters behind a call in which its own result is looked for.
_MOST_BEHIND = 200
# A line that announces it.
_ANNOUNCED = re.compile(rf"(?=[^\n]{{0,{_MOST_BEHIND - 1}}}\n)[^\n]*:[ \t]*\n\s*")


class Standing(Struct, frozen=True, kw_only=True):
    """Where in the answer to an `attempt` a call stands.

    `quoted`: where a call is shown. `held`: in an answer that could be nothing but calls. `good`: behind a good call,
    which may have `left`, as may this one while it was written. `doubted`: behind one that may not be meant, for which
    the whole answer is asked for once more. `behind_keyed`: behind one with the key.
    """

    attempt: Attempt
    held: bool
    quoted: bool = False
    good: bool = False
    doubted: bool = False
    left: bool = False
    behind_keyed: bool = False

    @property
    def may_ask(self) -> bool:
        """Whether the model can be asked for it once more. Not behind a call that leaves: that one would come twice."""
        return self.attempt.is_first and not (self.good or self.left)


class ReadCall(Struct, frozen=True, dict=True):
    """A call of `tool` (None: of one that is not on offer), the `key` where it belongs."""

    call: CallCompleted
    tool: Tool | None
    carried: Carried
    key: str | None = None
    schemas: ToolSchemas | None = None

    @property
    def name(self) -> str:
        return self.tool.name if self.tool else self.call.name

    @property
    def raw(self) -> str:
        """With what the answer put in front of it."""
        return self.call.before + self.call.raw

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
    def forms(self) -> set[str]:
        """The arguments as the conversation may have them: as they were written, and as they were passed on."""
        return {self.arguments, self.fitted.arguments if isinstance(self.fitted, Coerced) else self.arguments}

    @cached_property
    def problem(self) -> str:
        """What its tool's schema has against the arguments."""
        if self.tool is None or self.schemas is None or isinstance(self.fitted, Doubtful):
            return ""
        return self.schemas.problem(self.tool, self.fitted.arguments) or ""

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


class Showing(Struct, frozen=True):
    """Whether a call is shown: by its `place`, and for one that has `results` by whether one of them follows it.

    `behind` is the text behind it, as far as it came; how that is cut does not count. It has `ended` where nothing more
    follows, or another block.
    """

    place: Place
    results: frozenset[str] | None = None

    def is_shown(self, behind: str = "", *, ended: bool = False) -> bool | None:
        """None: not known yet."""
        if self.place.is_quoted or (self.results is not None and self.place.is_listed):
            return True
        # All that is asked is asked: neither may be known before the other because of how the text came.
        quoted = self.place.is_quoted_by(behind, ended=ended) if self.place.may_be_quoted else False
        result = self._has_result(behind, ended=ended)
        if quoted or result:
            return True
        return None if quoted is None or result is None else False

    def _has_result(self, behind: str, *, ended: bool) -> bool | None:
        if not self.results:
            return False
        said = behind.lstrip()
        announced = _ANNOUNCED.match(said)
        line, found, _ = said[announced.end() if announced else 0 :].partition("\n")
        if not (found or ended or len(line) >= _MOST_BEHIND):
            return None
        letters = essence(line[:_MOST_BEHIND])
        return any(result in letters for result in self.results)


class Waiting(Struct):
    """Calls of one block, the text behind it so far, and a second close tag of it. `cut`: as of the last that came."""

    calls: list[tuple[ReadCall, Showing]] = field(default_factory=list)
    behind: str = ""
    closer: str = ""
    cut: bool = False

    def hear(self, text: str) -> bool:
        """Hears what follows. Returns whether that is enough."""
        self.behind += text
        return all(showing.is_shown(self.behind) is not None for _, showing in self.calls)
