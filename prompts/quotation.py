"""Whether a call that came without the key is a quotation: by where it stands in the answer, or by its words.

`Place`      where it stands: inside of a sentence, in quotes, in code, in a table
`SentWords`  what the client sent: whether the call's name and values stand there, and the letters of our tag

No text of the client's is read for calls. Words are compared by their `essence`, so that no spelling of a call
has to be known. Instructions, guidance and declarations of tools are trusted: an example there is a lesson.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import takewhile

from msgspec import Struct

from .canonical import Number, leaves
from .spelling import essence, typed
from .summary import is_summary
from .transcript import Entry, Guidance, ToolResult, Transcript, UserTurn, texts_of

# The tag's word in an essence, with digits for letters that they look like.
_TAG_WORD = re.compile("t[o0]{2}[l1]c[a4][l1]{2}")
# What has its letters and is none of it, unless a tag opens there: a tool call in prose, the list in OpenAI's JSON,
# which stands in many a log, and the id of a result.
_PROSE = re.compile(
    r"(?:(?P<opener>[<;/\\%])\s{0,8})?\b(?:tool[\s-]{1,4}calls?\b|tool_calls\b|tool:\s?call)", re.IGNORECASE
)
# Letters and digits of a block that tell it from others. Less, as `{"name":` has, is what any two have in common.
_TELLING = 10


class CallWords(Struct, frozen=True):
    """The words of one call: its names, any of which will do, and each line of its values, as essences."""

    names: frozenset[str]
    values: frozenset[str]

    @classmethod
    def of(cls, names: Iterable[str], arguments: str) -> CallWords:
        """`arguments` is the JSON text of an object."""
        # By lines: what stands in front of each line of a text may be a program's.
        lines = (line for value in scalars(arguments) for line in value.splitlines())
        return cls(frozenset(map(essence, names)), frozenset(filter(None, map(essence, lines))))

    def stand_in(self, *texts: str) -> bool:
        """Whether a name and all values stand in these essences, each in any of them."""
        named = any(name in text for name in self.names for text in texts)
        return named and all(any(value in text for text in texts) for value in self.values)


class _Words:
    """The essence of some entries, made when it is asked for."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = entries

    @cached_property
    def _text(self) -> str:
        # Of all at once: what is cut over two texts is whole in a copy of both.
        return "\n".join(texts_of(self._entries))

    @cached_property
    def essence(self) -> str:
        return essence(self._text)

    @cached_property
    def hold_tag(self) -> bool:
        """Whether the word of our tags stands there, however it is spelled."""
        found = len(_TAG_WORD.findall(self.essence))
        return found > sum(not said["opener"] for said in _PROSE.finditer(self._text)) if found else False


