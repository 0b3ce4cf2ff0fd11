"""Which recorded turn answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.asks import Ask, Seen, asked_by, choose, explain, fits
from proxy.replay.conversation import ThreadMessage
from tests.proxy.replay.child import shown

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
    return Ask(last_user, after_tools, seen=Seen(shown(text)))


def test_the_newest_question_and_the_calls_since_decide() -> None:
    assert fits(Ask(QUESTION, SEARCH), Seen(shown(SEARCHED)))
    assert not fits(Ask(QUESTION), Seen(shown(SEARCHED)))
    assert not fits(Ask(QUESTION, ("read_note",)), Seen(shown(SEARCHED)))
    assert fits(Ask("Thanks!"), Seen(shown(f"{SEARCHED}\n\n[assistant] Beans.\n\n[user] Thanks!")))


def test_call_ids_arguments_results_and_the_introduction_take_no_part() -> None:
    other = SEARCHED.replace("call_8c1", "call_2").replace("north", "south").replace("Garden.md", "nothing")
    assert fits(Ask(QUESTION, SEARCH), Seen(shown(f"Once upon a time.\n\n{other}")))


def test_white_space_takes_no_part() -> None:
    assert fits(Ask("What  did\tI plant?"), Seen(shown(f"{QUESTION}\n")))


def test_more_lines_may_follow_the_question_but_not_more_words() -> None:
    assert fits(Ask(QUESTION), Seen(shown(f"{QUESTION}\n\nRemember: tools are called with tags.")))
    assert not fits(Ask(QUESTION), Seen(shown(f"{QUESTION} And where?")))


def test_of_messages_of_the_user_in_a_row_any_may_begin_the_newest() -> None:
    """They are parts of one input, as those of one message are."""
    seen = Seen((ThreadMessage("user", ("It is Monday.", QUESTION, "Remember: tools are called with tags.")),))
    assert fits(Ask(QUESTION), seen)
    assert not fits(Ask("Monday."), seen)
    asks = {"newest": Ask(QUESTION), "whole": Ask(f"It is Monday.\n{QUESTION}")}
    assert choose(asks, seen) == ("whole",)


def test_the_longer_question_goes_first() -> None:
    asks = {"short": Ask(QUESTION), "long": Ask(f"{QUESTION}\nAnd where?")}
    assert choose(asks, Seen(shown(f"{QUESTION}\nAnd where?"))) == ("long",)


def test_the_same_model_goes_first_then_whether_there_are_tools() -> None:
    asks = {"other": Ask(QUESTION, with_tools=True), "same": Ask(QUESTION, model="m", with_tools=False)}
    assert choose(asks, Seen(shown(QUESTION), "m", with_tools=True)) == ("same",)
    assert choose(asks, Seen(shown(QUESTION), "n", with_tools=True)) == ("other",)


def test_of_two_attempts_the_one_with_as_many_lines_of_the_proxy_goes_first() -> None:
    asks = {
        "first": recorded(QUESTION),
        "second": recorded(f"{QUESTION}\n\nThe words of that version: try again."),
    }
    assert choose(asks, Seen(shown(QUESTION))) == ("first",)
    assert choose(asks, Seen(shown(f"{QUESTION}\n\nOther words for the same."))) == ("second",)


def test_the_most_alike_past_goes_first() -> None:
    south = SEARCHED.replace("Garden.md", "Lawn.md")
    asks = {"south": recorded(south, after_tools=SEARCH), "north": recorded(SEARCHED, after_tools=SEARCH)}
    assert choose(asks, Seen(shown(f"Other words.\n\n{SEARCHED}"))) == ("north",)


def test_equal_asks_come_in_their_order() -> None:
    assert choose({"a": Ask("hi"), "b": Ask("hi"), "c": Ask("ho")}, Seen(shown("hi"))) == ("a", "b")


def test_the_explanation_names_the_nearest_fixture_and_the_first_difference() -> None:
    asks = {"far": Ask("Tell me a joke."), "near": Ask("What grows in the north bed now?")}
    assert explain(asks, Seen(shown("What grows in the south bed now?"))) == (
        "No fixture answers this turn. The nearest is near: at character 19 it has "
        '"What grows in the north bed now? (before any call)" where the turn has '
        '"What grows in the south bed now? (before any call)".'
    )


def test_the_explanation_names_the_calls() -> None:
    sentence = explain({"case": Ask(QUESTION, ("read_note",))}, Seen(shown(SEARCHED)))
    assert "(after read_note)" in sentence
    assert "(after search_notes)" in sentence


@given(st.dictionaries(st.sampled_from("abc"), st.builds(Ask, st.text())), st.text())
def test_any_turn_is_answered_or_explained(asks: dict[str, Ask], text: str) -> None:
    assert set(choose(asks, Seen(shown(text)))) <= asks.keys()
    assert "\n" not in explain(asks, Seen(shown(text)))


@given(st.text())
def test_a_recorded_turn_always_finds_itself(text: str) -> None:
    assert "a" in choose({"a": asked_by(Seen(shown(text))), "b": Ask("")}, Seen(shown(text)))


def user(*texts: str) -> ThreadMessage:
    return ThreadMessage("user", texts)


def assistant(text: str) -> ThreadMessage:
    return ThreadMessage("assistant", (text,))


CALL = '<tool_call>{"key": "[call key]", "name": "search_notes", "arguments": {"query": "north"}}</tool_call>'
RESULT = "[tool:call_8c1] Garden.md\n  [user] a quoted header"
REMINDER = "Remember: tools are called with tags."
THREAD = (user(QUESTION), assistant(f"I'll look.\n{CALL}"), user(RESULT))


def test_a_thread_is_asked_what_its_messages_ask() -> None:
    assert fits(Ask(QUESTION, SEARCH), Seen(THREAD))
    assert not fits(Ask(QUESTION), Seen(THREAD))
    assert fits(Ask("Thanks!"), Seen((*THREAD, assistant("Beans."), user("Thanks!"))))
    assert not fits(Ask(QUESTION, SEARCH), Seen((*THREAD, assistant("Beans."), user("Thanks!"))))


def test_a_recorded_page_answers_a_thread_and_the_other_way_round() -> None:
    south = SEARCHED.replace("Garden.md", "Lawn.md")
    asks = {"south": recorded(south, after_tools=SEARCH), "north": recorded(SEARCHED, after_tools=SEARCH)}
    assert choose(asks, Seen(THREAD)) == ("north",)
    assert fits(asked_by(Seen(THREAD)), Seen(shown(SEARCHED)))


def test_a_line_behind_results_may_be_the_users_or_the_proxys() -> None:
    """Nothing in it tells which: it is the user's if a fixture asks it."""
    asked = (*THREAD[:-1], user(RESULT, "And in the south?"))
    asks = {"north": Ask(f"{QUESTION}", SEARCH), "south": Ask("And in the south?")}
    assert choose(asks, Seen(asked)) == ("south",)
    assert choose(asks, Seen((*THREAD[:-1], user(RESULT, REMINDER)))) == ("north",)


