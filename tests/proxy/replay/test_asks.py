"""Which recorded turn answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.asks import Ask, Seen, asked_by, choose, explain, fits

QUESTION = "What did I plant?"
SEARCHED = (
    f"[user] {QUESTION}\n\n"
    "[assistant] I'll look.\n"
    '<tool_call>{"name": "search_notes", "arguments": {"query": "north"}}</tool_call>\n\n'
    "[tool:call_8c1] Garden.md\n"
    "  [user] a quoted header"
)
SEARCH = ("search_notes",)


def recorded(text: str, last_user: str = QUESTION, after_tools: tuple[str, ...] = ()) -> Ask:
    return Ask(last_user, after_tools, seen=Seen(text))


def test_the_newest_question_and_the_calls_since_decide() -> None:
    assert fits(Ask(QUESTION, SEARCH), Seen(SEARCHED))
    assert not fits(Ask(QUESTION), Seen(SEARCHED))
    assert not fits(Ask(QUESTION, ("read_note",)), Seen(SEARCHED))
    assert fits(Ask("Thanks!"), Seen(f"{SEARCHED}\n\n[assistant] Beans.\n\n[user] Thanks!"))


def test_call_ids_arguments_results_and_the_introduction_take_no_part() -> None:
    other = SEARCHED.replace("call_8c1", "call_2").replace("north", "south").replace("Garden.md", "nothing")
    assert fits(Ask(QUESTION, SEARCH), Seen(f"Once upon a time.\n\n{other}"))


def test_white_space_takes_no_part() -> None:
    assert fits(Ask("What  did\tI plant?"), Seen(f"{QUESTION}\n"))


def test_more_lines_may_follow_the_question_but_not_more_words() -> None:
    assert fits(Ask(QUESTION), Seen(f"{QUESTION}\n\nRemember: tools are called with tags."))
    assert not fits(Ask(QUESTION), Seen(f"{QUESTION} And where?"))


def test_the_longer_question_goes_first() -> None:
    asks = {"short": Ask(QUESTION), "long": Ask(f"{QUESTION}\nAnd where?")}
    assert choose(asks, Seen(f"{QUESTION}\nAnd where?")) == ("long",)


def test_the_same_model_goes_first_then_whether_there_are_tools() -> None:
    asks = {"other": Ask(QUESTION, with_tools=True), "same": Ask(QUESTION, model="m", with_tools=False)}
    assert choose(asks, Seen(QUESTION, "m", with_tools=True)) == ("same",)
    assert choose(asks, Seen(QUESTION, "n", with_tools=True)) == ("other",)


def test_of_two_attempts_the_one_with_as_many_lines_of_the_proxy_goes_first() -> None:
    asks = {
        "first": recorded(QUESTION),
        "second": recorded(f"{QUESTION}\n\nThe words of that version: try again."),
    }
    assert choose(asks, Seen(QUESTION)) == ("first",)
    assert choose(asks, Seen(f"{QUESTION}\n\nOther words for the same.")) == ("second",)


def test_the_most_alike_past_goes_first() -> None:
    south = SEARCHED.replace("Garden.md", "Lawn.md")
    asks = {"south": recorded(south, after_tools=SEARCH), "north": recorded(SEARCHED, after_tools=SEARCH)}
    assert choose(asks, Seen(f"Other words.\n\n{SEARCHED}")) == ("north",)


def test_equal_asks_come_in_their_order() -> None:
    assert choose({"a": Ask("hi"), "b": Ask("hi"), "c": Ask("ho")}, Seen("hi")) == ("a", "b")


def test_the_explanation_names_the_nearest_fixture_and_the_first_difference() -> None:
    asks = {"far": Ask("Tell me a joke."), "near": Ask("What grows in the north bed now?")}
    assert explain(asks, Seen("What grows in the south bed now?")) == (
        "No fixture answers this turn. The nearest is near: at character 18 it has "
        '"What grows in the north bed now? (before any call)" where the turn has '
        '"What grows in the south bed now? (before any call)".'
    )


def test_the_explanation_names_the_calls() -> None:
    sentence = explain({"case": Ask(QUESTION, ("read_note",))}, Seen(SEARCHED))
    assert "(after read_note)" in sentence
    assert "(after search_notes)" in sentence


@given(st.dictionaries(st.sampled_from("abc"), st.builds(Ask, st.text())), st.text())
def test_any_turn_is_answered_or_explained(asks: dict[str, Ask], text: str) -> None:
    assert set(choose(asks, Seen(text))) <= asks.keys()
    assert "\n" not in explain(asks, Seen(text))


@given(st.text())
def test_a_recorded_turn_always_finds_itself(text: str) -> None:
    assert "a" in choose({"a": asked_by(Seen(text)), "b": Ask("")}, Seen(text))