class SentWords:
    """The words that a client sent, by where they stand.

    older     the conversation before the last user message, and a summary of it
    message   that message, or several in a row
    newer     what came behind it, of which `outputs` are the tools' results
    """

    def __init__(self, transcript: Transcript) -> None:
        said = [entry for entry in transcript.entries if not isinstance(entry, Guidance)]
        summaries = [entry for entry in said if isinstance(entry, UserTurn) and is_summary(entry)]
        said = [entry for entry in said if entry not in summaries]
        asked = [at for at, entry in enumerate(said) if isinstance(entry, UserTurn)]
        # Where nobody has asked anything, all of it is what the model answers to.
        end = asked[-1] + 1 if asked else 0
        begin = end - sum(1 for _ in takewhile(lambda entry: isinstance(entry, UserTurn), reversed(said[:end])))
        self._older = _Words([*said[:begin], *summaries])
        self._message = _Words(said[begin:end])
        self._newer = _Words(said[end:])
        self.outputs = _Words([entry for entry in said[end:] if isinstance(entry, ToolResult)])
        self._all = (self._message, self._newer, self._older)

    @cached_property
    def hold_tag(self) -> bool:
        """Whether the word of our tags stands in any of it."""
        return any(words.hold_tag for words in self._all)

    def quote(self, call: CallWords, *, demanded: bool = False) -> bool:
        """Whether a call without the key has all its words from here.

        Where a call is `demanded` the one that the user wrote, or spoke of before, is meant.
        """
        return self.hold_tag and call.stand_in(*self._foreign_to(call, demanded=demanded))

    def quote_in_outputs(self, call: CallWords) -> bool:
        """Whether a call has all its words from new outputs of tools, in which the word of our tags stands, too."""
        return self.outputs.hold_tag and call.stand_in(self.outputs.essence)

    def name_in_outputs(self, name: str) -> bool:
        """Whether a tool is named in new outputs."""
        return essence(name) in self.outputs.essence

    def quote_json_in_outputs(self, names: Iterable[str], arguments: str) -> bool:
        """Whether a call stands in new outputs as JSON, or the like: its arguments in a row with their names."""
        given = essence(arguments)
        return bool(given) and given in self.outputs.essence and any(map(self.name_in_outputs, names))

    def hold_text(self, raw: str) -> bool:
        """Whether a block stands here, letter by letter. Never of one that holds next to nothing."""
        wanted = essence(raw)
        return len(_TAG_WORD.sub("", wanted)) >= _TELLING and any(wanted in words.essence for words in self._all)

    def quote_json(self, raw: str, call: CallWords, *, demanded: bool = False) -> bool:
        """Whether a call without tags has all its JSON from here, where its words would count: that needs no tag."""
        wanted = essence(raw)
        return any(wanted in text for text in self._foreign_to(call, demanded=demanded, tagged=False))

    def _foreign_to(self, call: CallWords, *, demanded: bool, tagged: bool = True) -> list[str]:
        """Where the call's words are somebody else's, and not what the user asks for in words of their own."""
        texts = [self._newer.essence]
        if not demanded:
            if not tagged or self._message.hold_tag:
                texts.append(self._message.essence)
            # An old note may still be asked for, unless the user says what the call is about: all values, or its name.
            if any(word not in self._message.essence for word in call.values or call.names):
                texts.append(self._older.essence)
        return texts


def scalars(arguments: str) -> Iterator[str]:
    """The strings in the JSON object `arguments`, and the digits of its numbers.

    `true` and `null` are written in many ways, and named by nobody.
    """
    for value in leaves(arguments):
        if isinstance(value, str | Number):
            yield value if isinstance(value, str) else value.digits


# What a line of a list begins with, where past calls are shown; and one of a quotation, a table or a comment, in a list
# or not.
_LIST = r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]"
_LISTED = re.compile(_LIST)
_MARKED = re.compile(rf"(?:{_LIST})?[ \t]*(?:[>|#;%!]|//|/\*|\(\*|\{{-|--|[-+]\Z|<!--|rem[ \t])", re.IGNORECASE)
_INDENTED = re.compile(r" {4}| {0,3}\t")
# What stands right in front of a call that is the value of a member of YAML, its name in small letters; or a cell of a
# table without bars around it, behind another one or in the first row; or the first of what a quote opens for.
_VALUE = re.compile(
    r"(?:^|\n)[ \t]*(?:- )?[a-z][\w-]*:(?:[ \t]+|[ \t]*(?:[|>][+-]?)?\n[ \t]+(?:- )?)\Z"
    r"|\|[ \t]*\Z|\n(?=[^\n|]*\|)(?=[^\n-]*-)[ \t:|-]+\n\Z"
    r"|(?<![A-Za-z0-9_\u00c0-\u1fff.!?;)\]}])[\"'\u2018\u201a\u201c\u201e\u00ab\u2039\u300c\u300e](?:\0[\s,;]*)*\Z"
)
# Elements of HTML that hold text.
_ELEMENT = re.compile(
    r"<(?:a|b|blockquote|code|dd|del|div|dt|em|h[1-6]|i|ins|kbd|li|mark|p|pre|q|samp|small|span|strong|td|th|tt|u|var)"
    r"\b[^<>]*>",
    re.IGNORECASE,
)
# What shows all that follows, where it begins a line or stands on the call's -> what ends that. Elsewhere it is spoken
# of, and the sign of a comment may be in a path, as `notes/*.md`. Models put examples into an element of that name.
_SHOWS = re.compile(
    r"(?m)^(?:[ \t]|<[^<>]*>)*(?:(<|\\begin\{)(blockquote|code|examples?|lstlisting|minted|pre|samp|td|textarea|th"
    r"|verbatim|xmp)\b[^<>]*?[>}]|(<!--|/\*(?!\.)|<!\[cdata\[))"
)
_ENDS = {"<": "</", "\\begin{": "\\end{", "<!--": "-->", "/*": "*/", "<![cdata[": "]]>"}
# Quotes of programs over lines, where they stand right in front.
_LONG_QUOTES = ('"""', "'''")
# What closes as it opens; others are typed as these. All else that may close, and open, is one of Unicode's brackets or
# quotes, which some languages use the other way round.
_MARKS = frozenset("\"'`*_~|=")
_CLOSERS, _OPENERS = frozenset({"Pe", "Pf", "Pi"}), frozenset({"Ps", "Pf", "Pi"})
# Points of any language in front of what closes, and line ends as strings have them.
_POINTS = re.compile(r"\A(?:[\s.,;:!?\u2026\u3001\u3002\uff0c\uff01\uff1a\uff1b\uff1f\u060c\u061f\u0964]|\\[nrt])+")
# A word, but for the name of an element; what may be the beginning of one is not known yet.
_WORD = re.compile(r"[^\W_]")
_MARKUP = re.compile(r"<[/!?]?[A-Za-z][^<>]*>")
_MARKUP_BEGUN = re.compile(r"<(?:[/!?]?(?:[A-Za-z][^<>]*)?)?\Z")
# Characters behind a call in which it is seen what closes it.
_MOST_BEHIND = 200
# Characters in front of a call in which it is seen where it stands.
CONTEXT = 2000
# Stands for another block.
BLOCK = "\0"


