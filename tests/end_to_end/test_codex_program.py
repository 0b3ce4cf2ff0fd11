"""What only a backend that is a program shows: it can be killed, and takes so many characters."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from openai import APIError, APIStatusError

from tests.support.backends import BACKENDS_UNDER_TEST, TestBackend
from tests.support.endpoint import TOOLS, Endpoint, serving
from tests.support.processes import app_servers
from tests.support.scripted_model import Message, Reply, ScriptedModel

PROGRAMS = [backend for backend in BACKENDS_UNDER_TEST if backend.codex is not None]
pytestmark = pytest.mark.parametrize("stack", PROGRAMS, ids=lambda stack: stack.name)


@pytest.fixture
async def endpoint(model: ScriptedModel, stack: TestBackend, tmp_path: Path) -> AsyncIterator[Endpoint]:
    """With a program that no other test needs."""
    async with serving(model, stack, tmp_path / "home") as running:
        yield running


async def test_when_the_backend_is_killed_the_stream_fails_once_and_the_next_request_works(
    endpoint: Endpoint,
) -> None:
    gate = asyncio.Event()
    endpoint.model.push(Reply([Message("word " * 200)], chunk=5, hold_after=5, gate=gate))
    stream = await endpoint.client.responses.create(model="gpt-5.5", input="hi", tools=TOOLS, stream=True)
    seen: list[str] = []
    with pytest.raises(APIError, match="app-server ended"):
        async for event in stream:
            seen.append(event.type)
            if event.type == "response.output_text.delta" and seen.count(event.type) == 1:
                for child in app_servers():
                    os.kill(child, signal.SIGKILL)
    assert "response.completed" not in seen
    response = await endpoint.client.responses.create(model="gpt-5.5", input="hi")
    assert response.output_text == "Hello from the scripted model."


async def test_a_backend_that_is_killed_again_and_again_does_not_fail_the_next_request(endpoint: Endpoint) -> None:
    for _ in range(3):
        response = await endpoint.client.responses.create(model="gpt-5.5", input="hi")
        assert response.output_text == "Hello from the scripted model."
        for child in app_servers():
            os.kill(child, signal.SIGKILL)


async def test_a_prompt_that_is_too_long_is_refused_before_the_model_hears_of_it(endpoint: Endpoint) -> None:
    with pytest.raises(APIStatusError) as caught:
        await endpoint.client.responses.create(model="gpt-5.5", input="x" * 1_100_000)
    assert caught.value.status_code == 400
    assert caught.value.code == "context_length_exceeded"
    assert endpoint.model.requests == []
