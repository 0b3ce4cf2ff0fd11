"""What is counted of answers, and when a difference is more than chance."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.cli.eval.cases import load_cases
from proxy.cli.eval.grade import Mistake
from proxy.cli.eval.play import PlayedTurn
from proxy.cli.eval.results import CaseResult, EvalRun, best, compare, figures
from proxy.contracts import Usage
from proxy.turn import TurnReport

CASES = load_cases()


def result(number: int, *, right: bool = True, text: str = "") -> CaseResult:
    played = PlayedTurn(text, (), None, Usage(), (), TurnReport())
    return CaseResult(CASES[number], () if right else (Mistake.NO_TEXT,), played)


def run(name: str, answers: Sequence[bool]) -> EvalRun:
    return EvalRun(name, "frontier", [result(number, right=right) for number, right in enumerate(answers)])


@pytest.mark.parametrize(
    ("first", "second", "chance"),
    [
        ([True] * 5, [False] * 5, 2 / 2**5),
        ([True] * 10, [False] * 10, 2 / 2**10),
        ([True, True], [True, True], 1.0),
        ([True, False], [False, True], 1.0),
        ([True, False, True], [True, False, False], 1.0),
    ],
)
def test_chance_is_that_of_a_coin(first: list[bool], second: list[bool], chance: float) -> None:
    assert compare(run("a", first), run("b", second)).chance == pytest.approx(chance)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=len(CASES)))
def test_a_comparison_counts_each_case_once_and_knows_no_side(pairs: list[tuple[bool, bool]]) -> None:
    one, other = run("a", [first for first, _ in pairs]), run("b", [second for _, second in pairs])
    found, turned = compare(one, other), compare(other, one)
    assert 0 < found.chance <= 1
    assert found.chance == turned.chance
    assert (found.right, found.alone) == (turned.right[::-1], turned.alone[::-1])
    assert found.right == (figures(one.results).right, figures(other.results).right)
    assert found.right[0] - found.right[1] == found.alone[0] - found.alone[1]
    assert best([one, other]) is (one if found.right[0] >= found.right[1] else other)


def test_only_cases_that_both_have_are_compared() -> None:
    assert compare(run("a", [True] * 9), run("b", [False] * 2)).right == (2, 0)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "read_note"}',
        "All done.</tool_call>",
        "[tool:call_1] 10.5",
        "It is warm.\n[tool_call] {}",
        "[assistant] It is warm.",
        'I call {"name": "read_note", "arguments": {}}.',
        '{"key": "1234", "name": "read_note"}',
        "Result of read_note (call_1): eggs",
        "[read_note: 10.5]\nIt is warm.",
    ],
)
def test_what_only_the_model_and_tagcall_write_is_markup(text: str) -> None:
    assert result(0, text=text).markup


@pytest.mark.parametrize(
    "text", ["It is 10.5 degrees.", "See [tool list] below.", "Use `{}` here.", "The result of it is 3.", "", "a < b"]
)
def test_prose_is_no_markup(text: str) -> None:
    assert not result(0, text=text).markup
