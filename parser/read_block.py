"""Read a block whose text is all there: one pure function over the named rules of `rules`.

frame    what stands round the JSON          here
tokens   how the JSON is written             relaxed_json
shape    which members its objects have      call_shape
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .call_shape import Call, calls_of
from .grammar import CLOSE
from .json_scan import after_space
from .json_text import decode_string, members_of
from .members import NEUTRAL
from .relaxed_json import UnreadableError, rewrite
from .rules import Rule

_FENCE = re.compile(r"[ \t\r\n]*(`{3,}|~{3,})[\w-]*[ \t\r\n]*")
_BLANK = " \t\r\n"
_BETWEEN_OBJECTS = re.compile(r"[ \t\r\n]*[,;]?[ \t\r\n]*(?=[{\[])")
_CLOSERS = re.compile(r"[}\])]+")
_CLOSE_TAGS = re.compile(r"(?:</[\w:|-]+>)+")


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a block, at least one. Each carries all rules that it took, in order.

    The block ends at `end`: what follows there is text. It is the whole body when the block was closed.
    """

    calls: tuple[Call, ...]
    end: int


@dataclass(frozen=True, slots=True)
class Malformed:
    reason: str


def read_block(body: str, *, closed: bool) -> Calls | Malformed:
    """The reading of what stands between two tags, or of what follows an opener that was never closed.

    Without a close tag nothing that is cut off is completed, and text may follow the calls.
    """
    try:
        return _read(body, closed=closed)
    except UnreadableError as error:
        return Malformed(str(error))


def _read(body: str, *, closed: bool) -> Calls:
    rules: list[Rule] = []
    start, fence = 0, ""
    if match := _FENCE.match(body):
        start, fence = match.end(), match.group(1)
        rules.append(Rule.FENCE)
    if body[start:].lstrip(_BLANK).startswith('"'):
        return _read_string(body, start, closed=closed)
    groups, after = _groups(body, start, closed=closed)
    if len(groups) > 1:
        rules.append(Rule.SEVERAL_OBJECTS)
    end, tail_rules = _tail(body, after, fence, closed=closed)
    rules += tail_rules
    calls = [call.after(rules) for group in groups for call in group]
    for call in calls:
        _check_brackets(call)
    return Calls(tuple(calls), end)


def _check_brackets(call: Call) -> None:
    """Refuse a call with a bracket too many or too few that may have stood elsewhere.

    Then members of the arguments would stand beside them, or members of the call inside of them.
    """
    if not {Rule.MISSING_CLOSERS, Rule.EXTRA_CLOSERS} & set(call.rules):
        return
    inside = {key for key, _ in members_of(call.arguments)}
    beside = {key for key, _ in call.extra}
    if inside & NEUTRAL or beside - NEUTRAL or Rule.MISSING_ARGUMENTS in call.rules:
        raise UnreadableError("a bracket too many or too few")


def _read_string(body: str, start: int, *, closed: bool) -> Calls:
    written = rewrite(body, start)
    if body[written.end :].strip(_BLANK) or not written.text.strip(_BLANK).startswith('"{'):
        raise UnreadableError("a string that is no call")
    inner = _read(decode_string(written.text.strip(_BLANK)[1:-1]), closed=closed)
    rules = (Rule.CALL_AS_STRING, *written.rules)
    return Calls(tuple(call.after(rules) for call in inner.calls), len(body))


def _groups(body: str, start: int, *, closed: bool) -> tuple[list[list[Call]], int]:
    """The calls of each value in the body, and where the last value ends.

    In a block that is not closed, what is no call any more is text.
    """
    calls, end = _value(body, start, closed=closed)
    groups = [calls]
    while match := _BETWEEN_OBJECTS.match(body, end):
        try:
            calls, end = _value(body, match.end(), closed=closed)
        except UnreadableError:
            if closed:
                raise
            break
        groups.append(calls)
    return groups, end


def _value(body: str, start: int, *, closed: bool) -> tuple[list[Call], int]:
    value = rewrite(body, start, closed=closed)
    return [call.after(value.rules) for call in calls_of(value.text.strip(_BLANK))], value.end


def _tail(body: str, pos: int, fence: str, *, closed: bool) -> tuple[int, list[Rule]]:
    """Pass what follows the last value; give the end of the block and the rules that it took."""
    rules: list[Rule] = []
    while True:
        pos = after_space(body, pos)
        if closers := _CLOSERS.match(body, pos):
            rules.append(Rule.EXTRA_CLOSERS)
            pos = closers.end()
        elif fence and body.startswith(fence, pos):
            pos, fence = pos + len(fence), ""
        elif close_tags := _CLOSE_TAGS.match(body, pos):
            rules.append(Rule.OTHER_CLOSE_TAG)
            pos = close_tags.end()
        else:
            break
    rest = body[pos:]
    if not rest:
        return pos, rules
    if not closed:
        if CLOSE.search(rest):
            # It stood in what looked like a string, so the quotes of this block mean something else.
            raise UnreadableError("more than a call stands in the block")
        return len(body[:pos].rstrip(_BLANK)), rules
    if re.search(r'[{}\[\]"]', rest):
        raise UnreadableError("more than a call stands in the block")
    return len(body), [*rules, Rule.TRAILING_TEXT]
