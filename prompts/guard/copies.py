"""In what order a model may copy the texts of a request.

A copy need not keep to the borders of one message: what was cut over two tool results is whole again in an answer that
shows both.

    strings    each by itself; in pairs, where they meet; all in a row, with and without line breaks between
    pages      the conversation as it is shown, with and without headers
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from parser import OPEN_TAG, ToolRegistry
from parser.headers import HEADER

from ..block import tool_line
from ..conversation import PageWriter, past_call, write_conversation
from ..escape import unescape
from ..transcript import AssistantText, Guidance, PastCall, Text, ToolResult, Transcript, UserTurn
from .suspicion import is_suspect, places


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


def in_a_row(strings: Iterable[str]) -> str:
    """`strings` one after the other, as many a copy has them."""
    # White space at the ends is lost in many a copy, and without it no word is cut.
    return "".join(string.strip() for string in strings)


def in_any_row(strings: Sequence[str]) -> bool:
    """Whether `strings`, alone or one after the other, are worth a second look."""
    # One search for both: the row has the word when one string has it, and when it is cut over two.
    return is_suspect(in_a_row(strings))


def joined(strings: Sequence[str]) -> Iterator[str]:
    """The texts that `strings` make, each and together. A block that is cut may end before the last of them."""
    present = [string for string in strings if string and not string.isspace()]
    yield from filter(is_suspect, present)
    # Two by two as well: what stands behind a cut block may make it another. Behind one without a close tag, prose that
    # ends in a close tag makes a malformed block of all that the row holds, and the two strings alone are a call.
    if len(present) > 2:
        yield from filter(is_suspect, borders(present))
    if len(present) > 1:
        yield in_a_row(present)
        yield "\n".join(present)


# Places on both sides of a border at which a call that is cut there may begin or end. It needs one on each side; more
# are tags in its own strings.
_AT_BORDER = 8
# Characters on a side that has no place: the tag itself may be cut.
_NEAR_BORDER = 256


def borders(strings: Sequence[str]) -> Iterator[str]:
    """What stands on both sides of where one string ends and the next begins, with and without a line break there."""
    for first, second in pairwise(string for string in strings if string and not string.isspace()):
        begins = sorted(places(first))[-_AT_BORDER:]
        ends = sorted(places(second))[_AT_BORDER:]
        tail = first[min([*begins, max(0, len(first) - _NEAR_BORDER)]) :]
        head = second[: ends[0]] if ends else second
        yield in_a_row((tail, head))
        # Without the line break a comment in the first string takes the second one with it.
        yield f"{tail}\n{head}"


# Only our own words stand in column 0: no untrusted line can be mistaken for these.
_HEADER = re.compile(rf"^{HEADER}[ \n]?", re.MULTILINE)
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
