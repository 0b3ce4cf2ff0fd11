"""Which quote ends a string that may hold quotes: what has to follow it, by where the string stands.

In well-formed text it always does.
"""

from __future__ import annotations

import re

# Space that JSON does not know: no-break, typographic and ideographic spaces, line separators, zero width marks.
OTHER_SPACE = re.compile("[\f\v\u0085\u00a0\u1680\u2000-\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]+")
WS = f"[ \\t\\r\\n{OTHER_SPACE.pattern[1:-2]}]*+"

# Strategy: a quote that is not escaped is the end of its string or a quotation mark in it. What follows decides: behind
# a string JSON goes on with a bracket, a comma or a colon, and a sentence seldom does so in the same way. A comma alone
# is not enough, as sentences have commas: behind it the next key or value has to begin.

# By the curly quote that opens a string: those that may close it.
CURLY = {
    **dict.fromkeys("\u201c\u201d\u201e", "\u201c\u201d"),
    **dict.fromkeys("\u2018\u2019", "\u2018\u2019"),
}
_CURLY = "".join(CURLY)

_KEY = rf'(?:"(?:[^"\\]++|\\[\s\S])*+"|[A-Za-z_$][\w$-]*|\'[^\'\\\n]*\'|[{_CURLY}][^{_CURLY}\n]*[{_CURLY}])'
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
