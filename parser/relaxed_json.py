"""Write nearly-JSON as JSON: the text is copied, and only what has one reading is corrected.

Well-formed text comes back character for character, and so does the well-formed part of any other text. This lets a
repaired call continue one that was reported while it was being written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from msgspec import Struct

from .grammar import CLOSE, OPEN
from .json_scan import ESCAPE, MAX_DEPTH, SCALAR, SPACE, STRING_RUN, after_space
from .rules import Rule

# Space that JSON does not know: no-break, typographic and ideographic spaces, line separators, zero width marks.
OTHER_SPACE = re.compile("[\f\v\u0085\u00a0\u1680\u2000-\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]+")
# And line ends that are written as in a string.
ESCAPED_SPACE = re.compile(r"(?:\\[nrt])+")
WS = f"[ \\t\\r\\n{OTHER_SPACE.pattern[1:-2]}]*+"

# Strategy: a quote that is not escaped is the end of its string or a quotation mark in it. What follows decides: behind
# a string JSON goes on with a bracket, a comma or a colon, and a sentence seldom does so in the same way. A comma alone
# is not enough, as sentences have commas: behind it the next key or value has to begin.

# Characters behind a string in which escaped line ends are looked for what follows.
_AHEAD = 256
_CURLY = "\u201c\u201d\u201e\u2018\u2019"
_QUOTES = f"\"'{_CURLY}"
# What opens a string in them, and what closes it.
_OTHER_STRINGS = [
    (re.compile(rf"{opener}((?:{inside})*){closer}"), rule)
    for opener, inside, closer, rule in (
        ('"""', r'[^"\\]++|\\[\s\S]|(?!""")"', '"""', Rule.TRIPLE_QUOTES),
        ("'''", r"[^'\\]++|\\[\s\S]|(?!''')'", "'''", Rule.TRIPLE_QUOTES),
        ("'(?!'')", r"[^'\\]++|\\[\s\S]", "'", Rule.SINGLE_QUOTES),
        ("[\u201c\u201d\u201e]", r"[^\u201c\u201d\\]++|\\[\s\S]", "[\u201c\u201d]", Rule.CURLY_QUOTES),
        ("[\u2018\u2019]", r"[^\u2018\u2019\\]++|\\[\s\S]", "[\u2018\u2019]", Rule.CURLY_QUOTES),
    )
]
_QUOTE = re.compile(r'(?:[^"\\]++|\\[\s\S])*"')
# In a string, escapes and what JSON does not have there.
_FAULT = re.compile(rf'{ESCAPE}|(?P<backslash>\\)(?=(?P<escaped>[\s\S]?))|(?P<quote>")|(?P<control>[\x00-\x1f])')
_DOUBLE_QUOTED = {'"': '\\"', "\\'": "'"}
_BLANK = re.compile(WS)

_KEY = rf'(?:"(?:[^"\\]++|\\[\s\S])*"|[A-Za-z_$][\w$-]*|\'[^\'\\\n]*\'|[{_CURLY}][^{_CURLY}\n]*[{_CURLY}])'
KEY_AHEAD = re.compile(f"{_KEY}{WS}:")

# What may end a container, or the text; also a comment, which may stand before either.
_OVER = r"[}\]]|\Z|//|/\*|#"
# The first character of a next element, or the whole of a word: `Trueman` begins like one and is none.
_VALUE = rf"[\"'\[{{\-+.0-9{_CURLY}]|(?i:true|false|null|none)\b"

ENDS_KEY = re.compile(f"{WS}:")
ENDS_MEMBER = re.compile(rf"{WS}(?:{_OVER}|{KEY_AHEAD.pattern}|,{WS}(?:{_OVER}|{KEY_AHEAD.pattern}))")
ENDS_ELEMENT = re.compile(rf"{WS}(?:{_OVER}|,{WS}(?:{_OVER}|{_VALUE}))")
# For a value that stands alone: nothing that could follow it is part of it.
ENDS_ANYWHERE = re.compile("")


# What may be one scalar. Wider than JSON, so that what follows a digit cannot be taken for a token of its own.
RUN = re.compile(r"[-+.\w]+", re.ASCII)

