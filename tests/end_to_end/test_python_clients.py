"""Python clients complete the whole tool loop, against a real server and the real codex program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lanes import continued
from tests.support.scripted_model import ScriptedModel
from tests.support.tagcall_server import tagcall_server
from tests.support.vault import ANSWER, CALLS, ROUNDS, SAID, Session, Way, librarian

from .clients import openai_agents, openai_agents_realtime, openai_python, openai_realtime, pydantic_ai_agent

CLIENTS: dict[str, dict[str, dict[str, Way]]] = {
    "openai": openai_python.WAYS,
    "openai-realtime": openai_realtime.WAYS,
    "openai-agents": openai_agents.WAYS,
    "openai-agents-realtime": openai_agents_realtime.WAYS,
    "pydantic-ai": pydantic_ai_agent.WAYS,
}
CASES = [(client, api, way) for client, apis in CLIENTS.items() for api, ways in apis.items() for way in ways]


@pytest.mark.parametrize(("client", "api", "way"), CASES, ids=["-".join(case) for case in CASES])
async def test_a_python_client_completes_the_tool_loop(
    model: ScriptedModel, client: str, api: str, way: str, tmp_path: Path
) -> None:
    async with tagcall_server(model, tmp_path / "home") as url:
        model.choose = librarian
        session = Session(url)
        await CLIENTS[client][api][way](session)
    # Clients may run parallel calls in any order; the model has seen their results in the right one.
    assert sorted(session.calls, key=repr) == sorted(CALLS, key=repr)
    assert session.texts == [SAID, ANSWER]
    assert len(model.requests) == len(ROUNDS)
    assert continued(model.requests) == len(ROUNDS) - 1
