"""What a turn is told to have used when its backend did not come to count it."""

from __future__ import annotations

import pytest

from prompts import Image, Part, Text
from proxy.contracts import Prompt, Usage
from proxy.turn.prompting import estimated_usage
from tests.proxy.turn.playing import ask, play


async def test_a_prompt_says_for_whom_and_how_the_model_is_to_think() -> None:
    outcome = await play("Hello.", request=ask(effort="low", summary="auto", owner="me", names=frozenset({"k"})))
    [prompt] = outcome.backend.prompts
    assert (prompt.model, prompt.effort, prompt.summary) == ("m", "low", "auto")
    assert (prompt.owner, prompt.names, prompt.output_schema) == ("me", frozenset({"k"}), None)


@pytest.mark.parametrize(
    ("developer", "parts", "tokens"),
    [
        (None, (), 0),
        ("d" * 41, (), 10),
        (None, (Text("x" * 39),), 9),
        (None, (Image("data:image/png;base64,AAAA"),), 1_000),
        ("d" * 41, (Text("x" * 39), Image("data:image/png;base64,AAAA"), Text("x" * 4)), 1_020),
    ],
)
def test_four_characters_are_a_token_and_an_image_a_thousand(
    developer: str | None, parts: tuple[Part, ...], tokens: int
) -> None:
    usage = estimated_usage(Prompt("m", developer, parts), 7)
    assert usage == Usage(input_tokens=tokens, output_tokens=7)
    assert isinstance(usage.input_tokens, int)
