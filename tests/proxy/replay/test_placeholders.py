"""A placeholder stands for what was there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.placeholders import stands_for


@pytest.mark.parametrize(
    ("written", "text", "fits"),
    [
        ("Log in with password=[redacted] now", "Log in with password=hunter2 now", True),
        ("Log in with password=[redacted] now", "Log in with password=[redacted] now", True),
        ("Log in with password=[redacted] now", "Log in with password= now", False),
        ("Log in with password=[redacted] now", "Log in with password=hunter2 later", False),
        ("Ask user@example.com and user2@example.com", "Ask ann@corp.org and bo@corp.org", True),
        ("Read /home/user/a.md", "Read /srv/notes/a.md\nand more", True),
        ("Read /home/user/a.md", "Read /srv/notes/a.md and more", False),
        ("[key]", "one\ntwo", True),
        ("[key]", "", False),
        ("no placeholder", "no placeholder\nmore", True),
        ("no placeholder", "no placeholder more", False),
        ("[key] a", "x a a", True),
    ],
)
def test_it_fits_what_was_there(written: str, text: str, fits: bool) -> None:
    assert stands_for(written, text) is fits


@given(st.lists(st.text(alphabet="ab \n"), min_size=1), st.text(alphabet="ab", min_size=1), st.text())
def test_whatever_was_taken_out_it_fits(literals: list[str], secret: str, more: str) -> None:
    assert stands_for("[redacted]".join(literals), secret.join(literals) + "\n" + more)


def test_a_long_text_with_many_placeholders_is_decided_at_once() -> None:
    assert not stands_for("[key] a" * 500 + "b", "x a" * 200_000)
