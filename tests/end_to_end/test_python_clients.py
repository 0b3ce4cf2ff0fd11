"""Python clients complete the whole tool loop, against a real server in front of each kind of backend."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import pytest

from tests.support.backends import ONE_OF_EACH_KIND, TestBackend
from tests.support.endpoint import Endpoint
from tests.support.lanes import continued
from tests.support.librarian import ROUNDS, librarian
from tests.support.vault import ANSWER, CALLS, SAID, Session, Way

# By the module in `clients`, each with the ways that it knows of its APIs. A module loads its SDK, which takes long, so
# only its own tests load it.
CLIENTS = {
    "anthropic_python": {"messages": ["create", "streamed", "helper", "tool_runner"]},
    "openai_python": {"responses": ["create", "streamed", "helper"], "chat": ["create", "streamed", "helper"]},
    "openai_realtime": {"realtime": ["ga", "beta"]},
    "openai_agents": {"responses": ["run", "run_streamed", "run_deferred"], "chat": ["run", "run_streamed"]},
    "openai_agents_realtime": {"realtime": ["agent"]},
    "pydantic_ai_agent": {"responses": ["run", "streamed"], "chat": ["run", "streamed"]},
}
CASES = [(client, api, way) for client, apis in CLIENTS.items() for api, ways in apis.items() for way in ways]


def ways_of(client: str) -> Mapping[str, Mapping[str, Way]]:
    ways: Mapping[str, Mapping[str, Way]] = import_module(f".clients.{client}", __package__).WAYS
    return ways


@pytest.mark.parametrize("client", CLIENTS)
def test_each_way_of_a_client_is_tried(client: str) -> None:
    assert {api: [*ways] for api, ways in ways_of(client).items()} == CLIENTS[client]


@pytest.mark.parametrize("stack", ONE_OF_EACH_KIND, ids=lambda stack: stack.name)
@pytest.mark.parametrize("case", CASES, ids="-".join)
async def test_a_python_client_completes_the_tool_loop(
    endpoint: Endpoint, stack: TestBackend, case: tuple[str, str, str]
) -> None:
    client, api, way = case
    model = endpoint.model
    model.choose = librarian
    session = Session(endpoint.url)
    await ways_of(client)[api][way](session)
    # Clients may run parallel calls in any order; the model has seen their results in the right one.
    assert sorted(session.calls, key=repr) == sorted(CALLS, key=repr)
    assert session.texts == [SAID, ANSWER]
    assert len(model.requests) == len(ROUNDS)
    assert continued(model.requests) == len(ROUNDS) - 1
