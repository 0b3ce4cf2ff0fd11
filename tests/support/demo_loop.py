"""The tool loop of the demo, as a client runs it against any server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from openai import AsyncOpenAI
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseInputItemParam

from proxy.cli.demo.loop import INSTRUCTIONS, QUESTION
from proxy.cli.demo.vault import TOOLS, Vault
from proxy.replay.server import MODEL


@dataclass(frozen=True, slots=True)
class Hop:
    """One request of the loop: its answer, and what each call of it returned."""

    response: Response
    results: list[str]


async def demo_loop(url: str, vault: Path) -> AsyncIterator[Hop]:
    """Asks the demo's question at `url` and runs the calls on the notes in `vault`, until an answer has none."""
    tools = Vault(vault)
    said: list[ResponseInputItemParam] = [{"role": "user", "content": QUESTION}]
    async with AsyncOpenAI(base_url=url, api_key="any", max_retries=0) as client:
        while True:
            response = await client.responses.create(model=MODEL, instructions=INSTRUCTIONS, input=said, tools=TOOLS)
            calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
            results = [tools.call(call.name, json.loads(call.arguments)) for call in calls]
            yield Hop(response, results)
            if not calls:
                return
            for call, result in zip(calls, results, strict=True):
                # The SDK's type has no room for a dumped item, which its documentation sends all the same.
                said.append(call.to_dict())  # type: ignore[arg-type]
                said.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
