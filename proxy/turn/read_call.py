"""A whole call as it was read, where it stands, and whether it is shown, as what stands behind it may tell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from parser import CallCompleted, Tier, Tool
from prompts import CallWords, Place, essence, unescape_json

from ..schema.coercion import Coerced, Doubtful, fit, read_parameter_types
from ..schema.declared import ToolSchemas
from .filters import masked
from .turn_key import Carried

# Characters behind a call in which its own result is looked for.
_MOST_BEHIND = 200
# A line that announces it.
_ANNOUNCED = re.compile(rf"(?=[^\n]{{0,{_MOST_BEHIND - 1}}}\n)[^\n]*:[ \t]*\n\s*")


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


class Showing:
    """Whether a call is shown: by its place, and for one that has `results` by whether one of them follows it.

    Hear the text behind it as it comes; how it is cut does not count.
    """

    def __init__(self, place: Place, results: frozenset[str] | None = None) -> None:
        self._place = place
        self._results = results
        self.behind = ""
        """What was heard."""

    @property
    def awaits_result(self) -> bool:
        """Whether it is a call that has its result already."""
        return self._results is not None

    def is_shown(self, *, ended: bool = False) -> bool | None:
        """None: not known yet. `ended`: nothing more follows, or another block does."""
        if self._place.is_quoted or (self._results is not None and self._place.is_listed):
            return True
        # All that is asked is asked: neither may be known before the other because of how the text came.
        quoted = self._place.is_quoted_by(self.behind, ended=ended) if self._place.may_be_quoted else False
        told = self._tells_result(ended=ended)
        if quoted or told:
            return True
        return None if quoted is None or told is None else False

    def _tells_result(self, *, ended: bool) -> bool | None:
        if not self._results:
            return False
        said = self.behind.lstrip()
        announced = _ANNOUNCED.match(said)
        line, found, _ = said[announced.end() if announced else 0 :].partition("\n")
        if not (found or ended or len(line) >= _MOST_BEHIND):
            return None
        told = essence(line[:_MOST_BEHIND])
        return any(result in told for result in self._results)


class Waiting:
    """Calls that wait, all of one block, and a second close tag of it. `cut`, `held`: as of the last that came."""

    __slots__ = ("calls", "closer", "cut", "held")

    def __init__(self) -> None:
        self.calls: list[tuple[ReadCall, Showing]] = []
        self.closer = ""
        self.cut = self.held = False

    def hear(self, text: str) -> bool:
        """Hears what follows. Returns whether that is enough to tell."""
        for _, showing in self.calls:
            showing.behind += text
        return all(showing.is_shown() is not None for _, showing in self.calls)

    @property
    def behind(self) -> str:
        """What was heard."""
        return self.calls[0][1].behind if self.calls else ""