class Place(Struct, frozen=True):
    """Where a block stands: behind the text `before`, the end of the answer so far, with a `BLOCK` for each other one.

    What stands behind it may have to come yet.
    """

    before: str

    @property
    def _line(self) -> str:
        return self.before[self.before.rfind("\n") + 1 :]

    @property
    def _near(self) -> str:
        """What stands in front of it on its line, back to another block."""
        return self._line.rpartition(BLOCK)[2]

    @property
    def is_quoted(self) -> bool:
        """Whether what stands in front of it says that it is shown."""
        begins_line = bool(_MARKED.match(typed(self._line)) or (self.before.strip() and _INDENTED.match(self._line)))
        return begins_line or bool(_VALUE.search(self.before)) or self._is_open

    @property
    def _is_open(self) -> bool:
        said = self.before.lower()
        shows = ((show.end(), _ENDS[show[1] or show[3]] + (show[2] or "")) for show in _SHOWS.finditer(said))
        shown = any(end not in said[at:] for at, end in shows)
        in_quotes = any(said.rstrip().endswith(quotes) and said.count(quotes) % 2 for quotes in _LONG_QUOTES)
        return shown or in_quotes or "<!--" in self._near.rpartition("-->")[2]

    @property
    def is_listed(self) -> bool:
        return bool(_LISTED.match(self._line))

    @property
    def may_be_quoted(self) -> bool:
        """Whether what stands behind it may say so."""
        near = self._near
        return self._opens or not _MARKS.isdisjoint(typed(near)) or _has_word(near) or bool(_ELEMENT.search(near))

    @property
    def _opens(self) -> bool:
        return not _OPENERS.isdisjoint(map(unicodedata.category, self._near))

    def is_quoted_by(self, behind: str, *, ended: bool) -> bool | None:
        """Whether words stand on both sides of it on its line, or quotes or brackets round it; None: not known yet.

        `behind` is the text right behind it so far, all of it if it has `ended`.
        """
        line, found, _ = behind.partition("\n")
        # No more than that, however much has come at once.
        line, ended = line[:_MOST_BEHIND], ended or bool(found) or len(line) >= _MOST_BEHIND
        close = _POINTS.sub("", line)
        if (close and self._is_closed_by(close[0])) or (close.startswith("</") and _ELEMENT.search(self._near)):
            return True
        said = _MARKUP.sub("", close)
        if _has_word(said if ended else _MARKUP_BEGUN.sub("", said)):
            return _has_word(self._near)
        return False if ended else None

    def _is_closed_by(self, close: str) -> bool:
        if (mark := typed(close)) in _MARKS:
            return mark == "|" or mark in typed(self._line)
        return self._opens and unicodedata.category(close) in _CLOSERS


def _has_word(text: str) -> bool:
    return bool(_WORD.search(_MARKUP.sub("", text)))
