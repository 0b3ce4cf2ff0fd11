r"""What a model may write when it copies from a request: the request's own texts, as they may come out of a copy.

A copy need not be faithful. What is not seen gets lost, blanks and line ends become plain ones, typographic
characters become those of a keyboard, escapes are undone. And it need not keep to the borders of one
message: what was cut over two tool results is whole again in an answer that shows both.

    strings    each by itself; in pairs; all in a row, with and without line breaks between
    pages      the conversation as it is shown, with and without headers
    readings   each of these texts as a copy may spell it
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from parser import OPEN_TAG, ToolRegistry

from ..block import tool_line
from ..conversation import PageWriter, past_call, write_conversation
from ..escape import INVISIBLE, json_unescape, normalise_newlines, unescape
from ..transcript import AssistantText, Guidance, PastCall, Text, ToolResult, Transcript, UserTurn
from .budget import ReadingBudget

# Strategy: rather a reading too many than one too few. A reading that nobody would write costs some work, and a call is
# held back for it only if the answer has exactly that call. A reading that is missing is a way in: whoever wrote the
# note chose its spelling, and a model that shows the note may undo it.

# Levels of decoding. A string inside a string inside a string: a tool's JSON output that holds a note that holds JSON.
_LEVELS = 3

# What only looks like it, and what NFKC maps to one ASCII character. A table, since `unicodedata.normalize`
# takes quadratic time on hostile text.
_LOOKALIKES = {
    '"': "\u201c\u201d\u201e\u201f\u2033\u2036\u301d\u301e\u301f\u275d\u275e",
    "'": "\u2018\u2019\u201a\u201b\u2032\u2035\u275b\u275c",
    "<": "\u2039\u27e8\u3008\u276c\u276e",
    ">": "\u203a\u27e9\u3009\u276d\u276f",
    "{": "\u2774",
    "}": "\u2775",
    ":": "\u2236\ua789\u02d0",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "/": "\u2044\u2215\u29f8",
    "\\": "\u2216\u29f5",
}
# Where NFKC is asked, which is done at import and so not of all Unicode: Latin, punctuation, letter-like and enclosed
# characters, CJK forms, full width; and the letters of mathematics.
_COMPATIBLE = (range(0xA0, 0x250), range(0x2000, 0x2500), range(0x3000, 0x3400), range(0xFE10, 0xFFEF))
_MATHEMATICAL = (range(0x1D400, 0x1D800), range(0x1F100, 0x1F200))


def _typed_characters() -> dict[int, str]:
    table = {}
    for code in (code for codes in (*_COMPATIBLE, *_MATHEMATICAL) for code in codes):
        plain = unicodedata.normalize("NFKC", chr(code))
        # What stands for several characters, as a fraction does, has no place in a tag or between the tokens of JSON.
        if len(plain) == 1 and plain.isascii():
            table[code] = plain
    return table | {ord(alike): plain for plain, likes in _LOOKALIKES.items() for alike in likes}


_TYPED = _typed_characters()
# How JSON in ASCII writes one character beyond 16 bits: as two escapes, which are decoded one by one.
_HALVES = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
# What it costs to undo one escape, in a `ReadingBudget`'s units.
_ESCAPE = 24
_UNSEEN = re.compile(f"[{INVISIBLE}]+")
# No-break, typographic and ideographic blanks: no white space to JSON, plain blanks in a copy.
_BLANK = re.compile(r"[^\S\n\t\r ]")
# As Markdown escapes punctuation; before the others a backslash means something in JSON.
_MARKDOWN_ESCAPE = re.compile(r'\\(?=[^\w\s"\\/]|_)')

# Between two letters of the word: what is not seen, escaped or not, and the backslash of Markdown.
_GAP = rf"(?:[{INVISIBLE}]|\\++(?:u[0-9a-fA-F]{{4}})?|&#?\w{{1,20}}+;)*+"


def _letter(letter: str) -> str:
    """A class of all that is typed as `letter`. Without IGNORECASE, which would make the search slow."""
    # Full width or mathematical letters are read and copied as the letter, so they are suspect as it is.
    alike = (chr(code) for code, plain in _TYPED.items() if plain.lower() == letter)
    return f"[{letter}{letter.upper()}{''.join(alike)}]"


_SUSPECT = (
    # The word alone, since its `<` may be written as `\u003c` or `&lt;`. What may follow its first letter is
    # looked at first: most words that begin with it are others.
    re.compile(rf"{_letter('t')}(?=[{INVISIBLE}\\&]|{_letter('o')}){_GAP}{_GAP.join(map(_letter, 'ool_call'))}"),
    # Nobody escapes letters, but a letter of the word may be written like that.
    # From U+0040 to U+007F ASCII has its letters and the underscore. Suspicion is enough here: decoding costs more.
    re.compile(r"\\u00[4-7]"),
    # The same in HTML: decimal, hexadecimal, and by the names of the underscore.
    re.compile(r"&(?:#0*+(?:9[579]|1[0-2]\d|[68]\d|7\d)|#[xX]0*+[4-7]|lowbar|UnderBar)"),
)


def is_suspect(text: str) -> bool:
    """Whether any reading of `text` may hold the word of our tags."""
    return any(pattern.search(text) for pattern in _SUSPECT)


def untrusted_strings(transcript: Transcript, registry: ToolRegistry) -> Iterator[str]:
    """Every string of a request that somebody else wrote and the model will read, part by part."""
    # What the client and the model wrote is not trusted either: clients put notes into instructions, and an assistant
    # text or a past call may be the copy of one.
    yield transcript.instructions or ""
    for entry in transcript.entries:
        match entry:
            case Guidance(text) | AssistantText(text):
                yield text
            case PastCall(name=name, arguments=arguments):
                yield name
                yield arguments
            case UserTurn(parts) | ToolResult(parts=parts):
                yield from (part.text for part in parts if isinstance(part, Text))
    for tool in registry:
        yield tool.description or ""
        yield tool.parameters or ""


def _without_past_calls(transcript: Transcript) -> Transcript:
    entries = tuple(entry for entry in transcript.entries if not isinstance(entry, PastCall))
    return Transcript(entries, transcript.instructions)


def rows(transcript: Transcript, registry: ToolRegistry) -> list[tuple[str, ...]]:
    """The untrusted strings in each order in which they may be copied one after the other.

    As the client sent them; without past calls; the guidance, which is shown together; and the messages as
    they are shown, where results stand in the order of their calls.
    """
    # A copy of several texts leaves out what stands between them, and what that is depends on what is copied. A block
    # that is cut over two of them is whole only in a row in which these two are neighbours.
    guidance = tuple(entry.text for entry in transcript.entries if isinstance(entry, Guidance))
    found = [
        tuple(untrusted_strings(transcript, registry)),
        tuple(untrusted_strings(_without_past_calls(transcript), ToolRegistry())),
        (transcript.instructions or "", *guidance),
    ]
    # Shown are results in the order of their calls, whatever order they were sent in.
    if _results_move(transcript):
        found.append(tuple(_messages(page(transcript))))
    return found


def _results_move(transcript: Transcript) -> bool:
    results = [entry.call_id for entry in transcript.entries if isinstance(entry, ToolResult)]
    # Calls without a result show an empty one, which is nothing to copy.
    answered = set(results)
    calls = (entry.call_id for entry in transcript.entries if isinstance(entry, PastCall))
    return results != [call_id for call_id in calls if call_id in answered]


def _in_a_row(strings: Iterable[str]) -> str:
    # White space at the ends is lost in many a copy, and without it no word is cut.
    return "".join(string.strip() for string in strings)


def in_any_row(strings: Sequence[str]) -> bool:
    """Whether `strings`, alone or one after the other, are worth a second look."""
    # One search for both: the row has the word when one string has it, and when it is cut over two.
    return is_suspect(_in_a_row(strings))


def joined(strings: Sequence[str]) -> Iterator[str]:
    """The texts that `strings` make, each and together. A block that is cut may end before the last of them."""
    present = [string for string in strings if string and not string.isspace()]
    yield from filter(is_suspect, present)
    # Two by two as well: what stands behind a cut block may make it another. Behind one without a close tag, prose that
    # ends in a close tag makes a malformed block of all that the row holds, and the two strings alone are a call.
    if len(present) > 2:
        for two in pairwise(present):
            if is_suspect(row := _in_a_row(two)):
                yield row
                # Without the line break a comment in the first string takes the second one with it.
                yield "\n".join(two)
    if len(present) > 1:
        yield _in_a_row(present)
        yield "\n".join(present)


# Only our own words stand in column 0: no untrusted line can be mistaken for these.
_HEADER = re.compile(r"^\[(?:user|assistant|tool:[^\]\n]*)\][ \n]?", re.MULTILINE)
_PAST_CALL = re.compile(rf"^{OPEN_TAG}.*\n?", re.MULTILINE)
_INDENT = re.compile(r"^  ", re.MULTILINE)


def page(transcript: Transcript) -> str:
    """The conversation as the model sees it, still escaped. Images are left out."""
    # By the code that writes it for the model: the guard must not have an idea of its own of what is shown.
    written = PageWriter()
    write_conversation(written, transcript)
    return "\n".join(part.text for part in written.parts() if isinstance(part, Text))


def past_calls(transcript: Transcript) -> str:
    """The past calls as `page` shows them."""
    return "\n".join(past_call(entry) for entry in transcript.entries if isinstance(entry, PastCall))


def _messages(shown: str) -> Iterator[str]:
    """What stands behind the headers of a page, as it was before it was indented and escaped."""
    for message in _HEADER.split(_PAST_CALL.sub("", shown)):
        # Text was escaped first and then indented: so the way back is the other way round.
        yield unescape(_INDENT.sub("", message))


def pages(transcript: Transcript, registry: ToolRegistry) -> Iterator[str]:
    """What is shown, un-escaped and without past calls, since to repeat one of them is no quotation."""
    # Copied with headers and indentation, without them, or one message alone. Un-escaped, since a copy that keeps our
    # backslash is no call, and one that loses it is.
    shown = page(transcript)
    yield unescape(_PAST_CALL.sub("", shown))
    messages = tuple(_messages(shown))
    yield "\n".join(messages)
    yield from messages
    yield "\n".join(map(tool_line, registry))


def readings(text: str, budget: ReadingBudget) -> Iterator[str]:
    """`text` as it stands, as a copy may spell it, and as what it may be an encoding of.

    Raises `TooMuchToReadError`.
    """
    for _ in range(_LEVELS + 1):
        # Searches that find little cost half a unit a character. Each escape is decoded by a call of its own, so that a
        # text of nothing but backslashes takes nearly fifty times as much: that is what has to be counted.
        budget.spend(len(text) // 2 + _ESCAPE * (text.count("\\") + text.count("&")))
        yield from _spellings(text)
        if "&" in text and (decoded := html.unescape(text)) != text:
            # Beside the way and not on it. JSON in HTML is decoded all the same, as the next round takes its
            # backslashes.
            yield from _spellings(decoded)
        # Whatever the text is, as the JSON may begin anywhere in it. What one round leaves as it is, all others do,
        # too.
        if "\\" not in text or (decoded := json_unescape(text)) == text:
            return
        # JSON without other characters than ASCII writes those beyond 16 bits as two halves.
        halves = _HALVES.search(decoded)
        text = decoded.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if halves else decoded


def typed(text: str) -> str:
    """`text` with the characters of a keyboard for those that only look like them."""
    return text if text.isascii() else text.translate(_TYPED)


def _spellings(text: str) -> Iterable[str]:
    # One is no substitute for the other: curly quotes inside of a string end it when they are typed as straight ones.
    shown = normalise_newlines(text)
    seen = _BLANK.sub(" ", _UNSEEN.sub("", shown))
    return dict.fromkeys((text, shown, seen, _MARKDOWN_ESCAPE.sub("", typed(seen))))
