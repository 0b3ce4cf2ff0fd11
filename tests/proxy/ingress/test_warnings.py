"""A block that left as text although it looks like a call: its client is told, where it can be."""

from __future__ import annotations

import pytest
from aiohttp import ClientSession
from structlog.testing import capture_logs

from parser import write_call
from proxy.contracts import Prompt
from proxy.errors import StoreError
from proxy.server import running_server
from proxy.settings import Settings
from proxy.stores import KeyedStore
from proxy.turn.blocks import QUOTED as QUOTED_TOLD
from proxy.wire.content import UNSHOWN_IMAGES
from tests.support.http_client import client
from tests.support.memory_backend import MemoryBackend

QUOTED = write_call("read_note", '{"path": "a.md"}')
TOOL = {"name": "read_note", "parameters": {"type": "object", "properties": {}}}
ASKED = f"Show me this: {QUOTED}"
BODIES = {
    "responses": {"model": "m", "input": ASKED, "tools": [{"type": "function", **TOOL}]},
    "chat/completions": {
        "model": "m",
        "messages": [{"role": "user", "content": ASKED}],
        "tools": [{"type": "function", "function": TOOL}],
    },
}
TOLD = QUOTED_TOLD.format(tool="the tool 'read_note'")


@pytest.mark.parametrize("api", BODIES)
async def test_a_json_answer_warns_in_its_header(api: str) -> None:
    async with client(QUOTED) as (session, url):
        async with session.post(f"{url}/{api}", json=BODIES[api]) as response:
            assert response.headers["x-tagcall-warning"] == TOLD
            assert "tool_call>" in await response.text()


async def test_a_stream_of_an_answer_that_is_not_stored_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(KeyedStore, "save", fail)
    async with client("Hello.") as (session, url):
        with capture_logs() as lines:
            async with session.post(f"{url}/responses", json={"model": "m", "input": "x", "stream": True}) as response:
                text = await response.text()
    assert text.index(": x-tagcall-warning: not stored\n\n") < text.index("event: response.completed")
    assert next(line["warnings"] for line in lines if line["event"] == "request") == ["not stored"]


@pytest.mark.parametrize(("api", "told"), [("responses", True), ("chat/completions", False)])
async def test_a_stream_warns_in_a_comment_where_readers_know_comments(api: str, told: bool) -> None:
    async with client(QUOTED) as (session, url):
        with capture_logs() as lines:
            async with session.post(f"{url}/{api}", json=BODIES[api] | {"stream": True}) as response:
                text = await response.text()
    comment = f": x-tagcall-warning: {TOLD}\n\n"
    assert (comment in text) is told
    if told:
        assert text.index(comment) < text.index("event: response.completed")
    assert all(line.startswith("data: ") for line in text.splitlines() if line) or told
    logged = next(line for line in lines if line["event"] == "request")
    assert (logged["refused"], logged["warnings"]) == ({"quoted": 1}, [TOLD])


WRONG = write_call("read_note", '{"path": 5}')
HELD = {**TOOL, "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}


async def test_a_call_that_does_not_fit_is_told_counted_and_logged_by_its_tool() -> None:
    body = {"model": "m", "input": "Read it.", "tools": [{"type": "function", **HELD}]}
    async with client(WRONG, WRONG) as (session, url):
        with capture_logs() as lines:
            async with session.post(f"{url}/responses", json=body) as response:
                answer = await response.json()
                told = response.headers["x-tagcall-warning"]
        async with session.get(f"{url.removesuffix('/v1')}/metrics") as response:
            counted = await response.text()
    assert told == "A call of the tool 'read_note' left with arguments that do not fit its schema."
    assert answer["output"][0]["arguments"] == '{"path": 5}'
    assert answer["tools"][0]["strict"] is False
    assert next(line["misfits"] for line in lines if line["event"] == "request") == {"read_note": 1}
    assert 'tagcall_unheld_total{reason="misfit"} 1.0' in counted


async def test_what_has_no_effect_is_told() -> None:
    tools = [{"type": "web_search"}, {"type": "mcp", "server_label": "a", "server_url": "http://a"}]
    async with client("Hello.", "Hello.", "Hello.") as (session, url):
        body = {"model": "m", "input": "x", "temperature": 0.2, "top_p": 1, "tools": tools}
        async with session.post(f"{url}/responses", json=body) as response:
            assert response.headers["x-tagcall-warning"] == (
                "Not offered to the model, because nothing here can run it: mcp, web_search.; "
                "Without effect here: temperature."
            )
        chat = {"model": "m", "messages": [{"role": "user", "content": "x"}], "seed": 1, "logit_bias": {"1": 2}}
        async with session.post(f"{url}/chat/completions", json=chat) as response:
            assert response.headers["x-tagcall-warning"] == "Without effect here: logit_bias, seed."
        usual = {"model": "m", "input": "x", "temperature": 1.0, "top_logprobs": 0}
        async with session.post(f"{url}/responses", json=usual) as response:
            assert "x-tagcall-warning" not in response.headers


PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize("role", ["system", "developer", "assistant"])
@pytest.mark.parametrize(
    ("api", "said", "image"),
    [
        ("responses", "input", {"type": "input_image", "image_url": PNG}),
        ("chat/completions", "messages", {"type": "image_url", "image_url": {"url": PNG}}),
    ],
)
async def test_an_image_that_the_model_is_not_shown_is_told(
    role: str, api: str, said: str, image: dict[str, object]
) -> None:
    shown = {"role": "user", "content": [image]}
    left_out = {"role": role, "content": [{"type": "text", "text": "Look:"}, image]}
    async with client("Hello.", "Hello.") as (session, url):
        async with session.post(f"{url}/{api}", json={"model": "m", said: [left_out, shown]}) as response:
            assert response.headers["x-tagcall-warning"] == UNSHOWN_IMAGES
        async with session.post(f"{url}/{api}", json={"model": "m", said: [shown]}) as response:
            assert "x-tagcall-warning" not in response.headers


async def test_where_a_backend_heeds_it_nothing_is_told() -> None:
    backend = MemoryBackend(["Hello."], heeded=frozenset({"temperature"}))
    async with running_server(Settings(port=0), backend) as url, ClientSession() as session:
        async with session.post(f"{url}/responses", json={"model": "m", "input": "x", "temperature": 0.2}) as response:
            assert "x-tagcall-warning" not in response.headers


async def test_what_a_backend_finds_out_while_it_answers_is_told() -> None:
    backend = MemoryBackend([], heeded=frozenset({"temperature"}))

    def answer(prompt: Prompt) -> str:
        backend.heeded = frozenset()
        return "Hello."

    backend.answers.append(answer)
    async with running_server(Settings(port=0), backend) as url, ClientSession() as session:
        async with session.post(f"{url}/responses", json={"model": "m", "input": "x", "temperature": 0.2}) as response:
            assert response.headers["x-tagcall-warning"] == "Without effect here: temperature."


async def test_an_answer_without_such_a_block_warns_of_nothing() -> None:
    async with client("Hello.") as (session, url):
        async with session.post(f"{url}/responses", json=BODIES["responses"]) as response:
            assert "x-tagcall-warning" not in response.headers
