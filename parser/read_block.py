"""Read a block whose text is all there: one pure function over the named rules of `rules`.

frame    what stands round the JSON          here, tag_attributes
tokens   how the JSON is written             relaxed_json
shape    which members its objects have      call_shape
         what is no JSON at all              foreign
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, replace

from .call_shape import Call, calls_of, is_another_shape
from .foreign import begins_foreign, is_markup, read_foreign
from .grammar import CLOSE, OPEN
from .json_scan import BLANKS, after_space
from .json_text import decode_string, members_of
from .members import NEUTRAL, folded_key
from .relaxed_json import UnreadableError, rewrite
from .rules import Rule
from .tag_attributes import attributes_of

# Strategy: peel and refuse. Each step takes away one thing that models put round a call, and hands on what is left;
# what could be meant in two ways is refused, as a call that was not meant does more harm than one that is asked for
# again.

_FENCE = re.compile(r"[ \t\r\n]*(`{3,}|~{3,})[\w-]*[ \t\r\n]*")
_BETWEEN_OBJECTS = re.compile(r"[ \t\r\n]*[,;]?[ \t\r\n]*(?=[{\[<A-Za-z])")
# The first quote of the block tells how all of it is escaped: as in a page, or as inside of a string.
_ESCAPED_AS_HTML = re.compile(r"[\[{ \t\r\n]+&(?:quot|#34|#x22);")
_ESCAPED = re.compile(r"[\[{ \t\r\n]+(?:\\[nrt][\[{ \t\r\n]*)*\\\"")
_CLOSERS = re.compile(r"[}\])]+")
# The close tags of other notations, and the marks with which chat templates end a turn.
_CLOSE_TAGS = re.compile(
    r"(?:</[\w:|-]+>|<\|(?:im_end|eot_id|eom_id|end|endoftext|end_of_text|/?tool_call(?:_end)?)\|>)+"
)


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


def read_block(body: str, *, closed: bool, tag: str = "") -> Calls | Malformed:
    """The reading of what stands between two tags, or of what follows an opener that was never closed.

    Without a close tag nothing that is cut off is completed, and text may follow the calls. `tag` is the
    open tag, which may name the call.
    """
    try:
        return _read_named(body, tag, closed=closed) if "=" in tag else _read(body, closed=closed)
    except UnreadableError as error:
        return Malformed(str(error))


def _read_named(body: str, tag: str, *, closed: bool) -> Calls:
    """A block whose open tag says something, too. Where the body says it again, it must be the same."""
    said = attributes_of(tag)
    if said is None:
        raise UnreadableError("the tag contradicts itself")
    try:
        calls = _read(body, closed=closed)
    except UnreadableError:
        if said.name is None:
            raise
        # Only now: a body that is a call by itself is that call, and the tag has just said its name, too.
        calls = _read_arguments(body, said.name, closed=closed)
    # Two names for one call, and no way to tell which of them is wrong.
    if any(said.name not in (None, call.name) for call in calls.calls):
        raise UnreadableError("the tag names another call")
    if said.id is None or len(calls.calls) > 1 or calls.calls[0].id is not None:
        return calls
    return replace(calls, calls=(replace(calls.calls[0], id=said.id),))


def _read_arguments(body: str, name: str, *, closed: bool) -> Calls:
    value = rewrite(body, after_space(body, 0), closed=False)
    # `{"arguments": {...}}` under a name in the tag: to take that for the arguments would nest them in themselves.
    if not value.text.startswith("{") or is_another_shape(value.text):
        raise UnreadableError("the call has members but no arguments")
    end, rules = _tail(body, value.end, "", closed=closed)
    call = Call(name, value.text, None, (), value.rules)
    return Calls((call.after([Rule.NAME_IN_TAG]).after(rules),), end)


def _read(body: str, *, closed: bool) -> Calls:
    rules: list[Rule] = []
    start, fence = 0, ""
    if match := _FENCE.match(body):
        start, fence = match.end(), match.group(1)
        rules.append(Rule.FENCE)
    if body.startswith('"', after_space(body, start)):
        return _read_string(body, start, closed=closed)
    if _ESCAPED.match(body, start):
        return _read_escaped(_unescaped(body[start:]), len(body), closed=closed)
    if _ESCAPED_AS_HTML.match(body, start):
        return _read_escaped(html.unescape(body[start:]), len(body), closed=closed)
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
    # In `{"name": "r", "arguments": {}, "p": 1}}` one brace is too many, and `p` was meant to stand inside.
    inside = {folded_key(key) for key, _ in members_of(call.arguments)}
    beside = {folded_key(key) for key, _ in call.extra}
    if inside & NEUTRAL or beside - NEUTRAL or Rule.MISSING_ARGUMENTS in call.rules:
        raise UnreadableError("a bracket too many or too few")


def _read_string(body: str, start: int, *, closed: bool) -> Calls:
    written = rewrite(body, start)
    # A string of anything else than an object is a remark, a name or a path.
    if body[written.end :].strip(BLANKS) or not written.text.strip(BLANKS).startswith('"{'):
        raise UnreadableError("a string that is no call")
    inner = _read(decode_string(written.text.strip(BLANKS)[1:-1]), closed=closed)
    rules = (Rule.CALL_AS_STRING, *written.rules)
    return Calls(tuple(call.after(rules) for call in inner.calls), len(body))


def _unescaped(text: str) -> str:
    written = rewrite(f'"{text}"')
    # Put in quotes, text that is escaped throughout is one string to its end. A quote in it that is not escaped ends
    # that string, and then the backslashes mean something else.
    if written.end < len(text) + 2:
        raise UnreadableError("some quotes are escaped and others are not")
    return decode_string(written.text[1:-1])


def _read_escaped(decoded: str, end: int, *, closed: bool) -> Calls:
    """A call that is escaped as what stands inside of a string or of a page, with no quotes round it."""
    inner = _read(decoded, closed=closed)
    if inner.end < len(decoded):
        raise UnreadableError("more than a call stands in the block")
    return Calls(tuple(call.after([Rule.ESCAPED_JSON]) for call in inner.calls), end)


def _groups(body: str, start: int, *, closed: bool) -> tuple[list[list[Call]], int]:
    """The calls of each value in the body, and where the last value ends.

    In a block that is not closed, what is no call any more is text.
    """
    calls, end = _value(body, start, closed=closed)
    groups = [calls]
    while (match := _BETWEEN_OBJECTS.match(body, end)) and _begins_value(body, match.end()):
        try:
            # Once the block is closed all of it was meant as calls, and the half of one is none. Without a close tag
            # the block may just have ended before this, and this is text.
            calls, end = _value(body, match.end(), closed=closed)
        except UnreadableError:
            if closed:
                raise
            break
        groups.append(calls)
    return groups, end


def _stands_alone(body: str, start: int, end: int) -> bool:
    """Whether a call of elements is followed by what may close its block, or by nothing."""
    # `get_time()` in a sentence about the tag has the form of a call, so only elements count, which are hardly written
    # in passing, and they only if nothing follows but what may close a block.
    after = after_space(body, end)
    followed = after == len(body) or OPEN.match(body, after) or _CLOSE_TAGS.match(body, after)
    return is_markup(body, after_space(body, start)) and bool(followed or begins_foreign(body, after))


def _begins_value(body: str, pos: int) -> bool:
    return body[pos] in "{[" or bool(begins_foreign(body, pos))


def _value(body: str, start: int, *, closed: bool) -> tuple[list[Call], int]:
    if foreign := read_foreign(body, after_space(body, start), closed=closed):
        call, end = foreign
        if not (closed or _stands_alone(body, start, end)):
            raise UnreadableError("a call in another notation that is not closed may be prose")
        return [call], end
    value = rewrite(body, start, closed=closed)
    return [call.after(value.rules) for call in calls_of(value.text.strip(BLANKS))], value.end


def _tail(body: str, pos: int, fence: str, *, closed: bool) -> tuple[int, list[Rule]]:
    """Pass what follows the last value; give the end of the block and the rules that it took."""
    rules: list[Rule] = []
    while True:
        pos = after_space(body, pos)
        if closers := _CLOSERS.match(body, pos):
            rules.append(Rule.EXTRA_CLOSERS)
            pos = closers.end()
        elif fence and body.startswith(fence, pos):
            # Only of a fence that was opened: any other begins one.
            pos, fence = pos + len(fence), ""
        elif close_tags := _CLOSE_TAGS.match(body, pos):
            rules.append(Rule.OTHER_CLOSE_TAG)
            pos = close_tags.end()
        else:
            break
    rest = body[pos:]
    if not rest:
        return pos, rules
    if OPEN.match(rest):
        # Quotes do not count in elements, so only here it is seen that the next call begins.
        return len(body[:pos].rstrip(BLANKS)), [*rules, Rule.UNCLOSED] if closed else rules
    if not closed:
        if CLOSE.search(rest):
            # It stood in what looked like a string, so the quotes of this block mean something else.
            raise UnreadableError("more than a call stands in the block")
        return len(body[:pos].rstrip(BLANKS)), rules
    # A remark is dropped; brackets and quotes may be what is left of another call, and that is not.
    if re.search(r'[{}\[\]"]', rest):
        raise UnreadableError("more than a call stands in the block")
    return len(body), [*rules, Rule.TRAILING_TEXT]
