"""Read a whole block: one pure function over the named rules of `rules`.

frame    what stands round the JSON          here
tokens   how the JSON is written             relaxed_json
shape    which members its objects have      call_shape
         what is no JSON at all              foreign
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from html.entities import html5

from msgspec import Struct
from msgspec.structs import replace

from .call_shape import Call, calls_of, check_arguments, is_another_shape, unpacked
from .foreign import begins_foreign, is_markup, read_foreign
from .grammar import ATTRIBUTE, CLOSE, KEY, KEY_IN_FRONT, OPEN
from .json_scan import BLANKS, after_space
from .json_text import decode_string, members_of, nested_objects
from .members import NAME, NEUTRAL, PARALLEL, folded_key
from .placeholders import end_of_placeholder, is_placeholder
from .relaxed_json import WS, UnreadableError, rewrite
from .rules import Rule

# What an attribute of the tag says.
_SAYS = {"name": NAME, "tool": NAME, "function": NAME, "id": "id", "call_id": "id", KEY: KEY}
_ATTRIBUTE = re.compile(ATTRIBUTE, re.IGNORECASE)

_FENCE = re.compile(r"[ \t\r\n]*(`{3,}|~{3,})[\w-]*[ \t\r\n]*")
_BETWEEN_OBJECTS = re.compile(r"[ \t\r\n]*+[,;]?[ \t\r\n]*+(?=[{\[<A-Za-z])")
# With its semicolon: without one some words of a query are one too, as in `?id=1&region=eu`.
_ENTITY = re.compile(r"&(?:#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});|([A-Za-z][A-Za-z0-9]{1,31};))")
_CLOSERS = re.compile(r"[}\])]+")
# What stands behind a call: signs that say nothing; what is no remark, as brackets and quotes may be what is left of
# another call, markup and `key=value` what is left of this one; and how a call that was ended too early goes on.
_PUNCTUATION = re.compile(r'(?:[^\w{}\[\]"<\\]++|<(?![\w/|])|\\[nrt]?)*')
_NO_REMARK = re.compile(r"""[{}\[\]"\\]|<[\w/|]|[\w'-][ \t]*=""")
_GOES_ON = re.compile(
    rf"""[ \t\r\n,;]*+(?:["'][\w-]++["']?{WS}:|[\w-]++["']?{WS}(?:=|:{WS}["'{{\[])|</?(?:param|arg|func|invoke))"""
    rf"""|[ \t\r\n;]*+,{WS}["'{{]"""
)
# A sentence goes on with words on the same line.
_SENTENCE = re.compile(r'[ \t]*+[^\s{}\[\]"]')
# Words in brackets, as in a sentence that says what stands behind the tag.
_MENTION = re.compile(r"[ \t\r\n]*+[\[{][ \t]*+(?:\.\.\.|\u2026|[^\W\d]\w*+(?:[ \t]++[\w(]|[,}\]\u2026]))")
# What ends in the first placeholder of a block and names no tool: that stands for the name, or for all of it.
_NAMELESS = re.compile(rf"""[^"'(=:]*|[^{{]*\{{[^{{]*"name"{WS}:[^,]{{0,99}}""")
# The rules by which a call has arguments that nobody wrote.
_DEFAULTED = {Rule.MISSING_ARGUMENTS, Rule.NULL_ARGUMENTS, Rule.EMPTY_ARGUMENTS}
# The close tags of other notations, and the marks with which chat templates end a turn.
_CLOSE_TAGS = re.compile(
    r"(?:</[\w:|-]+>|<\|(?:im_end|eot_id|eom_id|end|endoftext|end_of_text|/?tool_call(?:_end)?)\|>"
    r"|</[^\s<>{}\[\]\"=]{1,32}>?(?=[ \t\r\n]*\Z))+"  # in any spelling, if nothing follows
)


def attributes_of(tag: str) -> dict[str, str] | None:
    """The name, id and key in what stands before a block's body; None if they contradict each other."""
    said: dict[str, str] = {}
    for attribute, written in _ATTRIBUTE.findall(tag):
        value = written.strip("\"'")
        if (what := _SAYS.get(attribute.casefold())) and (not value or said.setdefault(what, value) != value):
            return None
    return said


