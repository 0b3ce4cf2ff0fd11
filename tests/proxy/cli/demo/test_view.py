"""What the demo prints, and how it fits."""

from __future__ import annotations

import io
import string

from hypothesis import given
from hypothesis import strategies as st

from parser import write_call
from proxy.cli.demo.view import View, abridged, news, runs


def printed(text: str, width: int = 200, *, terminal: bool = False) -> str:
    out = io.StringIO()
    view = View(out, width, colour=terminal)
    view.heading("Head")
    view.step("client", "runs", text)
    view.quote(text)
    view.excerpt(text, head=2, tail=1)
    view.paragraph(text)
    return out.getvalue()


def test_repeated_events_are_counted() -> None:
    names = ["response.created", *["response.output_text.delta"] * 12, "response.completed"]
    assert runs(names) == ["created", "output_text.delta x12", "completed"]


def test_the_middle_of_a_long_text_is_counted() -> None:
    assert abridged(["1", "2", "3", "4", "5"], 1, 1) == ["1", "... 3 more lines ...", "5"]
    assert abridged(["1", "2", "3"], 1, 1) == ["1", "2", "3"]


def test_what_was_shown_before_is_counted() -> None:
    assert news(["1", "2", "3"], ["1", "2", "x", "3"]) == ["... 2 lines as before ...", "3"]
    assert news(["1", "2"], ["2"]) == ["1", "2"]


def test_tags_are_coloured_on_a_terminal_and_whole_in_a_pipe() -> None:
    call = write_call("read_note", '{"path": "a.md"}')
    assert "\x1b[1;35m<tool_call>\x1b[0m{" in printed(call, terminal=True)
    assert f"  | {call}\n" in printed(call)


@given(st.text(string.printable), st.integers(40, 120))
def test_no_line_is_longer_than_the_terminal_or_eighty(text: str, width: int) -> None:
    assert max(len(line) for line in printed(text, width).split("\n")) <= min(width, 80)
