"""Clients from npm complete the whole tool loop, against a real server and the real codex program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lanes import continued
from tests.support.librarian import ROUNDS, librarian
from tests.support.node_clients import Report, installed_node, run_node, task
from tests.support.scripted_model import Failed, Message, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_server
from tests.support.vault import ANSWER, CALLS, SAID

pytestmark = pytest.mark.clients

# A node process each: the client's file, the API, and the ways that it exports for it.
CASES = [
    ("anthropic_node", "messages", ("create", "streamed", "helper", "toolRunner")),
    ("ollama_node", "ollama", ("chat", "streamed")),
    ("openai_node", "responses", ("create", "streamed", "helper")),
    ("openai_node", "chat", ("create", "streamed", "helper", "runTools")),
    ("langchain", "responses", ("invoke", "stream")),
    ("langchain", "chat", ("invoke", "stream")),
    ("ai_sdk", "responses", ("generateText", "streamText")),
    ("ai_sdk", "chat", ("generateText", "streamText")),
    ("ai_sdk_compatible", "chat", ("generateText", "streamText")),
]


@pytest.mark.parametrize(("client", "api", "ways"), CASES, ids=["-".join(case[:2]) for case in CASES])
async def test_a_client_from_npm_completes_the_tool_loop(
    model: ScriptedModel, client: str, api: str, ways: tuple[str, ...], tmp_path: Path
) -> None:
    node = installed_node()
    async with tagcall_server(model, tmp_path / "home") as url:
        model.choose = librarian
        rows = await run_node(node, "run.mjs", task(url, client, api, ways), tmp_path)
    assert [Report.read(row) for row in rows] == [Report(way, list(CALLS), [SAID, ANSWER], None) for way in ways]
    assert len(model.requests) == len(ROUNDS) * len(ways)
    assert continued(model.requests) == (len(ROUNDS) - 1) * len(ways)


STREAMED = [
    ("anthropic_node", "messages", ("streamed", "helper")),
    ("openai_node", "responses", ("streamed", "helper")),
    ("langchain", "responses", ("stream",)),
    ("ai_sdk", "responses", ("streamText",)),
    ("ai_sdk_compatible", "chat", ("streamText",)),
]


SENTENCES = {
    "context_length_exceeded": "exceeds the context window",
    "insufficient_quota": "Quota exceeded",
    "server_is_overloaded": "at capacity",
}


@pytest.mark.parametrize("case", STREAMED, ids=["-".join(case[:2]) for case in STREAMED])
@pytest.mark.parametrize("code", SENTENCES)
async def test_a_client_from_npm_reads_a_failure_in_mid_stream_whatever_its_code(
    model: ScriptedModel, case: tuple[str, str, tuple[str, ...]], code: str, tmp_path: Path
) -> None:
    node = installed_node()
    async with tagcall_server(model, tmp_path / "home") as url:
        model.default = Reply([Message("I will look.")], end=Failed(code, "It failed."))
        rows = await run_node(node, "run.mjs", task(url, *case), tmp_path)
    assert [SENTENCES[code] in (Report.read(row).error or "") for row in rows] == [True] * len(case[2])
