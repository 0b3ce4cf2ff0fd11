"""A tool loop as it costs: much context in the first message, a note as each result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from parser import write_call
from proxy.replay.key_placeholder import key_of

from .conversation import texts_of
from .scripted_model import Message, Reply, ScriptedModel
from .sdk import openai_client

ROUNDS = 6
# 25 KB and 4.4 KB.
CONTEXT = "The zebra project meets on Tuesdays. " * 680 + "\n\nSearch my notes."
NOTE = "note text " * 440
INSTRUCTIONS = "You are a helpful assistant for a vault of notes. " + "Rule. " * 300
TOOLS: Any = [
    {
        "type": "function",
        "name": "search",
        "description": "Search the vault.",
        "strict": False,
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    }
]


async def long_loop(model: ScriptedModel, url: str) -> list[Mapping[str, Any]]:
    """Goes through it. Returns what the provider was asked."""
    asked = 0

    def respond(body: Mapping[str, Any]) -> Reply:
        nonlocal asked
        asked += 1
        if asked == ROUNDS:
            return Reply([Message("On Tuesdays.")])
        key = key_of(texts_of(body, "developer")[-1])
        return Reply([Message(write_call("search", json.dumps({"query": f"zebra {asked}"}), key=key))])

    model.choose = respond
    before = len(model.requests)
    conversation: list[Any] = [{"role": "user", "content": CONTEXT}]
    async with openai_client(url) as client:
        for _ in range(ROUNDS):
            answer = await client.responses.create(
                model="gpt-5.5", input=conversation, tools=TOOLS, instructions=INSTRUCTIONS
            )
            conversation += [item.to_dict() for item in answer.output]
            conversation += [
                {"type": "function_call_output", "call_id": item.call_id, "output": NOTE}
                for item in answer.output
                if item.type == "function_call"
            ]
    assert asked == ROUNDS
    return [request.body for request in model.requests[before:]]
