"""A conversation as plain values, free of any wire format.

`proxy.wire` makes these from what a client sent, `render_turn` makes text of them. Every string in
here is untrusted: it is escaped where it is rendered, not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cached_property
from itertools import takewhile
from sys import getsizeof

from msgspec import Struct

from parser import ToolRegistry

from .recent import Latest

# Bytes of the objects round the strings of an entry.
_OBJECTS = 1000

_STRINGS_OF_TOOLS: Latest[ToolRegistry, tuple[str, ...]] = Latest()


class Text(Struct, frozen=True):
    text: str


DETAILS = ("low", "high", "original")


class Image(Struct, frozen=True):
    """`url` is a data URL. `detail` is how closely it is looked at, one of `DETAILS`; None leaves that to the model."""

    url: str
    detail: str | None = None


Part = Text | Image


class Guidance(Struct, frozen=True):
    """A `system` or `developer` message, wherever it stood. `brings` as of a result."""

    text: str
    brings: tuple[str, ...] = ()


class UserTurn(Struct, frozen=True):
    parts: tuple[Part, ...]


class AssistantText(Struct, frozen=True):
    """`phase` is the Responses API's, `commentary` or `final_answer`, where its message had one."""

    text: str
    phase: str | None = None


class PastCall(Struct, frozen=True):
    """A call that the assistant made. `arguments` is the client's text, usually but not always JSON."""

    call_id: str
    name: str
    arguments: str


class ToolResult(Struct, frozen=True):
    """`call_id` matches `^[A-Za-z0-9_.:-]{1,128}$`: the request parser has checked it.

    `brings` are the names of tools that it shows, as `show_tools` does: they are on offer from here on.
    """

    call_id: str
    parts: tuple[Part, ...]
    brings: tuple[str, ...] = ()


Entry = Guidance | UserTurn | AssistantText | PastCall | ToolResult


class Transcript(Struct, frozen=True, dict=True):
    """`instructions` are the client's, for this request only; `entries` are in order of time."""

    entries: tuple[Entry, ...]
    instructions: str | None = None

    @cached_property
    def strings(self) -> tuple[str, ...]:
        """Every string that the model will read, part by part."""
        return (self.instructions or "", *strings_of(self.entries))

    @cached_property
    def leading_guidance(self) -> tuple[Guidance, ...]:
        """The guidance in front of the first user message, which stands with the instructions."""
        return tuple(entry for entry in self._before_user if isinstance(entry, Guidance))

    @property
    def conversation(self) -> tuple[Entry, ...]:
        """All entries but the leading guidance."""
        if not self.leading_guidance:
            return self.entries
        said = (entry for entry in self._before_user if not isinstance(entry, Guidance))
        return (*said, *self.entries[len(self._before_user) :])

    @property
    def _before_user(self) -> tuple[Entry, ...]:
        return tuple(takewhile(lambda entry: not isinstance(entry, UserTurn), self.entries))

    @property
    def newest_results(self) -> int:
        """With how many results of tools it ends."""
        return sum(1 for _ in takewhile(lambda entry: isinstance(entry, ToolResult), reversed(self.entries)))


class ChoiceMode(Enum):
    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class ToolChoice(Struct, frozen=True):
    """What the client demands. `names` limits the choice to these tools; None means all of them.

    A single named tool is `ToolChoice(ChoiceMode.REQUIRED, ("name",))`.
    """

    mode: ChoiceMode = ChoiceMode.AUTO
    names: tuple[str, ...] | None = None


class JsonAnswer(Struct, frozen=True):
    """The answer's text must be JSON: an object, or what fits `schema` (JSON text)."""

    schema: str | None = None


def untrusted_strings(transcript: Transcript, registry: ToolRegistry) -> Iterator[str]:
    """Every string of a request that somebody else wrote and the model will read, part by part."""
    # What the client and the model wrote is not trusted either: clients put notes into instructions, and an assistant
    # text or a past call may be the copy of one.
    yield from transcript.strings
    yield from strings_of_tools(registry)


def strings_of_tools(registry: ToolRegistry) -> tuple[str, ...]:
    """What their declarations say. The requests of one client often have the same registry, one after the other."""
    if (strings := _STRINGS_OF_TOOLS.get(registry)) is None:
        strings = tuple([text or "" for tool in registry for text in (tool.description, tool.parameters)])
        _STRINGS_OF_TOOLS.keep(registry, strings)
    return strings


def texts_of(entries: Iterable[Entry]) -> Iterator[str]:
    """What stands in `entries`, but for the names of past calls: who repeats a call quotes nobody."""
    return strings_of(entries, named=False)


def strings_of(entries: Iterable[Entry], *, named: bool = True) -> Iterator[str]:
    """What stands in them, with the names of past calls if they count."""
    for entry in entries:
        # For each entry of each request, so without patterns, which take three times as long.
        if isinstance(entry, (UserTurn, ToolResult)):
            for part in entry.parts:
                if isinstance(part, Text):
                    yield part.text
        elif isinstance(entry, PastCall):
            if named:
                yield entry.name
            yield entry.arguments
        else:
            yield entry.text


def bytes_taken(entries: Iterable[Entry]) -> int:
    """About how many bytes are taken by `entries`: their words, as they came and as the model is shown them."""
    taken = 0
    for entry in entries:
        taken += _OBJECTS
        if isinstance(entry, (UserTurn, ToolResult)):
            for part in entry.parts:
                taken += 2 * getsizeof(part.text if isinstance(part, Text) else part.url)
        elif isinstance(entry, PastCall):
            taken += 2 * (getsizeof(entry.name) + getsizeof(entry.arguments))
        else:
            taken += 2 * getsizeof(entry.text)
    return taken
