"""nginx, as the how-to sets it up, in front of two servers: a conversation stays with one, whatever it is known by."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from parser import write_call
from proxy.contracts import Prompt
from proxy.replay.call_key import key_of
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.codex_programs import ROOT
from tests.support.memory_backend import MemoryBackend
from tests.support.nginx import free_port, nginx, wants_nginx

pytestmark = wants_nginx

CONFIGURATION = (ROOT / "docs/howto/many-machines/nginx.conf").read_text("utf-8")
FUNCTION = {"name": "read_note", "parameters": {"type": "object"}}

# Requests of one loop, and loops after which both servers have had one, or one of them never has.
STEPS = 4
ENOUGH = 64


NUMBERS = count()


def calls(prompt: Prompt) -> str:
    return write_call("read_note", f'{{"path": "{next(NUMBERS)}.md"}}', key=key_of(prompt.developer))


class Site:
    def __init__(self, url: str, session: aiohttp.ClientSession, backends: list[MemoryBackend]) -> None:
        self.url = url
        self.session = session
        self.backends = backends

    async def post(self, path: str, **body: Any) -> Any:
        async with self.session.post(f"{self.url}/{path}", json={"model": "m", **body}) as response:
            assert response.status == 200, await response.text()
            return await response.json()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        configuration, backends = CONFIGURATION, []
        for name in ("tagcall-1", "tagcall-2"):
            backend = MemoryBackend([])
            backend.answers.extend([calls] * STEPS * ENOUGH)
            settings = Settings(port=0, store=f"sqlite:{tmp_path}/r.db")
            url = await stack.enter_async_context(running_server(settings, backend))
            configuration = configuration.replace(f"{name}:8787", url.removeprefix("http://").removesuffix("/v1"))
            backends.append(backend)
        port = free_port()
        configuration = configuration.replace("listen 8787", f"listen 127.0.0.1:{port}")
        await stack.enter_async_context(nginx(configuration, tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Site(f"http://127.0.0.1:{port}/v1", session, backends)


async def by_previous_response(site: Site) -> None:
    tools = [{"type": "function", **FUNCTION}]
    answer = await site.post("responses", input="Read a.md", tools=tools)
    for step in range(1, STEPS):
        output = {
            "type": "function_call_output", "call_id": answer["output"][-1]["call_id"],
            "output": f'Step {step}: "previous_response_id": "resp_{"0" * 32}"',
        }  # fmt: skip
        answer = await site.post("responses", previous_response_id=answer["id"], input=[output], tools=tools)


async def by_items(site: Site) -> None:
    tools = [{"type": "function", **FUNCTION}]
    items: list[Any] = [{"role": "user", "content": "Read a.md"}]
    for step in range(STEPS):
        answer = await site.post("responses", input=items, tools=tools, store=False)
        call = answer["output"][-1]
        items += [call, {"type": "function_call_output", "call_id": call["call_id"], "output": f"{step}"}]


async def by_calls_in_chat(site: Site) -> None:
    tools = [{"type": "function", "function": FUNCTION}]
    messages: list[Any] = [{"role": "user", "content": "Read a.md"}]
    for step in range(STEPS):
        answer = await site.post("chat/completions", messages=messages, tools=tools)
        message = answer["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": f"{step}"}
        messages += [{"role": "assistant", "tool_calls": message["tool_calls"]}, result]


@pytest.mark.parametrize("loop", [by_previous_response, by_items, by_calls_in_chat])
async def test_a_loop_stays_where_it_began_and_others_go_elsewhere(
    site: Site, loop: Callable[[Site], Awaitable[None]]
) -> None:
    chosen = set()
    for _ in range(ENOUGH):
        before = [len(backend.prompts) for backend in site.backends]
        await loop(site)
        asked = tuple(len(backend.prompts) - then for backend, then in zip(site.backends, before, strict=True))
        assert asked in {(STEPS, 0), (0, STEPS)}
        chosen.add(asked)
        if len(chosen) == 2:
            break
    assert len(chosen) == 2


async def test_who_sends_all_of_it_anew_without_any_id_is_known_by_his_key_and_address(site: Site) -> None:
    for backend in site.backends:
        backend.answers[:] = ["Yes."] * STEPS
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    messages += [{"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "So?"}]
    for _ in range(STEPS):
        await site.post("chat/completions", messages=messages)
    assert {len(backend.prompts) for backend in site.backends} == {0, STEPS}


async def test_a_background_response_is_asked_for_where_it_is_made(site: Site) -> None:
    for backend in site.backends:
        backend.answers[:] = ["Yes."] * STEPS
    queued = await site.post("responses", input="hi", background=True)
    async with site.session.get(f"{site.url}/responses/{queued['id']}?stream=true") as response:
        assert b"response.completed" in await response.read()