# Python's words, and JSON's own in other cases. `yes`, `nil` and the like may be words of a text.
_LITERALS = {
    **dict.fromkeys(("True", "TRUE"), "true"),
    **dict.fromkeys(("False", "FALSE"), "false"),
    **dict.fromkeys(("None", "Null", "NULL"), "null"),
}
_COMMENT = re.compile(r"(?://|#)[^\n]*|/\*.*?\*/", re.DOTALL)
_NO_COMMENT = re.compile(r'["{}\[\]]|,[ \t\r]*(?:\*/)?\Z')
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$-]*")
# In prose and code a quotation opens behind one of these, close to what it quotes, and closes before one of those.
_QUOTATION = re.compile(r"""(?:(?<=[\s(\[{<=>;/'-])|(?<=\A))"(?=\S)[^"]*(?<=\S)"(?=[\s)\]}>.,;:!?/'-]|\Z)""")
# Quotes beside these may be the ends of strings after all.
_STRUCTURE = re.compile(r'"[ \t\r\n]*[:{\[]|[,{\[:][ \t\r\n]*"')
# What makes a string look like a Windows path: a drive, or names alone, of which the last has an ending if there are
# blanks. And an escape of JSON that would be a folder's first letter in it.
_DRIVE = re.compile(r"[A-Za-z]:\\")
_NAMES = re.compile(r"(?=[^ ]+\Z|.*\.\w{1,5}\Z)[\w .-]*(?:\\{1,2}\.?[^\W_][\w .-]*)+")
_ESCAPE = r"(?<!\\)(?:\\\\)*\\"
# The languages that have strings in single quotes write characters so that one does not see, as `\xa0`.
_LATIN_1 = re.compile(rf"({_ESCAPE})x([0-9a-fA-F]{{2}})")
_ESCAPED_LETTER = re.compile(f"{_ESCAPE}[bfnrtu]")
# A backspace or a form feed is hardly meant: they are the `\b` of a pattern, or begin `\beta` and `\frac`. A line end
# or a tab may be meant before any word, so of the commands of TeX that begin like one those count that leave none.
_COMMAND = re.compile(
    rf"{_ESCAPE}(?:[bf]|(?:nabla|neq|notin|rho|right|rightarrow|rangle|rceil|rfloor"
    r"|tau|text(?:bf|it|rm|tt)?|tfrac|therefore|theta|tilde|times|triangle)(?![A-Za-z]))"
)
# Side by side with an escape that JSON does not know, as of a pattern or of a character, another is hardly one of JSON.
_UNKNOWN = r"(?:[0-9]|x[0-9a-fA-F]{2}|[adDeEsSvwW](?![A-Za-z]))"
_SIDE_BY_SIDE = re.compile(rf"{_ESCAPE}(?:{_UNKNOWN}\\[nrtu]|(?:[nrt]|u[0-9a-fA-F]{{4}})\\{_UNKNOWN})")
# In a string, with each `\'` as a NUL and other escapes as a blank: a quote of the author's own beside them, and what
# may be an accent of TeX, as in `caf\'e` and `\'{e}`, or the letter behind an elision, as in `l\'eau`.
_OWN_QUOTE = re.compile(r"(?<!\w)'|'(?!\w)")
_ACCENT = re.compile(r"(?<!\w)(\w*+)\0(?:(?=([aeiouy]))|\{[a-z]\}(?!\0))", re.IGNORECASE)
_ELIDED = re.compile(
    "[cdjlmnsteoy]|(?:jus|lors|puis|quel)?qu|d?all|(?:[bdn]|qu)ell|sull|un|quest|com|dov|anch|ma|ne",
    re.IGNORECASE,
)
# A quote, a brace and a key with its quotes: no string that is escaped begins like this.
_OBJECT_IN_QUOTES = re.compile(rf'"\{{{WS}"{STRING_RUN.pattern}"{WS}:')


# Strategy: one pass, which copies. Each rule is tried only where JSON itself does not go on, so well-formed text never
# meets one. A rule must say what its author meant in every context; where two would explain the same place, as a lost
# comma and a quote that is not escaped, the text is refused rather than decided.


class UnreadableError(Exception):
    """The text has no reading, or more than one. The message is the reason.

    With an `end`, what follows there is text all the same. If it is not `meant`, it only mentions a call.
    """

    def __init__(self, reason: str, end: int | None = None, *, meant: bool = True) -> None:
        super().__init__(reason)
        self.end = end
        self.meant = meant


