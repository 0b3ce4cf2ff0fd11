"""What a balancer in front says of a request: its name, and the tag of its conversation."""

from __future__ import annotations

from typing import Any

import pytest

from parser import write_call
from tests.support.http_client import client, error_of

NAME = "0123456789abcdef" * 2
ASKED: dict[str, Any] = {"model": "m", "input": "hi"}


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        (NAME, [200, 400]),
        (NAME[1:], [200, 200]),
        (f"{NAME}0", [200, 200]),
        (NAME.upper(), [200, 200]),
        ("", [200, 200]),
    ],
)
async def test_a_request_that_comes_once_more_after_its_answer_does_not_get_its_conversation_again(
    name: str, statuses: list[int]
) -> None:
    async with client("one", "two") as (session, url):
        async with session.post(f"{url}/conversations", json={}) as response:
            conversation = (await response.json())["id"]
        answered = []
        for _ in statuses:
            headers, body = {"x-tagcall-request": name}, {**ASKED, "conversation": conversation}
            async with session.post(f"{url}/responses", json=body, headers=headers) as response:
                answered.append(response.status)
                if response.status != 200:
                    assert (await error_of(response))["code"] == "conversation_locked"
    assert answered == statuses


SCHEMA: dict[str, Any] = {"type": "object"}
MESSAGES = [{"role": "user", "content": "hi"}]
BODIES: dict[str, dict[str, Any]] = {
    "responses": {**ASKED, "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]},
    "chat/completions": {
        "model": "m",
        "messages": MESSAGES,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
    },
    "messages": {
        "model": "m",
        "max_tokens": 100,
        "messages": MESSAGES,
        "tools": [{"name": "f", "input_schema": SCHEMA}],
    },
}


def id_of_the_call(path: str, answer: dict[str, Any]) -> str:
    match path:
        case "responses":
            return str(answer["output"][0]["call_id"])
        case "messages":
            return str(answer["content"][0]["id"])
        case _:
            return str(answer["choices"][0]["message"]["tool_calls"][0]["id"])


@pytest.mark.parametrize("path", list(BODIES))
@pytest.mark.parametrize(
    ("tag", "kept"),
    [("0a1b2c3d", True), ("0a1b2c3", False), ("0a1b2c3d4", False), ("0A1B2C3D", False)],
)
async def test_the_ids_of_calls_have_the_tag_that_was_chosen_for_their_conversation(
    path: str, tag: str, kept: bool
) -> None:
    headers = {"x-tagcall-chain": tag}
    async with client(write_call("f", "{}")) as (session, url):
        async with session.post(f"{url}/{path}", json=BODIES[path], headers=headers) as response:
            assert response.status == 200
            identifier = id_of_the_call(path, await response.json())
    assert (tag in identifier) is kept
