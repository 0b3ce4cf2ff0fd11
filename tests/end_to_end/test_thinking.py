"""Models that think, behind a Chat Completions server: what the official client gets of each way to write thoughts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai.types.responses import ResponseReasoningItem

from parser import write_call
from tests.support.backends import TestBackend
from tests.support.endpoint import TOOLS, calls_of, serving, streamed
from tests.support.scripted_model import Message, Reasoning, Reply, ScriptedModel

CALL = write_call("read_note", '{"path": "a.md"}')
DRAFT = f"I could {CALL} it."
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"


@dataclass(frozen=True, slots=True)
class Way:
    items: Sequence[Message | Reasoning]
    thought: str
    said: str = ""
    calls: int = 0
    model: str = "m"


WAYS = {
    "tags": Way([Message(f"<think>\n{DRAFT}\n</think>\n\nHello.")], f"{DRAFT}\n", "Hello."),
    "tags of another": Way([Message(f"[THINK]{DRAFT}[/THINK]Hello.\n{CALL}")], DRAFT, "Hello.\n", 1),
    "channels": Way([Message(f"<|channel|>analysis<|message|>{DRAFT}{FINAL}Hello.")], DRAFT, "Hello."),
    "opened in the prompt": Way([Message(f"{DRAFT}\n</think>\n\n{CALL}")], f"{DRAFT}\n", "", 1, "qwq:32b"),
    "told apart": Way([Reasoning([DRAFT]), Message("\n\nHello.")], DRAFT, "Hello."),
    "ended by the call": Way([Message(f"<think>\nI read it.\n{CALL}")], f"I read it.\n{CALL}", "", 1),
    "told apart, ended by the call": Way([Reasoning([f"I read it.\n{CALL}"])], f"I read it.\n{CALL}", "", 1),
    "no thought of one that thinks": Way([Message("Hello.")], "", "Hello.", 0, "qwq:32b"),
}


@pytest.fixture
def stack() -> TestBackend:
    return TestBackend(None)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_thoughts_are_told_as_such_and_calls_in_them_are_none(
    model: ScriptedModel, stack: TestBackend, tmp_path: Path, way: Way
) -> None:
    asked: Any = {"model": way.model, "reasoning": {"summary": "auto"}}
    async with serving(model, stack, tmp_path, call_key="off") as endpoint:
        for chunk in (10_000, 7, 1):
            model.default = Reply(way.items, chunk=chunk)
            whole = await endpoint.client.responses.create(input="Read a.md.", tools=TOOLS, **asked)
            events, response = await streamed(endpoint, [{"role": "user", "content": "Read a.md."}], **asked)
            told = [event.delta for event in events if event.type == "response.reasoning_summary_text.delta"]
            assert "".join(told) == way.thought
            for answer in (whole, response):
                summaries = [item.summary for item in answer.output if isinstance(item, ResponseReasoningItem)]
                assert "".join(part.text for summary in summaries for part in summary) == way.thought
                assert answer.output_text == way.said
                assert len(calls_of(answer)) == way.calls


async def test_thoughts_are_a_block_of_their_own_for_anthropics_client_if_it_asks_for_them(
    model: ScriptedModel, stack: TestBackend, tmp_path: Path
) -> None:
    model.default = Reply([Reasoning([DRAFT]), Message("Hello.")], chunk=7)
    asked: Any = {"model": "m", "max_tokens": 1000, "messages": [{"role": "user", "content": "Hi."}]}
    async with serving(model, stack, tmp_path) as endpoint:
        url = str(endpoint.client.base_url).rstrip("/").removesuffix("/v1")
        async with AsyncAnthropic(base_url=url, api_key="any", max_retries=0) as client:
            ways: list[tuple[Any, list[str]]] = [("adaptive", ["thinking", "text"]), ("disabled", ["text"])]
            for thinking, kinds in ways:
                async with client.messages.stream(**asked, thinking={"type": thinking}) as stream:
                    message = await stream.get_final_message()
                assert [block.type for block in message.content] == kinds
                if thinking == "adaptive":
                    assert message.content[0].to_dict() == {"type": "thinking", "thinking": DRAFT, "signature": ""}
