"""What only we write is taken out of answers, however they are cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser.sentinel import MAX_PIECE
from proxy.turn import Reason
from proxy.turn.filters import OwnNotation, headers, invented_results, own_lines

LINE = "If all parts are done, answer."
TOOLS = ("get_weather", "search")


def reader(
    told: Counter[Reason],
    *,
    call: str | None = None,
    quoted: bool = False,
    named: bool = False,
    lines: Sequence[str] = (LINE,),
) -> OwnNotation:
    """One behind a call of `call`, if there was one."""
    rules = (
        headers(lambda: quoted, TOOLS, named=named),
        invented_results(TOOLS, named=named),
        own_lines(lines),
    )
    notation = OwnNotation(rules, lambda what: told.update([what]))
    if call:
        notation.pass_call(call)
    return notation


def shown(
    text: str,
    size: int,
    *,
    call: str | None = None,
    quoted: bool = False,
    named: bool = False,
    lines: Sequence[str] = (LINE,),
) -> tuple[str, dict[Reason, int]]:
    told = Counter[Reason]()
    notation = reader(told, call=call, quoted=quoted, named=named, lines=lines)
    pieces: Sequence[str] = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join([*map(notation.feed, pieces), notation.flush()]), dict(told)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "left", "what"),
    [
        ("[assistant] It is 10.5.", "It is 10.5.", {Reason.HEADER: 1}),
        ("[tool:call_1] It is 10.5.\n[user] too", "It is 10.5.\n[user] too", {Reason.HEADER: 1}),
        ("[tool:call_1] off\n[tool:call_2] off", "off\noff", {Reason.HEADER: 2}),
        ("off\n[tool:call_2] off", "off\n[tool:call_2] off", {}),
        ("\n[user]\n[assistant]\nHello", "\nHello", {Reason.HEADER: 2}),
        ("[assistants] do [user]", "[assistants] do [user]", {}),
        ("[tool:", "[tool:", {}),
        (f"{LINE}\n\nIt is 10.5.", "It is 10.5.", {Reason.OWN_LINE: 1}),
        (f"So.\n{LINE} It is.\n{LINE}", "So.\nIt is.\n", {Reason.OWN_LINE: 2}),
        (f"[assistant] {LINE}\nSo.", "So.", {Reason.HEADER: 1, Reason.OWN_LINE: 1}),
        (f"He said: {LINE}\nIf all", f"He said: {LINE}\nIf all", {}),
        ("[get_weather: 10.5]", "[get_weather: 10.5]", {}),
    ],
)
def test_headers_and_lines_of_ours_go(text: str, left: str, what: dict[Reason, int], size: int) -> None:
    assert shown(text, size) == (left, what)


LONG = "If every part of the request is done, answer in plain text from the results; if one is open, make the call."


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"{LONG} It is 10.5.", "It is 10.5."),
        (f"{LONG[:80]} say so. And more.\nIt is 10.5.", "It is 10.5."),
        (f"So.\n{LONG[:-1]}, in a sentence.", "So.\n"),
        (f"So.\n{LONG[:60]}", "So.\n"),
    ],
)
def test_so_does_a_line_that_begins_as_one_of_ours(text: str, left: str, size: int) -> None:
    assert shown(text, size, lines=(LONG, LINE)) == (left, {Reason.OWN_LINE: 1})


@pytest.mark.parametrize("text", [LONG[:40], f"{LONG[:40]} for today."])
def test_one_that_only_begins_alike_is_shown(text: str) -> None:
    assert shown(text, 3, lines=(LONG,)) == (text, {})


def test_a_header_that_somebody_else_wrote_may_be_shown() -> None:
    assert shown("[user] Hello", 3, quoted=True) == ("[user] Hello", {})


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_header_that_names_a_tool_goes_where_the_model_is_shown_such(size: int) -> None:
    text = "Result of get_weather (call_1): It is.\nResult of search (call_2): Three.\nResult of all: good"
    for lines in ((LINE,), ()):
        left = ("It is.\nThree.\nResult of all: good", {Reason.HEADER: 2})
        assert shown(text, size, named=True, lines=lines) == left
    assert shown(text, size, named=True, quoted=True) == (text, {})
    others = f"So:\n{text.replace('search', 'others').replace('get_weather', 'all')}"
    assert shown(others, size, named=True) == (others, {})
    assert shown(text, size) == (text, {})
    assert shown(text, size, named=True, call="search") == ("Result of all: good", {Reason.INVENTED_RESULT: 2})
    invented = ("result of all: good", {Reason.INVENTED_RESULT: 2})
    assert shown(text.lower(), size, named=True, call="search") == invented
    assert shown(text, size, call="search") == (text, {})


INVENTED = {Reason.INVENTED_RESULT: 1}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "left", "what"),
    [
        ("[get_weather: 10.5]\nIt is 10.5.", "It is 10.5.", INVENTED),
        ("So:\n[Get_Weather] 10.5\nIt is.", "So:\nIt is.", INVENTED),
        ("[get_weather result] 10.5", "", INVENTED),
        ("[get_weather result", "", INVENTED),
        ("[get_weather(Oslo)]", "", INVENTED),
        ("[get_weather]", "", INVENTED),
        ("[called: 1]\nSo.", "So.", INVENTED),
        ("[tool:call_1] 10.5\nSo.", "So.", INVENTED),
        ("[search](https://example.org)", "[search](https://example.org)", {}),
        ("[search the web]", "[search the web]", {}),
        ("[searching: x]", "[searching: x]", {}),
        ("in [search: x]", "in [search: x]", {}),
        ("[assistant] So.", "[assistant] So.", {}),
        ("```\n[search: x]\n```\n[sea", "```\n[search: x]\n```\n[sea", {}),
    ],
)
def test_behind_a_call_a_line_that_tells_its_result_goes(
    text: str, left: str, what: dict[Reason, int], size: int
) -> None:
    assert shown(text, size, call="called") == (left, what)


@pytest.mark.parametrize(
    ("text", "at_once", "place"),
    [
        ("Hello", True, {}),
        ("[assist", False, {}),
        ("[assistants", True, {}),
        ("So\n[assist", True, {}),
        ("If all", False, {}),
        ("[tool:" + "x" * 121, False, {}),
        ("[tool:" + "x" * 122, True, {}),
        ("Result of", True, {}),
        ("Result of", False, {"named": True}),
        ("Rain", True, {"named": True}),
        ("Rain", True, {"named": True, "call": "search"}),
        ("Result of", True, {"call": "search"}),
        ("Result of " + "x" * 117, False, {"named": True, "call": "search"}),
        ("Result of " + "x" * 118, True, {"named": True, "call": "search"}),
        ("[sea", False, {"call": "search"}),
        ("[search res", False, {"call": "search"}),
        ("[search the", True, {"call": "search"}),
        ("[see", True, {"call": "search"}),
    ],
)
def test_only_what_may_become_notation_of_ours_waits(text: str, at_once: bool, place: Mapping[str, Any]) -> None:
    """An id that has no end is not waited for."""
    notation = reader(Counter(), **place)
    told = notation.feed(text)
    assert told == (text if at_once else "")
    assert told + notation.flush() == text


@pytest.mark.parametrize("name", ["rm", "mv"])
def test_the_result_of_each_call_that_came_goes_on_offer_or_not(name: str) -> None:
    told = Counter[Reason]()
    notation = reader(told, call="rm")
    notation.pass_call("mv")
    assert notation.feed(f"[{name}: done]\nIt is gone.") == "It is gone."
    assert told == {Reason.INVENTED_RESULT: 1}


def test_each_message_begins_anew() -> None:
    notation = reader(Counter())
    for message, left in ((f"[user] One.\n{LINE}\n", "One.\n"), ("  Two.\n", "  Two.\n"), ("[user] Three.", "Three.")):
        assert notation.feed(message) + notation.flush() == left
        notation.begin()


def test_a_message_behind_a_call_may_begin_with_a_header() -> None:
    notation = reader(Counter(), call="search")
    notation.begin()
    assert notation.feed("[assistant] So.") + notation.flush() == "So."


def test_behind_a_block_that_is_taken_out_of_code_a_line_is_code() -> None:
    notation = reader(Counter(), call="search")
    left = notation.feed("```")
    notation.pass_out()
    assert left + notation.feed("[search: x]") + notation.flush() == "```[search: x]"


@pytest.mark.parametrize(
    ("block", "behind"),
    [
        ("<tool_call>", "\n  [user] is a header"),
        ("<tool_call>", f"\n{LINE[:9]}"),
        ("```\n<tool_call>", "\n[search: x]"),
    ],
)
@pytest.mark.parametrize("call", [None, "search"])
def test_behind_a_block_that_is_shown_its_line_goes_on(block: str, behind: str, call: str | None) -> None:
    notation = reader(Counter(), call=call)
    notation.pass_by(block)
    assert notation.feed(behind) + notation.flush() == behind


PIECES = st.sampled_from(
    ["[", "]", "[user]", "[tool:", "call_1]", "search", ":", " ", "\n", LINE, "If all", "So.", "```"]
)


@given(st.lists(PIECES, max_size=10).map("".join), st.integers(1, 20), st.sampled_from([None, "search"]))
def test_how_the_text_is_cut_does_not_show(text: str, size: int, call: str | None) -> None:
    assert shown(text, size, call=call) == shown(text, 1000, call=call)


def test_a_line_of_a_long_text_is_looked_at_without_all_that_follows_it() -> None:
    looked_at: list[int] = []

    def rule(text: str, at: object, last: bool) -> bool:
        looked_at.append(len(text))
        return False

    text = "So.\n" * 5_000
    assert OwnNotation([rule]).feed(text) == text
    assert len(looked_at) == 5_000
    assert max(looked_at) <= MAX_PIECE
