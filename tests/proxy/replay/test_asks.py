"""Which fixture answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.asks import Ask, Described, Fit, Verbatim, choose, described, explain, fit

QUESTION = "What did I plant?"
SEARCHED = (
    f"[user] {QUESTION}\n"
    "[assistant] I'll look.\n"
    '<tool_call>{"name": "search_notes", "arguments": {"query": "north"}}</tool_call>\n'
    "[tool:call_8c1] Garden.md\n"
    "  [user] a quoted header\n"
)


def test_the_same_text_is_an_exact_fit() -> None:
    assert fit(Verbatim(SEARCHED), SEARCHED) is Fit.EXACT


def test_call_ids_take_no_part() -> None:
    assert fit(Verbatim(SEARCHED), SEARCHED.replace("call_8c1", "call_other")) is Fit.EXACT


def test_the_introduction_takes_no_part() -> None:
    assert fit(Verbatim(f"So far:\n\n{SEARCHED}"), f"This is the conversation.\n\n{SEARCHED}") is Fit.EXACT


def test_other_white_space_still_fits() -> None:
    assert fit(Verbatim(SEARCHED), SEARCHED.replace("\n", "\n\n")) is Fit.FOLDED


def test_another_text_does_not_fit() -> None:
    assert fit(Verbatim(SEARCHED), SEARCHED.replace("north", "south")) is Fit.NONE


def test_a_lone_question_fits_its_description() -> None:
    assert fit(Described(QUESTION), QUESTION) is Fit.DESCRIBED


def test_a_description_ignores_what_is_appended_to_the_question() -> None:
    assert fit(Described(QUESTION), f"{QUESTION}\n\nRemember: tools are called with tags.") is Fit.DESCRIBED


def test_a_description_counts_the_calls_since_the_question() -> None:
    assert fit(Described(QUESTION, ("search_notes",)), SEARCHED) is Fit.DESCRIBED
    assert fit(Described(QUESTION), SEARCHED) is Fit.NONE


def test_calls_of_earlier_turns_do_not_count() -> None:
    assert described(f"{SEARCHED}[assistant] Beans.\n[user] Thanks!") == Described("Thanks!", ())


def test_an_exact_fit_goes_before_a_folded_one_and_that_before_a_described_one() -> None:
    asks: dict[str, Ask] = {"a": Described("hi"), "b": Verbatim("hi  there"), "c": Verbatim("hi there")}
    assert choose(asks, "hi there") == ("c",)
    assert choose({"a": asks["a"], "b": asks["b"]}, "hi there") == ("b",)
    assert choose({"a": asks["a"]}, "hi there") == ("a",)


def test_fixtures_with_the_same_ask_come_in_the_order_of_their_names() -> None:
    assert choose({"b": Verbatim("hi"), "a": Verbatim("hi"), "c": Verbatim("ho")}, "hi") == ("a", "b")


def test_the_explanation_names_the_nearest_fixture_and_the_first_difference() -> None:
    asks = {"far": Verbatim("Tell me a joke."), "near": Verbatim("What grows in the north bed now?")}
    assert explain(asks, "What grows in the south bed now?") == (
        "No fixture answers this turn. The nearest is near: at character 18 "
        'it has "What grows in the north bed now?" where the turn has "What grows in the south bed now?".'
    )


def test_the_explanation_of_a_description_names_the_calls() -> None:
    sentence = explain({"case": Described(QUESTION, ("read_note",))}, SEARCHED)
    assert "(after read_note)" in sentence
    assert "(after search_notes)" in sentence


@given(st.dictionaries(st.sampled_from("abc"), st.text().map(Verbatim) | st.text().map(Described)), st.text())
def test_any_conversation_is_answered_or_explained(asks: dict[str, Ask], conversation: str) -> None:
    names = choose(asks, conversation)
    assert list(names) == sorted(names)
    assert "\n" not in explain(asks, conversation)


@given(st.text())
def test_a_recorded_conversation_always_finds_its_fixture(conversation: str) -> None:
    assert choose({"a": Verbatim(conversation), "b": Described("")}, conversation) == ("a",)
