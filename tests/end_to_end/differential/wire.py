"""One request to the server, and what a client gets for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from tests.end_to_end.differential.history import Entry
from tests.end_to_end.differential.model import Expected, Upstream
from tests.support.shown_history import ShownHistory

# Seconds for anything to happen at all.
PATIENCE = 60.0
# Members of codex's requests that say how the model shall answer.
SETTINGS = ("model", "reasoning", "text", "service_tier", "tools", "tool_choice")


@dataclass
class Told:
    """What a client got. `pieces` and `wire` as in `Answer`."""

    outcome: str
    pieces: tuple[str | tuple[str, str, str], ...] = ()
    wire: tuple[Mapping[str, Any], ...] = ()
    id: str | None = None
    usage: Sequence[int] = ()
    """Tokens of the prompt and of the answer."""
    settings: Sequence[Any] = ()
    """What codex asked besides the conversation, each time."""


@dataclass
class Request:
    path: str
    body: dict[str, Any]
    shown: ShownHistory
    history: tuple[Entry, ...] = ()


@dataclass
class Server:
    url: str
    session: aiohttp.ClientSession
    upstream: Upstream

    @asynccontextmanager
    async def upstream_of(
        self, requests: Sequence[Request], owner: str, gate: asyncio.Event
    ) -> AsyncIterator[list[Expected]]:
        """Two requests that are under way at once."""
        first, second = (Expected(owner, request.shown, gate=gate) for request in requests)
        async with self.upstream.expecting(first), self.upstream.expecting(second):
            yield [first, second]

    async def ask(self, request: Request, owner: str, *, restarts: bool = False) -> Told:
        async with self.upstream.expecting(Expected(owner, request.shown)) as expected_:
            answer = await self.send(request, owner)
        self.upstream.settle(expected_, answer.outcome, restarts=restarts)
        settings = [{name: body.get(name) for name in SETTINGS} for body in expected_.asked]
        # How much of an answer was counted that is broken off depends on how fast it came.
        usage = () if expected_.broken_off else answer.usage
        return answer if restarts else replace(answer, settings=settings, usage=usage)

    @asynccontextmanager
    async def _posted(self, request: Request, owner: str) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"authorization": f"Bearer {owner}"}
        async with self.session.post(f"{self.url}/{request.path}", json=request.body, headers=headers) as response:
            assert response.status != 400, (await response.text(), request.body)
            yield response

    async def post(self, request: Request, owner: str) -> tuple[int, Any]:
        async with self._posted(request, owner) as response:
            return response.status, await response.json()

    async def send(self, request: Request, owner: str) -> Told:
        if not request.body["stream"]:
            status, body = await self.post(request, owner)
            return Told(f"{status} {body['error']['code']}") if status != 200 else read_answer(body)
        async with self._posted(request, owner) as response:
            if response.status != 200:
                error = await response.json()
                return Told(f"{response.status} {error['error']['code']}")
            return read_stream([event async for event in events_of(response)])

    async def leave(self, request: Request, owner: str, called: asyncio.Event, *, in_text: bool) -> None:
        """Sends a request and goes away: once its answer has begun, or once the model has heard of it."""
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            begun = asyncio.Event()
            reading = group.create_task(self._read(request, owner, begun), name="a request")
            await (begun if in_text else called).wait()
            reading.cancel()

    async def _read(self, request: Request, owner: str, begun: asyncio.Event) -> None:
        async with self._posted(request, owner) as response:
            async for event in events_of(response):
                text = event.get("delta") or any(choice["delta"].get("content") for choice in event.get("choices", []))
                if text:
                    begun.set()
            raise AssertionError(f"{response.status}: an answer that has no end has ended")


async def events_of(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in response.content:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


def read_answer(body: Mapping[str, Any]) -> Told:
    if body["object"] == "response":
        outcome = {"completed": "good", "incomplete": "cut"}.get(body["status"], body["status"])
        pieces: list[Any] = []
        for item in body["output"]:
            if item["type"] == "message":
                pieces.append("".join(part["text"] for part in item["content"]))
            elif item["type"] == "function_call":
                pieces.append((item["call_id"], item["name"], item["arguments"]))
        error = body.get("error")
        usage = body.get("usage") or {"input_tokens": 0, "output_tokens": 0}
        return Told(
            f"failed {error['code']}" if error else outcome, tuple(pieces), tuple(body["output"]), body["id"],
            (usage["input_tokens"], usage["output_tokens"]),
        )  # fmt: skip
    choice = body["choices"][0]
    message = choice["message"]
    calls = [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    text = [message["content"]] if message["content"] else []
    return Told("cut" if choice["finish_reason"] == "length" else "good", (*text, *calls))


def read_stream(events: Sequence[Mapping[str, Any]]) -> Told:
    last = events[-1]
    if "response" in last:
        answer = read_answer(last["response"])
        deltas = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        assert deltas == "".join(piece for piece in answer.pieces if isinstance(piece, str))
        return answer
    if "error" in last or last.get("type") == "error":
        return Told(f"failed {(last.get('error') or last)['code']}")
    message: dict[str, Any] = {"content": "", "tool_calls": []}
    finish = None
    for choice in (choice for event in events for choice in event["choices"]):
        finish = choice["finish_reason"] or finish
        message["content"] += choice["delta"].get("content") or ""
        for call in choice["delta"].get("tool_calls") or ():
            if "id" in call:
                message["tool_calls"].append({"id": call["id"], "function": {"name": "", "arguments": ""}})
            for name, text in call["function"].items():
                message["tool_calls"][call["index"]]["function"][name] += text
    return read_answer({"object": "chat", "choices": [{"message": message, "finish_reason": finish}]})