# Strategy: peel and refuse. Each step takes away one thing that models put round a call, and hands on what is left;
# what could be meant in two ways is refused, as a call that was not meant does more harm than one that is asked for
# again. So every character of the block has to be in the call, in what is known to stand round one, punctuation, or
# plain words that leave as text: anything else may be the part of the call that fell out of it.


class Calls(Struct, frozen=True):
    """The calls of a block, at least one. Each carries all rules that it took, in order.

    They end at `end`: what follows there is text. In a block that was closed that is a remark, or nothing.
    """

    calls: tuple[Call, ...]
    end: int


def read_block(body: str, *, closed: bool, tag: str = "", in_sentence: bool = False) -> Calls:
    """The calls that stand between two tags, or behind an opener that was never closed. Raises UnreadableError.

    Without a close tag nothing that is cut off is completed, and text may follow the calls. `tag` is the
    open tag, which may name the call. `in_sentence`: words stand in front of the block on its line.
    """
    try:
        calls = _read_framed(body, tag, closed=closed)
        for call in calls.calls:
            check_arguments(call)
    except UnreadableError as error:
        if error.end is None:
            _refuse_mention(str(error), body, closed=closed, in_sentence=in_sentence)
        raise
    if any(is_placeholder(call.name) for call in calls.calls):
        raise UnreadableError("the name is a placeholder", None if closed else calls.end, meant=False)
    return calls


def _refuse_mention(reason: str, body: str, *, closed: bool, in_sentence: bool) -> None:
    """Raises UnreadableError for a block without a reading if that only mentions a call."""
    if not closed and (mention := _MENTION.match(body)):
        raise UnreadableError(reason, mention.end(), meant=False)
    # A block that nobody closed may have ended with its line.
    line_end = -1 if closed else body.find("\n", after_space(body, 0))
    end = end_of_placeholder(body if line_end < 0 else body[:line_end])
    # Words behind the block would tell as much as those in front of it, but come when it is over: its end would have to
    # wait for them. So a block that begins its line and names a tool is one that was meant.
    # A tag in the block stands in a string, as in a note that is to be written: no form has that.
    if end and (in_sentence or _NAMELESS.fullmatch(body, 0, end)) and not OPEN.search(body):
        raise UnreadableError(reason, None if closed else end, meant=False)


def _read_framed(body: str, tag: str, *, closed: bool) -> Calls:
    """A block whose open tag may say something, too, or the word in front of its object: its name, its id, its key."""
    said = attributes_of(tag)
    if said is None:
        raise UnreadableError("the tag contradicts itself")
    start, rules = after_space(body, 0), list[Rule]()
    if key := KEY_IN_FRONT.match(body, start):
        start, said[KEY] = key.end(), key[2]
        rules.append(Rule.KEY_IN_FRONT)
    try:
        calls = _read(body, start, closed=closed)
    except UnreadableError as error:
        if NAME not in said or not error.meant:
            raise
        # Only now: a body that is a call by itself is that call, and the tag has just said its name, too.
        calls = _read_arguments(body, said[NAME], closed=closed)
    # Two names for one call, and no way to tell which of them is wrong.
    if any(said.get(NAME, call.name) != call.name for call in calls.calls):
        raise UnreadableError("the tag names another call")
    alone = len(calls.calls) == 1
    return Calls(tuple(_with(call, said, alone=alone).after(rules) for call in calls.calls), calls.end)


def _with(call: Call, said: dict[str, str], *, alone: bool) -> Call:
    """The call with what stands beside it. One that carries its own key says itself what it is worth."""
    extra = call.extra
    if KEY in said and KEY not in dict(extra):
        extra = ((KEY, json.dumps(said[KEY])), *extra)
    return replace(call, id=call.id or (said.get("id") if alone else None), extra=extra)


