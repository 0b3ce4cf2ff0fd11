"""What is kept of conversations is found by those that begin alike, and takes no more than it may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import AssistantText, Entry
from prompts.beginnings import Beginnings, Begun

WORDS = st.text("ab", max_size=6)


@pytest.mark.parametrize("kind", ["bytes", "entries"])
@given(st.lists(st.tuples(st.sampled_from("xy"), WORDS)), st.integers(0, 40))
def test_the_longest_beginning_that_is_kept_is_found(kind: str, said: list[tuple[str, str]], most: int) -> None:
    def whole(text: str) -> tuple[Entry, ...]:
        return tuple(map(AssistantText, text))

    def check(kept: dict[str, set[str]], found: str | None, context: str, text: str) -> None:
        known = [begin for begin in kept[context] if text.startswith(begin)]
        assert found is None or found in known
        assert roomy is False or found == max(known, key=len, default=None)

    roomy = sum(1 + len(text) for _, text in said) <= most and len(said) < 64
    kept: dict[str, set[str]] = {"x": set(), "y": set()}
    if kind == "bytes":
        texts: Beginnings[bytes, str] = Beginnings(most)
        for context, text in said:
            found = texts.find(context, text.encode())
            check(kept, found.made if found else None, context, text)
            texts.keep(Begun(context, text.encode(), text, 1 + len(text)))
            kept[context].add(text)
            assert texts.bytes <= most
        return
    entries: Beginnings[tuple[Entry, ...], str] = Beginnings(most)
    for context, text in said:
        begun = entries.find(context, whole(text))
        check(kept, begun.made if begun else None, context, text)
        if text:
            entries.keep(Begun(context, whole(text), text, 1 + len(text)))
            kept[context].add(text)
        assert entries.bytes <= most


def test_of_a_conversation_that_goes_on_only_the_longer_beginning_is_kept() -> None:
    kept: Beginnings[bytes, int] = Beginnings(100)
    kept.keep(Begun(None, b"ab", 2, 10))
    short = kept.find(None, b"abc")
    kept.keep(Begun(None, b"abc", 3, 15), short)
    assert (kept.bytes, kept.find(None, b"ab")) == (15, None)


def test_what_takes_more_than_there_is_room_for_is_not_kept_and_drives_nothing_out() -> None:
    kept: Beginnings[bytes, int] = Beginnings(10)
    kept.keep(Begun(None, b"b", 1, 10))
    kept.keep(Begun(None, b"a", 1, 11))
    assert (kept.find(None, b"a"), kept.bytes) == (None, 10)