class Rewritten(Struct, frozen=True):
    """One value as strict JSON text, where it ended, and the rules that were used in order."""

    text: str
    end: int
    rules: tuple[Rule, ...]


def rewrite(text: str, pos: int = 0, *, closed: bool = True) -> Rewritten:
    """The JSON value that starts at `pos`. `closed` says that the text ends where its author ended it.

    Raises UnreadableError.
    """
    writer = _Writer(text, pos, closed=closed)
    writer.value(ENDS_ANYWHERE)
    return Rewritten("".join(writer.out), writer.pos, tuple(writer.rules))


class _Writer:
    def __init__(self, text: str, pos: int, *, closed: bool) -> None:
        self.text = text
        self.pos = pos
        self.closed = closed
        self.out: list[str] = []
        self.rules: dict[Rule, None] = {}
        self.depth = 0
        self.string_end = 0  # where the last string ended
        self.key_quote = ""  # that of the last member's key
        self.escaped_space = False  # line ends between tokens are written as in a string

    def _use(self, rule: Rule) -> None:
        self.rules[rule] = None

    def _peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.pos)
        if match is None:
            return ""
        self.pos = match.end()
        return match.group()

    def _blank(self) -> None:
        while True:
            self.out.append(self._take(SPACE))
            char = self._peek()
            if char in ("/", "#") and (comment := self._take(_COMMENT)):
                # With a quote it is rather the rest of a string, whose own quote was none that ends it; with a bracket,
                # or a comma at its end, a part of the call that a stray `#` or `/` has hidden.
                if _NO_COMMENT.search(comment):
                    raise UnreadableError("more than a remark in a comment")
                self._use(Rule.COMMENTS)
            elif (char > "~" and self._take(OTHER_SPACE)) or (char == "\\" and self._take(ESCAPED_SPACE)):
                self.escaped_space = self.escaped_space or char == "\\"
                self._use(Rule.OTHER_SPACES)
                self.out.append(" ")
            else:
                return

    def value(self, ends: re.Pattern[str]) -> None:
        self._blank()
        char = self._peek()
        if char == "{":
            self._object()
        elif char == "[":
            self._container("]", lambda: self.value(ENDS_ELEMENT))
        elif not self._quoted(char, ends):
            self._scalar()

    def _quoted(self, char: str, ends: re.Pattern[str]) -> bool:
        """A string in any quotes, if `char` opens one."""
        if not char or char not in _QUOTES:
            return False
        if char == '"' and not self.text.startswith(char * 3, self.pos):
            start, end = self.pos + 1, self._string_end(ends)
            inside, self.pos = self.text[start:end], end + 1
        else:
            inside = self._other_quotes(ends)
        if STRING_RUN.fullmatch(inside) is None:
            inside = self._mended(inside, is_key=ends is ENDS_KEY)
        self.out.append(f'"{inside}"')
        self.string_end = self.pos
        return True

    def _missing(self, what: str) -> UnreadableError:
        char = self._peek()
        return UnreadableError(f"{char!r} where {what} should be" if char else "the JSON is cut off")

    def _scalar(self) -> None:
        run = self._take(RUN)
        if not run:
            raise self._missing("a value")
        if SCALAR.fullmatch(run) is None:
            # `007` may be octal or not, `1_000` may be anything; `NaN` is nothing that JSON has a word for.
            if run not in _LITERALS:
                raise UnreadableError(f"{run[:40]!r} is no JSON value")
            self._use(Rule.PYTHON_LITERALS)
        self.out.append(_LITERALS.get(run, run))

    def _object(self) -> None:
        # Where JSON wants a key. As in templates, which write `{{` for one brace.
        doubled = self.text.startswith("{", after_space(self.text, self.pos + 1))
        if doubled:
            self.pos += 1
            self._blank()
            self._use(Rule.DOUBLED_BRACES)
        self._container("}", self._member)
        if doubled:
            self._blank()
            if self._peek() != "}":
                raise UnreadableError("an object where a key should be")
            self.pos += 1

    def _container(self, closer: str, item: Callable[[], None]) -> None:
        """An object or array, from its opener on."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("nested too deep")
        self.out.append(self._peek())
        self.pos += 1
        self._blank()
        comma = None  # where the last one stands in `out`
        while self._peek() != closer:
            item()
            self._blank()
            comma = None
            if self._peek() == ",":
                self.pos += 1
                comma = len(self.out)
                self.out.append(",")
                self._blank()
            elif closer == "}" and KEY_AHEAD.match(self.text, self.pos):
                # Only before a key, with its colon: between two values a lost comma looks like one value that goes on.
                self._check_lost_comma()
                self._use(Rule.MISSING_COMMA)
                self.out.append(", ")
            else:
                break
        if self._peek() == closer:
            self.pos += 1
            if comma is not None:
                self._use(Rule.TRAILING_COMMA)
                # The blanks behind it were written already, and stay.
                self.out[comma] = ""
        elif self._peek() or not self.closed:
            raise self._missing(f"a comma or {closer!r}")
        else:
            # The author closed the block, so nothing but brackets was forgotten. Where the text just ends, anything may
            # be missing.
            self._use(Rule.MISSING_CLOSERS)
        self.out.append(closer)
        self.depth -= 1

    def _check_lost_comma(self) -> None:
        """In `"p": "s.split("key: ")"` no comma is lost: a key behind a string is written as the one before it."""
        char = self._peek()
        quote = char if char in _QUOTES else ""
        behind_string = _BLANK.fullmatch(self.text, self.string_end, self.pos)
        if behind_string and (quote != self.key_quote or (not quote and self.string_end == self.pos)):
            raise UnreadableError("a quote inside a string is not escaped")

    def _member(self) -> None:
        char = self._peek()
        is_quoted = self._quoted(char, ENDS_KEY)
        if not is_quoted:
            key = self._take(_IDENTIFIER)
            if not key:
                raise self._missing("a key")
            self._use(Rule.UNQUOTED_KEYS)
            self.out.append(f'"{key}"')
        self._blank()
        if self._peek() != ":":
            raise UnreadableError("a key without a colon" if self._peek() else "the JSON is cut off")
        self.pos += 1
        self.out.append(":")
        self._blank()
        # Among the members of the call, where such a string can hardly be anything but its arguments. Deeper it may be
        # a text that quotes JSON.
        if not (self.depth == 1 and _OBJECT_IN_QUOTES.match(self.text, self.pos) and self._object_in_quotes()):
            self.value(ENDS_MEMBER)
        self.key_quote = char if is_quoted else ""

    def _object_in_quotes(self) -> bool:
        """The arguments of a call as an object in quotes, none of its own quotes escaped."""
        inner = _Writer(self.text, self.pos + 1, closed=False)
        try:
            inner.value(ENDS_ANYWHERE)
        except UnreadableError:
            return False
        # The quote behind the object has to be the one that ends the string, or this string only begins like an object.
        if not self.text.startswith('"', inner.pos) or not ENDS_MEMBER.match(self.text, inner.pos + 1):
            return False
        self._use(Rule.UNESCAPED_OBJECT)
        self.rules |= inner.rules
        self.out += inner.out
        self.pos = inner.pos + 1
        return True

    def _string_end(self, ends: re.Pattern[str]) -> int:
        """Where the quote stands that ends it: the first that what follows may follow. Of well-formed text it does."""
        pos = self.pos + 1
        while quote := _QUOTE.match(self.text, pos):
            pos = quote.end()
            # Else a line end that is written as in a string rather stands in this one.
            ahead = self.text[pos : pos + _AHEAD] if self.escaped_space else ""
            if ends.match(self.text, pos) or (ahead and ends.match(ESCAPED_SPACE.sub(" ", ahead))):
                return pos - 1
            # `live_call` has told keys as soon as their quote came, so no key may turn out to be longer.
            if ends is ENDS_KEY:
                raise UnreadableError("a key without a colon")
        raise UnreadableError("a string does not end")

    def _mended(self, inside: str, *, is_key: bool) -> str:
        """What stands between the quotes of a string, as JSON has it."""
        if Rule.SINGLE_QUOTES in self.rules:
            inside = _LATIN_1.sub(r"\1u00\2", inside)
        faults = [fault for fault in _FAULT.finditer(inside) if fault.lastgroup]
        # JSON knows no such escape, so the backslash is one that its author saw: `\d` of a pattern, `\$` of a shell.
        backslash, escaped = "\\\\", [fault["escaped"] for fault in faults if fault["backslash"]]
        if any(fault["control"] for fault in faults):
            self._use(Rule.CONTROL_CHARACTERS)
        if any(fault["quote"] for fault in faults):
            _check_inner_quotes(inside)
            self._use(Rule.INNER_QUOTES)
        # Of all that JSON does not know, other languages know this one.
        if set(escaped) == {"'"} and not is_key and _is_escaped_for_json(inside):
            self._use(Rule.ESCAPED_APOSTROPHE)
            backslash = ""
        elif escaped:
            if is_key:
                # As Markdown writes the `_` of a name. Before a letter it may be anything.
                if any(map(str.isalnum, escaped)):
                    raise UnreadableError("an escape in a key that is none")
                backslash = ""
            else:
                _check_escapes(inside)
            self._use(Rule.INVALID_ESCAPES)
        return _FAULT.sub(
            lambda at: backslash if at["backslash"] else json.dumps(at[0])[1:-1] if at.lastgroup else at[0], inside
        )

    def _other_quotes(self, ends: re.Pattern[str]) -> str:
        """What stands in any but plain double quotes. The first that closes them ends them, where a string may end."""
        # An apostrophe within single quotes looks the same as their end.
        matches = ((pattern.match(self.text, self.pos), rule) for pattern, rule in _OTHER_STRINGS)
        found, rule = next(((found, rule) for found, rule in matches if found), (None, None))
        if found is None or rule is None or not ends.match(self.text, found.end()):
            raise UnreadableError("a string in other quotes does not end")
        self._use(rule)
        # `BlockEnd` looks at plain quotes one by one, and may have cut the block at this tag, or have missed that it
        # ends there.
        if OPEN.search(found[1]) or CLOSE.search(found[1]):
            raise UnreadableError("a tag in a string in other quotes")
        self.pos = found.end()
        return re.sub(r'\\.|"', lambda each: _DOUBLE_QUOTED.get(each[0], each[0]), found[1], flags=re.DOTALL)


def _check_inner_quotes(inside: str) -> None:
    """Quotes that quote something may stay; any other may be the end of one string or the start of the next."""
    # Of the same length, without what is escaped: an escaped quote is none, an escaped line break is a blank.
    plain = re.sub(r"\\.", lambda escape: "  " if escape[0][1] in "nrt" else "__", inside, flags=re.DOTALL)
    unpaired = '"' in _QUOTATION.sub("", plain)
    # A tag between quotes: the string may have ended before it, and with it the block.
    if unpaired or _STRUCTURE.search(inside) or OPEN.search(inside) or CLOSE.search(inside):
        raise UnreadableError("a quote inside a string is not escaped")


def _check_escapes(inside: str) -> None:
    """Doubling the backslash of `C:\\dir\\new` would keep the line break in it: that is a guess."""
    if (_DRIVE.search(inside) or _NAMES.fullmatch(inside)) and _ESCAPED_LETTER.search(inside):
        raise UnreadableError("backslashes in a path are not escaped")
    if _COMMAND.search(inside) or _SIDE_BY_SIDE.search(inside):
        raise UnreadableError("some backslashes are escaped and others are not")


def _is_escaped_for_json(inside: str) -> bool:
    """Whether each `\'` in a string is an apostrophe that its author escaped for JSON, as other languages want it.

    Whoever writes `'` beside it tells the two apart, as `'it\'s'` of a program does.
    """
    marked = re.sub(r"\\.", lambda escape: "\0" if escape[0] == "\\'" else " ", inside, flags=re.DOTALL)
    if _OWN_QUOTE.search(marked):
        return False
    last_end = max((end.start() for end in re.finditer(r"\0(?!\w)", marked)), default=0)
    for accent in _ACCENT.finditer(marked):
        word, letter = accent.groups()
        # At the start of a word it may open a quotation, which another one then closes.
        is_quote = letter and not word and accent.end() <= last_end
        if not (is_quote or (letter and _ELIDED.fullmatch(word))):
            return False
    return True