def _read_arguments(body: str, name: str, *, closed: bool) -> Calls:
    value = rewrite(body, after_space(body, 0), closed=False)
    # `{"arguments": {...}}` under a name in the tag: to take that for the arguments would nest them in themselves.
    if (
        not value.text.startswith("{")
        or (name != PARALLEL and is_another_shape(value.text))
        or (NAME, json.dumps(name)) in members_of(value.text)
    ):
        raise UnreadableError("the call has members but no arguments")
    end, rules = _tail(body, value.end, "", closed=closed)
    calls = unpacked(Call(name, value.text, None, (), value.rules))
    return Calls(tuple(call.after([Rule.NAME_IN_TAG]).after(rules) for call in calls), end)


def _read(body: str, start: int = 0, *, closed: bool, fence: str = "") -> Calls:
    """What stands there from `start` on. `fence`: one that was opened before, and whose end is no text."""
    rules: list[Rule] = []
    if match := _FENCE.match(body, start):
        start, fence = match.end(), match.group(1)
        rules.append(Rule.FENCE)
    for encoded, decode, rule in _ENCODINGS:
        if encoded.match(body, start):
            text, used = decode(body[start:])
            decoded = _read_decoded(text, closed=closed, fence=fence)
            return Calls(tuple(call.after((*rules, rule, *used)) for call in decoded), len(body))
    values = _values(body, start, closed=closed)
    if len(values) > 1:
        rules.append(Rule.SEVERAL_OBJECTS)
    end, tail_rules = _tail(body, values[-1].end, fence, closed=closed)
    rules += tail_rules
    calls: list[Call] = []
    for value in values:
        for one in value.calls:
            call = one.after(rules)
            # Behind the block, or at the end of encoded arguments.
            spare = Rule.EXTRA_CLOSERS in one.rules or "}" in body[value.end : end]
            _check_brackets(value.text, call, spare=spare)
            if _DEFAULTED.intersection(call.rules):
                _check_default(body, end, closed=closed, alone=len(values) == 1)
            calls.append(call)
    return Calls(tuple(calls), end)


def _check_default(body: str, end: int, *, closed: bool, alone: bool) -> None:
    """Refuse a call without arguments where they may stand beside it."""
    after = after_space(body, end)
    if after == len(body) or (not closed and OPEN.match(body, after)):
        after = end = len(body)
    if not closed and _SENTENCE.match(body, end):
        raise UnreadableError("a call without arguments in the middle of a sentence", end, meant=False)
    if not alone or after < len(body):
        raise UnreadableError("the call has no arguments, and more stands in the block")


def _check_brackets(text: str, call: Call, *, spare: bool) -> None:
    """Refuse a call in `text` with a bracket too many or too few that may have stood elsewhere.

    Then members would stand beside the object that they belong to, or inside of another. `spare`: a brace too many
    stands behind it.
    """
    if not {Rule.MISSING_CLOSERS, Rule.EXTRA_CLOSERS} & set(call.rules):
        return
    # A brace too many may be one behind which an object goes on; one too few may have stood before any comma.
    arguments = [*nested_objects(call.arguments)]
    goes_on = spare and any(followed for _, followed in (*arguments, *nested_objects(text)))
    parted = Rule.MISSING_CLOSERS in call.rules and any(members > 1 for members, _ in arguments)
    # In `{"name": "r", "arguments": {}, "p": 1}}` one brace is too many, and `p` was meant to stand inside.
    inside = {folded_key(key) for key, _ in members_of(call.arguments)}
    beside = {folded_key(key) for key, _ in call.extra}
    if goes_on or parted or inside & NEUTRAL or beside - NEUTRAL or Rule.MISSING_ARGUMENTS in call.rules:
        raise UnreadableError("a bracket too many or too few")


# Each gives the text of a block that is encoded as a whole, and the rules that it took.


def _in_string(text: str) -> tuple[str, Sequence[Rule]]:
    written = rewrite(text)
    inside = written.text.strip(BLANKS)
    # A string of anything else than an object is a remark, a name or a path.
    if text[written.end :].strip(BLANKS) or not inside.startswith('"{'):
        raise UnreadableError("a string that is no call")
    return decode_string(inside[1:-1]), written.rules


def _escaped(text: str) -> tuple[str, Sequence[Rule]]:
    written = rewrite(f'"{text}"')
    # Put in quotes, text that is escaped throughout is one string to its end. A quote in it that is not escaped ends
    # that string, and then the backslashes mean something else.
    if written.end < len(text) + 2:
        raise UnreadableError("some quotes are escaped and others are not")
    return decode_string(written.text[1:-1]), ()


