"""Requests and answers as large as they may be: how long each holds the loop at a time, and with it everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import aiohttp
import orjson
import pytest
from structlog.testing import capture_logs

from parser import write_call
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.cpu_time import any_round, cpu_seconds
from tests.support.memory_backend import MemoryBackend
from tests.support.patience import PATIENCE
from tests.support.stretches import stretches

MB = 10**6
# Of these: some 100 ms where one takes 10. It is three at most, on a machine without other work, and was fifty.
MOMENTS = 10
TOOLS = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]
BODY: dict[str, Any] = {"model": "m", "input": "hi", "tools": TOOLS}
# A call and its result are two of the 10,000 items that a request may have.
ITEMS = 10_000
SAID = [{"role": ("user", "assistant")[number % 2], "content": f"{number} word" * 60} for number in range(ITEMS)]
CALL = {"type": "function_call", "name": "read_note", "arguments": '{"path": "a.md"}'}
CALLED = [
    item
    for number in range(ITEMS // 2 - 1)
    for item in (
        {**CALL, "call_id": f"c{number}"},
        {"type": "function_call_output", "call_id": f"c{number}", "output": "line\n" * 200},
    )
]

# Where a request goes, and its body.
REQUESTS: Mapping[str, tuple[str, Callable[[], bytes]]] = {
    "one text": ("responses", lambda: orjson.dumps({**BODY, "input": "word " * (3 * MB)})),
    "one text that is not ASCII": ("responses", lambda: orjson.dumps({**BODY, "input": "w\u00f6rd " * (2 * MB)})),
    "instructions": ("responses", lambda: orjson.dumps({**BODY, "instructions": "word " * (3 * MB)})),
    "half blocks": ("responses", lambda: orjson.dumps({**BODY, "input": '<tool_call>{"name": ' * (MB // 2)})),
    "messages": ("responses", lambda: orjson.dumps({**BODY, "input": SAID})),
    "calls": ("responses", lambda: orjson.dumps({**BODY, "input": [*SAID[:1], *CALLED]})),
    "messages, Chat": ("chat/completions", lambda: orjson.dumps({"model": "m", "messages": SAID})),
    "messages, counted": ("responses/input_tokens", lambda: orjson.dumps({**BODY, "input": SAID})),
    "empty objects": ("responses", lambda: b'{"model":"m","input":"hi","x":[' + b"{}," * (5 * MB) + b"1]}"),
    "numbers": ("responses", lambda: b'{"model":"m","input":"hi","x":[' + b"1," * (7 * MB) + b"1]}"),
    "towers": (
        "responses",
        lambda: b'{"model":"m","input":"hi","x":[' + (b"[" * 50 + b"]" * 50 + b",") * 150_000 + b"1]}",
    ),
    "broken JSON": ("responses", lambda: b'{"model":"m","input":"' + b"a" * (15 * MB)),
}

ANSWERS: Mapping[str, str] = {
    "text": "word " * (MB // 2),
    "one call": write_call("read_note", '{"path": "' + "a b" * MB + '"}'),
    "calls": write_call("read_note", '{"path": "a.md"}') * 5_000,
    "half blocks": '<tool_call>{"name": "read_note", "arguments": {"path": "a\n' * 10_000,
}


def moment() -> float:
    """CPU seconds to read 16 MiB of JSON that holds one text, which nobody gets around: some 10 ms."""
    body = orjson.dumps({"input": "word " * ((16 << 20) // 5)})
    return cpu_seconds(lambda: orjson.loads(body))


# The rows of a table, as JSON that was asked for.
ROWS = orjson.dumps([{"name": f"row {number}", "text": "word " * 20} for number in range(MB // 30)]).decode()
AS_JSON = {"type": "json_schema", "name": "rows", "schema": {"type": "array", "items": {"type": "object"}}}


async def longest(answer: str, path: str, body: bytes) -> float:
    settings = Settings(port=0, store="memory")
    async with running_server(settings, MemoryBackend([answer] * 3)) as url, aiohttp.ClientSession() as session:
        headers = {"Content-Type": "application/json"}
        with stretches() as took, capture_logs():
            async with (
                asyncio.timeout(PATIENCE),
                session.post(f"{url}/{path}", data=BytesIO(body), headers=headers) as response,
            ):
                assert response.status in {200, 400}
                await response.read()
    return max(took)


async def is_brief(answer: str, path: str, body: bytes) -> None:
    for each in any_round():
        with each:
            assert await longest(answer, path, body) < MOMENTS * moment()


@pytest.mark.growth
@pytest.mark.parametrize("name", REQUESTS)
async def test_no_request_holds_the_loop_for_long(name: str) -> None:
    path, body = REQUESTS[name]
    await is_brief("Hello.", path, body())


@pytest.mark.growth
@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_no_answer_holds_the_loop_for_long(name: str, *, stream: bool) -> None:
    body = orjson.dumps({**BODY, "stream": stream})
    await is_brief(ANSWERS[name], "responses", body)


@pytest.mark.growth
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_no_answer_in_json_holds_the_loop_for_long(*, stream: bool) -> None:
    body = orjson.dumps({"model": "m", "input": "hi", "stream": stream, "text": {"format": AS_JSON}})
    await is_brief(ROWS, "responses", body)
