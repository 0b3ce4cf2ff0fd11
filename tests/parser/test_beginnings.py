from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parser.beginnings import beginnings
from parser.body import _FENCE
from parser.foreign import OPENING
from parser.grammar import CLOSE, CLOSE_BEHIND, OPEN
from parser.live_call import PARTS
from parser.openers import HELD_ANSWERS

USED = {"open": OPEN, "close": CLOSE, "escaped close": CLOSE_BEHIND, "fence": _FENCE,
        **{f"part {at} of a call": part.whole for at, part in enumerate(PARTS)},
        **{f"opener {at}": re.compile(opener.pattern) for at, opener in enumerate(HELD_ANSWERS)},
        "other notations": re.compile(OPENING)}  # fmt: skip

# Patterns of few letters, with what is used of the syntax: what they match can be counted out.
REPEATED = st.tuples(
    st.sampled_from(["a", "b", "[ab]", "[^b]", r"\w", "(a)"]),
    st.sampled_from(["", "", "?", "*", "+", "{0,2}", "{2}", "{1,}"]),
).map("".join)
PATTERNS = st.recursive(
    REPEATED,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=2).map("".join)
        | st.lists(inner, min_size=1, max_size=2).map(lambda parts: f"(?:{'|'.join(parts)})")
    ),
    max_leaves=4,
)
# Four pieces match eight letters and more, behind the two of the longest text that is asked about.
WORDS = ["".join(word) for length in range(11) for word in itertools.product("ab", repeat=length)]


@given(PATTERNS)
@example("a*b{2}a{2}a{2}")
@settings(max_examples=settings().max_examples)
def test_a_text_is_a_beginning_if_a_longer_one_matches(pattern: str) -> None:
    whole, begun = re.compile(pattern), re.compile(beginnings(pattern))
    beginnings_of_matches = {
        word[:end] for word in WORDS if len(word) and whole.fullmatch(word) for end in range(len(word))
    }
    for text in WORDS[:7]:
        assert bool(begun.match(text)) is (text in beginnings_of_matches), text


@pytest.mark.parametrize("pattern", USED.values(), ids=USED)
@given(data=st.data())
@settings(max_examples=25)
def test_every_beginning_of_what_is_read_is_found(pattern: re.Pattern[str], data: st.DataObject) -> None:
    text = data.draw(st.from_regex(pattern, alphabet=st.characters(codec="ascii")))
    begun = re.compile(beginnings(pattern.pattern), pattern.flags)
    if found := pattern.match(text):
        for end in range(found.end()):
            assert begun.match(text[:end]) or pattern.match(text[:end])


@pytest.mark.parametrize(
    ("pattern", "begun", "others"),
    [
        (r"(?P<t>ab)</(?P=t)>", ["", "a", "ab", "ab<", "ab</a"], ["ab</ab>", "ab</b"]),
        (r"(['\"]?)x\1", ["", "'", "'x"], ["'x'", "'y"]),
        (r"a(?=bc)", ["", "a", "ab"], ["abc", "ac"]),
        (r"a(?!b)c", ["", "a"], ["ab", "ac"]),
    ],
)
def test_groups_are_referred_to_and_looks_are_beginnings(pattern: str, begun: list[str], others: list[str]) -> None:
    found = re.compile(beginnings(pattern))
    assert [text for text in begun + others if found.match(text)] == begun


@given(st.text(min_size=1))
def test_every_beginning_of_a_literal_is_found_and_nothing_else(literal: str) -> None:
    begun = re.compile(beginnings(re.escape(literal)))
    for length in range(len(literal)):
        assert begun.match(literal[:length])
    assert not begun.match(literal)
    assert not begun.match(literal + "x")


@pytest.mark.parametrize("pattern", ["(a", "a)b", "[a", "(?i:a)", "*"])
def test_what_it_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="no pattern"):
        beginnings(pattern)