def _in_page(text: str) -> tuple[str, Sequence[Rule]]:
    return _ENTITY.sub(lambda at: html5.get(at[1], at[0]) if at[1] else html.unescape(at[0]), text), ()


# The first quote of the block tells how all of it is written: as a string, as inside of one, or as in a page.
_ENCODINGS = (
    (re.compile(r'[ \t\r\n]*+"'), _in_string, Rule.CALL_AS_STRING),
    (re.compile(r"(?:[\[{ \t\r\n]|\\[nrt])+\\\""), _escaped, Rule.ESCAPED_JSON),
    (re.compile(r"[\[{ \t\r\n]+&(?:quot|#34|#x22);"), _in_page, Rule.ESCAPED_JSON),
)


def _read_decoded(text: str, *, closed: bool, fence: str) -> Sequence[Call]:
    try:
        calls = _read(text, closed=closed, fence=fence)
    except UnreadableError as error:
        if error.end is None:
            raise
    else:
        if calls.end == len(text):
            return calls.calls
    raise UnreadableError("more than a call stands in the block")


class _Value(Calls, frozen=True):
    """The calls that one value in the body is, and its text as JSON."""

    text: str


def _values(body: str, start: int, *, closed: bool) -> list[_Value]:
    """The values in the body that are calls. In a block that is not closed, what is no call any more is text."""
    values = [_value(body, start, closed=closed)]
    while (match := _BETWEEN_OBJECTS.match(body, values[-1].end)) and (
        body[match.end()] in "{[" or begins_foreign(body, match.end())
    ):
        try:
            # Once the block is closed all of it was meant as calls, and the half of one is none. Without a close tag
            # the block may just have ended before this, and this is text.
            values.append(_value(body, match.end(), closed=closed))
        except UnreadableError:
            if closed:
                raise
            break
    return values


def _check_open(body: str, start: int, end: int) -> None:
    """Refuse a call in another notation, in a block that is not closed, if it is not followed by what may close it."""
    # `get_time()` in a sentence about the tag has the form of a call, so only elements count, which are hardly written
    # in passing.
    after = after_space(body, end)
    followed = OPEN.match(body, after) or _CLOSE_TAGS.match(body, after) or begins_foreign(body, after)
    if is_markup(body, start) and (after == len(body) or followed):
        return
    # The rest of an answer may follow: only what looks like more of the call is taken with it.
    goes_on = after == len(body) or _GOES_ON.match(body, end)
    raise UnreadableError("a call in another notation that is not closed may be prose", None if goes_on else end)


def _value(body: str, start: int, *, closed: bool) -> _Value:
    start = after_space(body, start)
    if foreign := read_foreign(body, start, closed=closed):
        call, end = foreign
        if not closed:
            _check_open(body, start, end)
        return _Value(tuple(unpacked(call)), end, call.arguments)
    value = rewrite(body, start, closed=closed)
    text = value.text.strip(BLANKS)
    calls = [one.after(value.rules) for call in calls_of(text) for one in unpacked(call)]
    return _Value(tuple(calls), value.end, text)


def _tail(body: str, pos: int, fence: str, *, closed: bool) -> tuple[int, list[Rule]]:
    """Pass what follows the last value; give the end of the calls and the rules that it took."""
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
    if pos == len(body):
        return pos, rules
    end = len(body[:pos].rstrip(BLANKS))
    if OPEN.match(body, pos):
        # Quotes do not count in elements, so only here it is seen that the next call begins.
        return end, [*rules, Rule.UNCLOSED] if closed else rules
    if closed:
        rules.append(Rule.TRAILING_TEXT)
        if _PUNCTUATION.fullmatch(body, pos):
            return len(body), rules
        no_text = _NO_REMARK.search(body, pos)
    else:
        # A close tag stood in what looked like a string, so the quotes of this block mean something else.
        no_text = CLOSE.search(body, pos) or _GOES_ON.match(body, pos)
    if no_text:
        raise UnreadableError("more than a call stands in the block")
    return end, rules
