"""What `doctor` says of servers, by what these answer."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from aiohttp import web
from msgspec.structs import replace
from pytest_aiohttp import AiohttpServer

from proxy.backends import Finding, find_kind
from proxy.backends.chat.servers import LOCAL_SERVERS
from proxy.settings import Settings

CALL = {"id": "c", "type": "function", "function": {"name": "read_note", "arguments": '{"path": "a.md"}'}}
OF_OLLAMA = Settings(backend="ollama")
OLLAMA = {"/api/ps": {"models": [{"name": "m", "context_length": 4096}]}}
LM_STUDIO = {"/api/v0/models": {"data": [{"id": "m", "max_context_length": 32768, "loaded_context_length": 8192}]}}


async def examine(
    aiohttp_server: AiohttpServer,
    *,
    model: dict[str, Any] | None = None,
    tools: Any = None,
    held: bool | str = True,
    more: dict[str, Any] | None = None,
) -> dict[str, Finding]:
    """`tools` is the message that answers a request with tools, or the error; `held` may be what stands in front of the
    held answer, or instead of it; `more` is what other paths say.
    """

    async def answer(request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        message: Any = {"role": "assistant", "content": "Hello!"}
        if "tools" in body:
            if isinstance(tools, str):
                return web.json_response({"error": {"message": tools}}, status=400)
            message = tools or message
        elif held is not False:
            schema = body["response_format"]["json_schema"]["schema"]
            word = orjson.dumps({"word": schema["properties"]["word"]["enum"][0]}).decode()
            message["content"] = held.replace("WORD", word) if isinstance(held, str) else word
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}]})

    async def say(request: web.Request) -> web.Response:
        return web.json_response(said[request.path])

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    said = {"/v1/models": {"data": [{"id": "m", **(model or {})}]}, **(more or {})}
    for path in said:
        app.router.add_get(path, say)
    server = await aiohttp_server(app)
    url = str(server.make_url("/v1"))
    with pytest.MonkeyPatch.context() as patch:
        # An Ollama that stands elsewhere.
        patch.setitem(LOCAL_SERVERS, "ollama", replace(LOCAL_SERVERS["ollama"], address=url))
        return {finding.name: finding for finding in await find_kind("ollama").check_model(OF_OLLAMA)}


async def test_a_server_that_calls_tools_itself_is_told_honestly(aiohttp_server: AiohttpServer) -> None:
    found = await examine(aiohttp_server, tools={"role": "assistant", "content": None, "tool_calls": [CALL]})
    assert found["tools"].said == "this server calls tools itself: you may not need tagcall for m"
    assert found["tools"].good is None


async def test_one_that_refuses_tools_is_what_tagcall_is_for(aiohttp_server: AiohttpServer) -> None:
    found = await examine(aiohttp_server, tools="registry.ollama.ai/library/m does not support tools")
    assert found["tools"].good is True
    assert "m takes no tools here, and tagcall is for just that" in found["tools"].said


async def test_one_that_takes_tools_and_makes_no_call_is_told_so(aiohttp_server: AiohttpServer) -> None:
    assert (await examine(aiohttp_server))[
        "tools"
    ].said == "the server takes tools, but made no call out of the words of m"


@pytest.mark.parametrize("held", [True, False])
async def test_whether_a_schema_is_held_is_tried(aiohttp_server: AiohttpServer, held: bool) -> None:
    finding = (await examine(aiohttp_server, held=held))["schema"]
    assert finding.good is (True if held else None)
    assert finding.said.startswith(f"m is {'' if held else 'not '}held to a JSON schema")


async def test_thoughts_are_no_answer_to_that(aiohttp_server: AiohttpServer) -> None:
    assert (await examine(aiohttp_server, held="<think>\nHm.\n</think>\n\nWORD"))["schema"].good is True
    for thoughts in ("", "<think>\nHm."):
        finding = (await examine(aiohttp_server, held=thoughts))["schema"]
        assert finding.said == "m said nothing yet, so nobody knows if the server holds it to a JSON schema"


CONTEXTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "llama.cpp": ({"meta": {"n_ctx": 2048, "n_ctx_train": 32768}}, {}, "2,048 tokens; tools and notes fill that soon"),
    "vLLM": ({"max_model_len": 16384}, {}, "16,384 tokens"),
    "OpenRouter": ({"context_length": 200_000}, {}, "200,000 tokens"),
    "Ollama": ({}, OLLAMA, "4,096 tokens; tools and notes fill that soon"),
    "LM Studio": ({}, LM_STUDIO, "8,192 tokens"),
    "another": ({}, {}, "the server does not tell the size of its context"),
}


@pytest.mark.parametrize(("model", "more", "said"), CONTEXTS.values(), ids=CONTEXTS)
async def test_the_context_is_what_is_in_use(
    aiohttp_server: AiohttpServer, model: dict[str, Any], more: dict[str, Any], said: str
) -> None:
    finding = (await examine(aiohttp_server, model=model, more=more))["context"]
    assert finding.said == said
    if finding.good is None:
        assert finding.remedy == "To give it more, start it with OLLAMA_CONTEXT_LENGTH=16384."
