from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.chat.thinking import TAGS, ThinkingReader, Thought, begins_inside, calls_at_end


def read(*pieces: str, inside: bool = False, noted: bool = False) -> tuple[str, str]:
    """What was thought, and the answer; `noted`: a thought was told apart in front of it."""
    reader = ThinkingReader(inside=inside)
    if noted:
        reader.note_thought()
    told = [part for piece in pieces for part in reader.receive_text(piece)]
    told += reader.receive_eof()
    thought = "".join(part.text for part in told if isinstance(part, Thought))
    return thought, "".join(part for part in told if isinstance(part, str))


CASES = {
    "plain": ("Hello.", "", "Hello."),
    "thought": ("<think>Hm.</think>\n\nHello.", "Hm.", "Hello."),
    "white space in front": ("\n <think>\nHm.\n</think>Hello.", "Hm.\n", "Hello."),
    "nothing thought": ("<think>\n\n</think>\n\nHello.", "", "Hello."),
    "no end": ("<think>Hm. </thi", "Hm. </thi", ""),
    "only a beginning": (" <thi", "", " <thi"),
    "another tag": ("<thin>Hello.", "", "<thin>Hello."),
    "in the answer": ("Use <think>x</think>.", "", "Use <think>x</think>."),
    "twice": ("<think>a</think> b <think>c</think>", "a", "b <think>c</think>"),
    "one behind the other": ("<think>\n\n</think>\n\n<think>a</think> b", "a", "b"),
    "closed twice": ("<think>a</think>\n</think>\nb", "a", "b"),
    "opened in the prompt, and empty": ("\n</think>\n\nHello.", "", "Hello."),
    "no thought of a channel": ("<|channel|>final<|message|>Hello.", "", "Hello."),
    "the channels": (
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Hello.", "a", "Hello.",
    ),
    "a call": ("<think>a</think><tool_call>{}</tool_call>", "a", "<tool_call>{}</tool_call>"),
    "blank": ("  \n", "", "  \n"),
    **{opening: (f"{opening}a{closing}\n\nHello.", "a", "Hello.") for opening, closing in TAGS.items()},
}  # fmt: skip


@pytest.mark.parametrize(("text", "thought", "answer"), CASES.values(), ids=CASES)
def test_thoughts_in_front_of_the_answer_are_told_from_it(text: str, thought: str, answer: str) -> None:
    assert read(text) == (thought, answer)
    assert read(*text) == (thought, answer)


LETTERS = [*"<>/|[]think \nab", "<think>", "</think>", *TAGS, *TAGS.values()]


@given(st.lists(st.sampled_from(LETTERS)), st.lists(st.integers(1, 5)), st.booleans())
def test_how_a_text_is_cut_does_not_show(letters: list[str], sizes: list[int], inside: bool) -> None:
    text = "".join(letters)
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    assert read(*pieces, text[at:], inside=inside) == read(text, inside=inside)


@given(st.text(alphabet="<>/think \nab"))
def test_what_is_no_thought_leaves_as_it_came(text: str) -> None:
    if not text.lstrip().startswith(("<think>", "</think>")):
        assert read(text) == ("", text)


INSIDE = {
    "thought": ("Hm.\n</think>\n\nHello.", "Hm.\n", "Hello."),
    "white space in front": ("\nHm.</think>Hello.", "Hm.", "Hello."),
    "opened all the same": ("<think>\nHm.\n</think>\n\nHello.", "Hm.\n", "Hello."),
    "nothing thought": ("\n</think>\n\nHello.", "", "Hello."),
    "no end": ("Hm. </thi", "Hm. </thi", ""),
    "JSON": (' {"a": "</think>"}', "", '{"a": "</think>"}'),
    "a call": ("<tool_call>{}</tool_call>", "", "<tool_call>{}</tool_call>"),
}


@pytest.mark.parametrize(("text", "thought", "answer"), INSIDE.values(), ids=INSIDE)
def test_a_thought_may_have_been_opened_in_the_prompt(text: str, thought: str, answer: str) -> None:
    assert read(text, inside=True) == (thought, answer)
    assert read(*text, inside=True) == (thought, answer)


def test_behind_a_thought_that_was_told_apart_no_tag_closes_it_again() -> None:
    assert read(*"</think>\n\nHello.", noted=True) == ("", "Hello.")
    assert read(*"\n\nHello.", noted=True, inside=True) == ("", "Hello.")
    assert read(*"\n\n", noted=True) == ("", "")


TOLD = {
    "a thought's end": ("Hm.\n</think>\n\nHello.", True),
    "in a line": ("So it is J.</think>The letter is J.", True),
    "at once": ("</think>Hello.", True),
    "opened": ("<think>Hm.</think>Hello.", None),
    "opened later": ("Hello. <think>Hm.</think>", None),
    "spoken of": ("Write `</think>`, a </think> or (</think>) behind it.", None),
    "no thought": ("Hello.", None),
}


@pytest.mark.parametrize(("text", "told"), TOLD.values(), ids=TOLD)
def test_an_answer_tells_whether_it_began_inside_of_a_thought(text: str, told: bool | None) -> None:
    for pieces in ([text], [*text]):
        reader = ThinkingReader()
        for piece in pieces:
            list(reader.receive_text(piece))
        assert reader.begun_in_prompt is told


@pytest.mark.parametrize(
    ("model", "inside"),
    [
        ("Qwen/QwQ-32B", True), ("deepseek-r1:8b", True), ("DeepSeek-R1-Distill-Qwen-7B", True),
        ("Qwen3-30B-A3B-Thinking-2507", True), ("qwen3.5:9b", True), ("MiniMaxAI/MiniMax-M2", True),
        ("zai-org/GLM-4.7-Flash", True), ("Olmo-3-32B-Think", True), ("NVIDIA-Nemotron-3-Nano-30B-A3B", True),
        ("qwen3:8b", False), ("Qwen2.5-Coder-7B", False), ("gpt-oss:20b", False), ("gemma3:4b", False),
        ("mistral-small3.1", False), ("glm-4.6", False), ("deepseek-v3.1", False), ("gpt-5.5", False),
        ("qwen3.5:9b-nothink", False), ("Qwen3.5-no-thinking", False), ("Qwen3-30B-A3B-Instruct-2507", False),
    ],
)  # fmt: skip
def test_models_are_known_whose_prompts_open_the_thought(model: str, inside: bool) -> None:
    assert begins_inside(model) is inside


CALL, OTHER = "<tool_call>{}</tool_call>", "<tool_call>{1}</tool_call>"


@pytest.mark.parametrize(
    ("thought", "calls"),
    [
        (f"I read it.\n{CALL}\n", CALL),
        (f"{OTHER}? No.\n{CALL}\n{OTHER}", f"{CALL}\n{OTHER}"),
        (CALL, CALL),
        (f"I could {CALL} it.", ""),
        ("No </tool_call>", ""),
        ("", ""),
    ],
)
def test_the_calls_that_a_thought_ends_with(thought: str, calls: str) -> None:
    assert calls_at_end(thought) == calls


def test_a_model_may_open_and_close_its_thoughts_for_ever() -> None:
    assert read("<think></think>" * 5000 + "</think>" * 5000 + "Hello.") == ("", "Hello.")
