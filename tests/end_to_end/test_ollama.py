"""Ollama's API in front of the real codex program: hosts that send no ids keep their lane."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ollama import AsyncClient

from parser import write_call
from proxy.replay.key_placeholder import key_of
from tests.end_to_end.test_lanes import ROUNDS, developer_of
from tests.support.lanes import continued
from tests.support.scripted_model import Message, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_server

TOOL = {
    "type": "function",
    "function": {"name": "read_note", "description": "Read a note.", "parameters": {"type": "object"}},
}


async def test_a_loop_without_ids_continues_its_lane(model: ScriptedModel, tmp_path: Path) -> None:
    number = 0

    def respond(body: Mapping[str, Any]) -> Reply:
        nonlocal number
        number += 1
        if number == ROUNDS:
            return Reply([Message("Done.")])
        key = key_of(developer_of(body))
        calls = [write_call("read_note", json.dumps({"path": f"{number}{side}.md"}), key=key) for side in "ab"]
        return Reply([Message("I look.\n" + "\n".join(calls))])

    model.choose = respond
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Read my notes."}]
    async with tagcall_server(model, tmp_path / "home") as url, AsyncClient(host=url.removesuffix("/v1")) as asks:
        said = None
        for _ in range(ROUNDS):
            answer = (await asks.chat(model="gpt-5.5", messages=messages, tools=[TOOL])).message
            said = answer.content
            messages.append({"role": "assistant", "content": answer.content, "tool_calls": answer.tool_calls})
            # As Home Assistant: without an id and without the tool's name.
            messages += [{"role": "tool", "content": f"# {call.function}"} for call in answer.tool_calls or []]
    assert said == "Done."
    assert continued(model.requests) == ROUNDS - 1
