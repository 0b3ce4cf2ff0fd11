from __future__ import annotations

from typing import Any

import orjson
import pytest

from prompts import Image, Item, OwnLine, Text
from proxy.backends.chat.requests import Manner, chat_body
from proxy.contracts import Prompt, Sampling

PIXEL = "data:image/png;base64,AA=="
ITEMS = (
    Item("user", (Text("What is in a.md?"),)),
    Item("assistant", (Text("<tool_call>{}</tool_call>"),)),
    Item("user", (Text("[tool:call_1] alpha"),)),
    Item("developer", (Text("Be brief."),)),
)
PROMPT = Prompt("m", "All tools.", (Text("The conversation."),), head="The tools.", items=ITEMS)


def body(prompt: Prompt = PROMPT, manner: Manner = Manner(), **more: Any) -> dict[str, Any]:  # noqa: B008 -- frozen
    sent: dict[str, Any] = orjson.loads(chat_body(prompt, manner, **more))
    return sent


def test_roles_are_real_messages() -> None:
    assert body() == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "The tools."},
            {"role": "user", "content": "What is in a.md?"},
            {"role": "assistant", "content": "<tool_call>{}</tool_call>"},
            {"role": "user", "content": "[tool:call_1] alpha"},
            {"role": "system", "content": "Be brief."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_line_of_ours_ends_the_message_in_front_of_it() -> None:
    ours = Item("user", (Text("Go on."),), ours=OwnLine.REMINDER)
    *_, second, last = body(Prompt("m", None, (), items=(*ITEMS[:3], ITEMS[2], ours)))["messages"]
    assert second == {"role": "user", "content": "[tool:call_1] alpha"}
    assert last == {"role": "user", "content": "[tool:call_1] alpha\n\nGo on."}
    assert body(Prompt("m", None, (), items=(ITEMS[3], ours)))["messages"][-1] == {"role": "user", "content": "Go on."}


def test_flat_is_one_user_message() -> None:
    message = {"role": "user", "content": "All tools.\n\nThe conversation."}
    assert body(manner=Manner(flat=True))["messages"] == [message]


def test_a_conversation_that_ends_in_an_answer_is_one_text_since_servers_disagree_about_it() -> None:
    prompt = Prompt("m", None, (Text("Go on."),), items=(ITEMS[0], ITEMS[1]))
    assert body(prompt)["messages"] == [{"role": "user", "content": "Go on."}]


@pytest.mark.parametrize(
    ("asked", "told"),
    [(None, {}), ("low", {"detail": "low"}), ("high", {"detail": "high"}), ("original", {"detail": "high"})],
)
def test_an_image_stands_among_text_parts(asked: str | None, told: dict[str, str]) -> None:
    prompt = Prompt("m", None, (), items=(Item("user", (Text("What?"), Image(PIXEL, asked))),))
    parts = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": PIXEL, **told}}]
    assert body(prompt)["messages"] == [{"role": "user", "content": parts}]


def test_what_codex_cannot_be_told_is_passed_on() -> None:
    told = Prompt(
        "m", None, (), effort="low", items=ITEMS[:1], sampling=Sampling(0.0, 0.5, -1), max_tokens=9, stop=("END",)
    )
    sent = body(told, llama_cpp=True)
    del sent["messages"]
    assert sent == {
        "model": "m", "stream": True, "stream_options": {"include_usage": True}, "temperature": 0, "top_p": 0.5,
        "seed": -1, "max_tokens": 9, "stop": ["END"], "reasoning_effort": "low", "return_progress": True,
    }  # fmt: skip
    assert "reasoning_effort" not in body(told, Manner(efforts=("low",)))
    assert body(told, Manner(efforts=("minimal",)))["reasoning_effort"] == "low"


def test_a_schema_is_passed_on_in_its_own_text() -> None:
    schema = '{"maximum": 123456789012345678901234567890}'
    prompt = Prompt("m", None, (), output_schema=schema, items=ITEMS[:1])
    held = f'"json_schema":{{"name":"answer","schema":{schema},"strict":true}}'
    assert held.encode() in chat_body(prompt, Manner())


@pytest.mark.parametrize("manner", [Manner(), Manner(flat=True)])
def test_the_beginning_of_a_conversation_is_a_beginning_of_what_is_sent(manner: Manner) -> None:
    """So a server's prompt cache is read."""
    sent = [chat_body(Prompt("m", "t", (Text("a" * n),), head="t", items=ITEMS[:n]), manner) for n in (1, 3)]
    start = sent[0][: sent[0].index(b"]")].rstrip(b'"}')
    assert sent[1].startswith(start)