def test_lines_of_the_proxys_own_stay_in_a_thread() -> None:
    more = (user(QUESTION, REMINDER), *THREAD[1:-1], user(RESULT, REMINDER), assistant(CALL), user(RESULT))
    assert fits(Ask(QUESTION, SEARCH * 2), Seen(more))
    assert not fits(Ask(QUESTION, SEARCH), Seen(more))


def test_behind_an_answer_stands_the_user() -> None:
    assert not fits(Ask(QUESTION, SEARCH), Seen((*THREAD, assistant("Beans."), user("A new question"))))
    assert not fits(Ask(QUESTION), Seen((user(QUESTION), assistant("Beans."), user("A new question"))))


def test_of_two_attempts_on_threads_the_one_with_as_many_lines_of_the_proxy_goes_first() -> None:
    page = {
        "first": recorded(SEARCHED, after_tools=SEARCH),
        "second": recorded(f"{SEARCHED}\n\nThe words of that version: try again.", after_tools=SEARCH),
    }
    threads = {
        "first": Ask(QUESTION, SEARCH, seen=Seen(THREAD)),
        "second": Ask(QUESTION, SEARCH, seen=Seen((*THREAD[:-1], user(RESULT, "Try again.")))),
    }
    for asks in (page, threads):
        assert choose(asks, Seen(THREAD)) == ("first",)
        assert choose(asks, Seen((*THREAD[:-1], user(RESULT, "Other words for it.")))) == ("second",)


def test_the_explanation_takes_a_line_of_the_proxy_for_what_is_nearest() -> None:
    sentence = explain({"case": Ask(QUESTION, ("read_note",))}, Seen((*THREAD[:-1], user(RESULT, REMINDER))))
    assert "(after search_notes)" in sentence
    assert "Remember" not in sentence


MESSAGES = st.lists(
    st.builds(ThreadMessage, st.sampled_from(["user", "assistant", "developer"]), st.lists(st.text()).map(tuple))
    | st.sampled_from([*THREAD, user(RESULT, REMINDER)])
).map(tuple)


@given(MESSAGES)
def test_a_recorded_thread_always_finds_itself(messages: tuple[ThreadMessage, ...]) -> None:
    assert "a" in choose({"a": asked_by(Seen(messages)), "b": Ask("")}, Seen(messages))


def test_a_placeholder_in_the_question_stands_for_what_was_asked() -> None:
    asks = {"any": Ask("Log in with password=[redacted]!"), "mine": Ask("Log in with password=hunter2!")}
    assert choose(asks, Seen(shown("Log in with password=swordfish!"))) == ("any",)
    assert choose(asks, Seen(shown("Log in with password=hunter2!"))) == ("mine",)
    assert not choose(asks, Seen(shown("Log in with password=swordfish?")))
