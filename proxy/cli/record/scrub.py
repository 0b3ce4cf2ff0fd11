"""Takes private things out of a recording: keys, people, and paths of this machine.

One `Scrubber` replaces equal things by equal placeholders, so that a request, the model's text and the client's answer
still belong together. Each request has its own `Scrubber`, so that it shows nothing of earlier recordings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from ...replay.key_placeholder import PLACEHOLDER
from ...replay.placeholders import HOME, KEY, PERSON, REDACTED, WINDOWS_HOME, mail_address
from ...turn.filters import places
from .secrets import KEYS, LONG, NAMED_SECRETS, SECRET_NAME

_HOMES = re.compile(r"/(?:home|Users)/[^/\s\"'`:;,<>()]+|(?<![\w/])/root(?=/|\b)")
# A folder of pytest's `tmp_path` or of Python's `tempfile`: the first has the user's name, and each run has others.
_RUN = (
    r"(?:pytest-of-[^/\\\s\"'`:;,<>()]{1,64}[/\\]{1,8}pytest-\d{1,9}(?:[/\\]{1,8}popen-gw\d{1,9})?"
    r"|tmp[a-z0-9_]{8}(?=[/\\]|\b))"
)
_TEMPORARY = re.compile(rf"(?<![\w/.])(?:/private)?(?:/var)?/(?:tmp|folders/[\w+-]{{1,64}}/[\w+-]{{1,64}}/T)/{_RUN}")
_WINDOWS_HOMES = re.compile(
    rf"\b[A-Za-z]:\\+Users\\+[^\\\s\"'`:;,<>()]+(?:\\{{1,8}}AppData\\{{1,8}}Local\\{{1,8}}Temp\\{{1,8}}{_RUN})?"
)
# An id that tagcall made, where it stands in a text.
_IDS = re.compile(r"(?<![0-9A-Za-z])[a-z]{1,16}_[0-9a-f]{32}(?![0-9A-Za-z])")
_EMAILS = re.compile(r"(?<![\w.+-])[\w.+-]++(?:@|%40)[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")

# Members that name a person or an account, wherever they stand.
_PERSONAL = frozenset(
    {
        "user", "safety_identifier", "prompt_cache_key",  # the last two stand in the place of the first
        "account_id", "organization", "chatgpt_account_id", "user_id",
    }
)  # fmt: skip


class _Cut(Struct, frozen=True):
    start: int
    end: int
    instead: str


class Scrubber(Struct):
    """`keys` and `folders` are known ones, whatever they look like; `call_keys` are those of the turns.

    Of what fits one of `patterns` its first group goes, or all of it where that has no part in it. `names` are those
    that ids have in the request.
    """

    keys: Iterable[str] = ()
    call_keys: Iterable[str] = ()
    folders: Iterable[Path] = ()
    patterns: Iterable[re.Pattern[str]] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    _emails: dict[str, str] = field(default_factory=dict)

    def for_request(self, call_keys: Iterable[str]) -> Scrubber:
        """One that knows what this one was given, and has met nothing."""
        return replace(self, call_keys=call_keys, names={}, _emails={})

    def text(self, text: str) -> str:
        return self.pieces([text])[0]

    def pieces(self, pieces: Sequence[str]) -> list[str]:
        """A text that came in pieces. What goes over a cut is replaced in the piece where it begins."""
        whole = "".join(pieces)
        scrubbed: list[str] = []
        begin = 0
        cuts = list(self._cuts(whole))
        for piece in pieces:
            end = begin + len(piece)
            scrubbed.append(_without(whole, begin, end, cuts))
            begin = end
        return scrubbed

    def value(self, value: object) -> object:
        """A copy of a JSON value with all its texts scrubbed."""
        match value:
            case dict():
                return {
                    key: (_named(key) if isinstance(member, str) and member else None) or self.value(member)
                    for key, member in value.items()
                }
            case list():
                return [self.value(member) for member in value]
            case str():
                return self.text(value)
            case _:
                return value

    def _cuts(self, text: str) -> Iterator[_Cut]:
        """What is to be replaced, from left to right, none over another."""
        found = [
            *(_Cut(at, to, PLACEHOLDER) for key in self.call_keys for at, to, whole in places(key, text) if whole),
            *(_Cut(*_wanted(at), REDACTED) for pattern in self.patterns for at in pattern.finditer(text)),
            *(_Cut(at.start(), at.end(), KEY) for pattern in self._known_keys() for at in pattern.finditer(text)),
            *(_Cut(*_wanted(at), REDACTED) for pattern in NAMED_SECRETS for at in pattern.finditer(text)),
            *(_Cut(at.start(), at.end(), HOME) for pattern in self._known_homes() for at in pattern.finditer(text)),
            *(_Cut(at.start(), at.end(), WINDOWS_HOME) for at in _WINDOWS_HOMES.finditer(text)),
            *(_Cut(at.start(), at.end(), self._email(at[0])) for at in _EMAILS.finditer(text)),
            *(_Cut(at.start(), at.end(), self.names[at[0]]) for at in _IDS.finditer(text) if at[0] in self.names),
        ]
        end = 0
        whole = (cut for cut in found if cut.end > cut.start)
        for cut in sorted(whole, key=lambda cut: (cut.start, -cut.end)):
            if cut.start >= end:
                yield cut
            elif cut.end > end:  # what one leaves of another goes as well
                yield _Cut(end, cut.end, "")
            end = max(end, cut.end)

    def _known_keys(self) -> Iterator[re.Pattern[str]]:
        yield from (_known_key(key) for key in self.keys if key)
        yield KEYS

    def _known_homes(self) -> Iterator[re.Pattern[str]]:
        for folder in sorted(map(str, self.folders), key=len, reverse=True):
            if folder.strip("/"):
                # Inside of JSON a backslash is escaped, as often as the JSON stands in JSON.
                place = re.escape(folder.rstrip("/")).replace(r"\\", r"\\{1,8}")
                yield re.compile(rf"{place}(?=/|\b)")
        yield from (_HOMES, _TEMPORARY)

    def _email(self, address: str) -> str:
        return self._emails.setdefault(address, mail_address(len(self._emails) + 1))


def _known_key(key: str) -> re.Pattern[str]:
    """A short key may be a part of words, which say nothing of it. An escape of JSON in front is no part of one."""
    if len(key) >= LONG:
        return re.compile(re.escape(key))
    return re.compile(rf"(?:(?<![^\W_])|(?<=\\[bfnrt])){re.escape(key)}(?![^\W_])")


def with_names(value: object, names: Mapping[str, str]) -> object:
    """A copy of a JSON value with the name of each id that has one, also where it stands in a text."""
    match value:
        case dict():
            return {key: with_names(member, names) for key, member in value.items()}
        case list():
            return [with_names(member, names) for member in value]
        case str():
            return _IDS.sub(lambda found: names.get(found[0], found[0]), value)
        case _:
            return value


def _named(member: str) -> str | None:
    """What stands instead of the text that is a member of this name; None for most."""
    if member in _PERSONAL:
        return PERSON
    return REDACTED if SECRET_NAME.search(member) else None


def _wanted(match: re.Match[str]) -> tuple[int, int]:
    return match.span(1 if match.re.groups and match[1] is not None else 0)


def _without(whole: str, begin: int, end: int, cuts: Iterable[_Cut]) -> str:
    out: list[str] = []
    at = begin
    for cut in cuts:
        if cut.end <= at or cut.start >= end:
            continue
        if cut.start >= begin:
            out += [whole[at : cut.start], cut.instead]
        at = min(end, cut.end)
    out.append(whole[at:end])
    return "".join(out)


# The deltas of one item, which are one text: method, and what tells its items apart.
_DELTAS: Mapping[str, tuple[str, ...]] = {
    "item/agentMessage/delta": ("itemId",),
    "item/reasoning/summaryTextDelta": ("itemId", "summaryIndex"),
    "item/reasoning/textDelta": ("itemId", "contentIndex"),
}


def scrub_messages(messages: Sequence[dict[str, object]], scrubber: Scrubber) -> list[object]:
    """The messages of an app-server, their deltas scrubbed as the texts that they make."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for at, message in enumerate(messages):
        if (group := _group(message)) is not None:
            groups.setdefault(group, []).append(at)
    deltas = {
        at: piece
        for places in groups.values()
        for at, piece in zip(places, scrubber.pieces([_delta(messages[at]) for at in places]), strict=True)
    }
    return [_with_delta(scrubber.value(message), deltas.get(at)) for at, message in enumerate(messages)]


def _group(message: Mapping[str, object]) -> tuple[object, ...] | None:
    match message:
        case {"method": str(method), "params": {"delta": str(), **params}} if method in _DELTAS:
            return (method, params.get("threadId"), *(params.get(name) for name in _DELTAS[method]))
        case _:
            return None


def _delta(message: Mapping[str, object]) -> str:
    match message:
        case {"params": {"delta": str(delta)}}:
            return delta
        case _:
            return ""


def _with_delta(message: object, delta: str | None) -> object:
    match message:
        case {"params": dict(params), **rest} if delta is not None:
            return {**rest, "params": {**params, "delta": delta}}
        case _:
            return message
