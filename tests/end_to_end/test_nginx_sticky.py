"""nginx, as the how-to sets it up, in front of two servers: a conversation stays with one, whatever it is known by."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from parser import write_call
from proxy.contracts import Prompt
from proxy.replay.key_placeholder import key_of
from tests.support.nginx import wants_nginx
from tests.support.nginx_site import NginxSite, nginx_site

pytestmark = wants_nginx

FUNCTION = {"name": "read_note", "parameters": {"type": "object"}}

# Requests of one loop, and loops after which both servers have had one, or one of them never has.
STEPS = 4
ENOUGH = 64


NUMBERS = count()


def calls(prompt: Prompt) -> str:
    return write_call("read_note", f'{{"path": "{next(NUMBERS)}.md"}}', key=key_of(prompt.developer))


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[NginxSite]:
    async with nginx_site(tmp_path, f"sqlite:{tmp_path}/r.db") as opened:
        for backend in opened.backends:
            backend.answers.extend([calls] * STEPS * ENOUGH)
        yield opened


async def answer_of(site: NginxSite, path: str, **body: Any) -> Any:
    status, told = await site.post(path, **body)
    assert status == 200, told
    return told


async def by_previous_response(site: NginxSite) -> None:
    tools = [{"type": "function", **FUNCTION}]
    answer = await answer_of(site, "responses", input="Read a.md", tools=tools)
    for step in range(1, STEPS):
        output = {
            "type": "function_call_output", "call_id": answer["output"][-1]["call_id"],
            "output": f'Step {step}: "previous_response_id": "resp_{"0" * 32}"',
        }  # fmt: skip
        answer = await answer_of(site, "responses", previous_response_id=answer["id"], input=[output], tools=tools)


async def by_items(site: NginxSite) -> None:
    tools = [{"type": "function", **FUNCTION}]
    items: list[Any] = [{"role": "user", "content": "Read a.md"}]
    for step in range(STEPS):
        answer = await answer_of(site, "responses", input=items, tools=tools, store=False)
        call = answer["output"][-1]
        items += [call, {"type": "function_call_output", "call_id": call["call_id"], "output": f"{step}"}]


async def by_calls_in_chat(site: NginxSite) -> None:
    tools = [{"type": "function", "function": FUNCTION}]
    messages: list[Any] = [{"role": "user", "content": "Read a.md"}]
    for step in range(STEPS):
        answer = await answer_of(site, "chat/completions", messages=messages, tools=tools)
        message = answer["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": f"{step}"}
        messages += [{"role": "assistant", "tool_calls": message["tool_calls"]}, result]


@pytest.mark.parametrize("loop", [by_previous_response, by_items, by_calls_in_chat])
async def test_a_loop_stays_where_it_began_and_others_go_elsewhere(
    site: NginxSite, loop: Callable[[NginxSite], Awaitable[None]]
) -> None:
    chosen = set()
    for _ in range(ENOUGH):
        before = site.asked
        await loop(site)
        asked = tuple(now - then for now, then in zip(site.asked, before, strict=True))
        assert asked in {(STEPS, 0), (0, STEPS)}
        chosen.add(asked)
        if len(chosen) == 2:
            break
    assert len(chosen) == 2


async def test_who_sends_all_of_it_anew_without_any_id_is_known_by_his_key_and_address(site: NginxSite) -> None:
    for backend in site.backends:
        backend.answers[:] = ["Yes."] * STEPS
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    messages += [{"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "So?"}]
    for _ in range(STEPS):
        await answer_of(site, "chat/completions", messages=messages)
    assert set(site.asked) == {0, STEPS}


async def test_a_background_response_is_asked_for_where_it_is_made(site: NginxSite) -> None:
    for backend in site.backends:
        backend.answers[:] = ["Yes."] * STEPS
    queued = await answer_of(site, "responses", input="hi", background=True)
    async with site.session.get(f"{site.url}/responses/{queued['id']}?stream=true") as response:
        assert b"response.completed" in await response.read()
