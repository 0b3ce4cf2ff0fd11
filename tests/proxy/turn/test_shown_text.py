"""What is known of the text in front of a call, by which its place is told."""

from __future__ import annotations

import pytest

from .playing import BROKEN, READ_A, READ_B, ask, play


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize(
    ("before", "is_call"),
    [
        ("> ", False),
        (f"{'Well. ' * 1000}\n> ", False),
        (f"> {'x' * 1900} ", False),
        ("> one\n", True),
        (f"{READ_B}\n", True),
        (f"{READ_B} and ", True),
    ],
)
async def test_the_line_in_front_of_a_call_says_where_it_stands_however_it_came(
    before: str, is_call: bool, size: int
) -> None:
    outcome = await play(f"{before}{READ_A}", chunk=size)
    assert (("read_note", '{"path": "a.md"}') in outcome.calls) is is_call


async def test_a_block_in_front_of_it_begins_its_line_anew() -> None:
    for before, is_call in (("I write ", False), (f"I write {BROKEN}", True)):
        outcome = await play(f"{before}{READ_A} for it.", request=ask(f"Show me {BROKEN}"))
        assert bool(outcome.calls) is is_call
