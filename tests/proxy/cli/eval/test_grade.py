"""An answer that is wrong in any one thing is wrong; one that differs where nobody minds is right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parser import Tool, ToolRegistry
from proxy.cli.eval.cases import EvalCase, WantedCall, load_cases
from proxy.cli.eval.grade import MadeCall, Mistake, mistakes

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": "integer"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"type": "object"},
    },
    "required": ["path"],
}
TOOLS = ToolRegistry([Tool("read", None, json.dumps(SCHEMA)), Tool("list", None, None)])
READ = WantedCall("read", {"path": ["a.md"]}, may=("lines",))

CALLED = [case for case in load_cases() if case.calls]


def read(**arguments: Any) -> MadeCall:
    return MadeCall("read", json.dumps(arguments))


def found(made: list[MadeCall], *wanted: WantedCall, text: str = "") -> tuple[Mistake, ...]:
    return mistakes(wanted, (), TOOLS, made, text)


@pytest.mark.parametrize(
    ("made", "mistake"),
    [
        ([], Mistake.MISSING_CALL),
        ([read(path="b.md")], Mistake.WRONG_ARGUMENT),
        ([read(path="a.md", deep=True)], Mistake.INVENTED_ARGUMENT),
        ([read(path="a.md", lines="many")], Mistake.MISFIT),
        ([read(path="a.md"), read(path="a.md")], Mistake.EXTRA_CALL),
        ([read(path="a.md"), MadeCall("list", "{}")], Mistake.EXTRA_CALL),
    ],
)
def test_one_mistake_is_one(made: list[MadeCall], mistake: Mistake) -> None:
    assert found(made, READ) == (mistake,)


def test_a_call_without_a_required_argument_lacks_it_and_does_not_fit() -> None:
    assert found([read()], READ) == (Mistake.MISFIT, Mistake.MISSING_ARGUMENT)


def test_another_tool_is_a_missing_call_and_one_that_nobody_asked_for() -> None:
    assert found([MadeCall("list", "{}")], READ) == (Mistake.MISSING_CALL, Mistake.EXTRA_CALL)


@pytest.mark.parametrize("arguments", ["", "{", "[]", '"a.md"', "null"])
def test_arguments_that_are_no_object_fit_nothing(arguments: str) -> None:
    assert found([MadeCall("read", arguments)], READ) == (Mistake.MISFIT,)


def test_what_may_stand_there_is_right_with_and_without_it() -> None:
    assert found([read(path="a.md", lines=7)], READ) == ()
    assert found([read(path="a.md")], READ) == ()


def test_case_and_outer_blanks_of_a_text_do_not_count() -> None:
    assert found([read(path=" A.md\n")], READ) == ()


@pytest.mark.parametrize(
    ("made", "wanted", "right"),
    [
        (25, 25, True),
        (25.0, 25, True),
        (True, 1, False),
        (True, True, True),
        (["a", "B"], ["A", "b"], True),
        (["a"], ["a", "b"], False),
        ({"column": "State"}, {"column": "state"}, True),
        ({"column": "state", "value": 1}, {"column": "state"}, False),
        ("line\r\nnext", "line\nnext", True),
        ("line next", "line\nnext", False),
        ('say "no"', "say no", False),
    ],
)
def test_values_are_compared_as_json_has_them(made: object, wanted: object, right: bool) -> None:
    tools = ToolRegistry([Tool("set", None, None)])
    call = MadeCall("set", json.dumps({"value": made}))
    assert (mistakes([WantedCall("set", {"value": [wanted]})], (), tools, [call], "") == ()) is right


def test_a_text_that_holds_one_of_the_words_is_right() -> None:
    wanted = WantedCall("read", holds={"path": "roof|attic"})
    assert found([read(path="the Attic, please")], wanted) == ()
    assert found([read(path="the cellar")], wanted) == (Mistake.WRONG_ARGUMENT,)
    assert found([read(lines=1)], wanted) == (Mistake.MISFIT, Mistake.MISSING_ARGUMENT, Mistake.INVENTED_ARGUMENT)


def test_calls_come_in_any_order() -> None:
    other = WantedCall("read", {"path": ["b.md"]})
    assert found([read(path="b.md"), read(path="a.md")], READ, other) == ()
    assert found([read(path="b.md"), read(path="b.md")], READ, other) == (Mistake.WRONG_ARGUMENT,)


def test_text_beside_a_call_is_no_mistake() -> None:
    assert found([read(path="a.md")], READ, text="I will read it.") == ()


@pytest.mark.parametrize(
    ("text", "says", "expected"),
    [
        ("It is 7 degrees in Oslo.", ["7", "oslo|bergen"], ()),
        ("It is 7 degrees.", ["7", "oslo|bergen"], (Mistake.WRONG_TEXT,)),
        (" \n", [], (Mistake.NO_TEXT,)),
        ("Hello!", [], ()),
    ],
)
def test_a_plain_answer_says_what_it_has_to(text: str, says: list[str], expected: tuple[Mistake, ...]) -> None:
    assert mistakes([], says, TOOLS, [], text) == expected


def test_a_call_where_none_is_right_is_one_too_many_whatever_is_said() -> None:
    assert mistakes([], ["7"], TOOLS, [read(path="a.md")], "7") == (Mistake.EXTRA_CALL,)


Spoilt = tuple[EvalCase, list[MadeCall]]


@st.composite
def spoilt_answers(draw: st.DrawFn) -> Spoilt:
    """A right answer of the set with one thing changed."""
    case = draw(st.sampled_from(CALLED))
    calls = [(call.name, call.example) for call in case.calls]
    place = draw(st.integers(0, len(calls) - 1))
    name, arguments = calls[place]
    match draw(st.sampled_from(["drop", "twice", "rename", "lack", "invent", "value", "type"])):
        case "drop":
            del calls[place]
        case "twice":
            calls.append(calls[place])
        case "rename":
            others = [tool.name for tool in case.request.registry if tool.name != name]
            calls[place] = draw(st.sampled_from(others)), arguments
        case "lack" if arguments:
            gone = draw(st.sampled_from(sorted(arguments)))
            calls[place] = name, {key: value for key, value in arguments.items() if key != gone}
        case "value" if arguments:
            key = draw(st.sampled_from(sorted(arguments)))
            calls[place] = name, {**arguments, key: _another(arguments[key])}
        case "type" if arguments:
            key = draw(st.sampled_from(sorted(arguments)))
            calls[place] = name, {**arguments, key: [[arguments[key]]]}
        case _:
            calls[place] = name, {**arguments, f"x_{draw(st.text(max_size=5))}": draw(st.none() | st.text())}
    return case, [MadeCall(name, json.dumps(arguments)) for name, arguments in calls]


def _another(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            # Without a word of it, as those that only have to hold one.
            return f"not {value[::-1]}!"
        case list():
            return [*value, "another"]
        case _:
            return {}


@given(spoilt_answers())
def test_a_right_answer_with_one_thing_changed_is_wrong(spoilt: Spoilt) -> None:
    case, calls = spoilt
    assert mistakes(case.calls, case.says, case.request.registry, calls, "") != ()


@given(st.sampled_from(CALLED), st.randoms(use_true_random=False), st.text())
def test_order_of_calls_and_members_and_text_do_not_change_a_right_answer(
    case: EvalCase, random: Any, text: str
) -> None:
    calls = []
    for call in case.calls:
        members = list(call.example.items())
        random.shuffle(members)
        calls.append(MadeCall(call.name, json.dumps(dict(members), indent=1)))
    random.shuffle(calls)
    assert mistakes(case.calls, case.says, case.request.registry, calls, text) == ()


@given(st.text(), st.lists(st.builds(MadeCall, st.sampled_from(["read", "list", "gone"]), st.text()), max_size=4))
def test_whatever_a_model_does_is_judged(text: str, made: list[MadeCall]) -> None:
    wrong = mistakes([READ], (), TOOLS, made, text)
    assert wrong
    assert all(isinstance(one, Mistake) for one in wrong)
