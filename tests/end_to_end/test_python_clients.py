"""Python clients complete the whole tool loop, against a real server in front of each kind of backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.backends import ONE_OF_EACH_KIND, TestBackend
from tests.support.lanes import continued
from tests.support.scripted_model import ScriptedModel
from tests.support.tagcall_server import tagcall_server
from tests.support.vault import ANSWER, CALLS, ROUNDS, SAID, Session, Way, librarian

from .clients import (
    anthropic_python,
    openai_agents,
    openai_agents_realtime,
    openai_python,
    openai_realtime,
    pydantic_ai_agent,
)

CLIENTS: dict[str, dict[str, dict[str, Way]]] = {
    "anthropic": anthropic_python.WAYS,
    "openai": openai_python.WAYS,
    "openai-realtime": openai_realtime.WAYS,
    "openai-agents": openai_agents.WAYS,
    "openai-agents-realtime": openai_agents_realtime.WAYS,
    "pydantic-ai": pydantic_ai_agent.WAYS,
}
CASES = [(client, api, way) for client, apis in CLIENTS.items() for api, ways in apis.items() for way in ways]


@pytest.mark.parametrize("stack", ONE_OF_EACH_KIND, ids=lambda stack: stack.name)
@pytest.mark.parametrize("case", CASES, ids="-".join)
async def test_a_python_client_completes_the_tool_loop(
    model: ScriptedModel, stack: TestBackend, case: tuple[str, str, str], tmp_path: Path
) -> None:
    client, api, way = case
    async with tagcall_server(model, tmp_path / "home", stack) as url:
        model.choose = librarian
        session = Session(url)
        await CLIENTS[client][api][way](session)
    # Clients may run parallel calls in any order; the model has seen their results in the right one.
    assert sorted(session.calls, key=repr) == sorted(CALLS, key=repr)
    assert session.texts == [SAID, ANSWER]
    assert len(model.requests) == len(ROUNDS)
    assert continued(model.requests) == len(ROUNDS) - 1
