"""How large the context of each model is, as its server tells."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from proxy.backends.chat import ChatBackend
from tests.support.patience import PATIENCE

OLLAMA = {"/api/ps": {"models": [{"name": "m", "context_length": 4096}, {"name": 1}, None]}}
LM_STUDIO = {"/api/v0/models": {"data": [{"id": "m", "max_context_length": 32768, "loaded_context_length": 8192}]}}


@pytest.mark.parametrize(
    ("model", "more", "size"),
    [
        ({"meta": {"n_ctx": 2048, "n_ctx_train": 32768}}, {}, 2048),
        ({"max_model_len": 16384}, {}, 16384),
        ({}, OLLAMA, 4096),
        ({}, LM_STUDIO, 8192),
        ({"context_length": 32768}, OLLAMA, 4096),
        ({}, {"/api/ps": []}, None),
        ({}, {}, None),
    ],
    ids=["llama.cpp", "vLLM", "Ollama", "LM Studio", "what is in use wins", "another answer", "nobody tells"],
)
async def test_it_is_listed_with_the_model_that_is_named_as_well(
    aiohttp_server: AiohttpServer, model: dict[str, Any], more: dict[str, Any], size: int | None
) -> None:
    said = {"/v1/models": {"data": [{"id": "m", **model}]}, **more}

    async def say(request: web.Request) -> web.Response:
        return web.json_response(said[request.path])

    app = web.Application()
    for path in said:
        app.router.add_get(path, say)
    server = await aiohttp_server(app)
    for named in ((), ("m", "other")):
        async with ChatBackend(str(server.make_url("/v1")), models=named) as backend:
            sizes = {each.id: each.context for each in await backend.models()}
        assert sizes == {"m": size} | dict.fromkeys(set(named) - {"m"})


async def test_a_server_that_is_silent_beside_its_list_is_listed_all_the_same(
    aiohttp_server: AiohttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.backends.chat.backend.LOOK_BESIDE", 0.05)
    over = asyncio.Event()

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m", "max_model_len": 16384}]})

    async def say_nothing(_: web.Request) -> web.Response:
        await over.wait()
        raise web.HTTPNotFound

    app = web.Application()
    app.router.add_get("/v1/models", models)
    app.router.add_get("/api/{rest:.*}", say_nothing)
    server = await aiohttp_server(app)
    try:
        async with ChatBackend(str(server.make_url("/v1"))) as backend, asyncio.timeout(PATIENCE):
            assert [(each.id, each.context) for each in await backend.models()] == [("m", 16384)]
    finally:
        over.set()


@pytest.mark.parametrize("row", [{}, {"meta": None}, {"meta": []}, {"max_model_len": "16384"}, {"max_model_len": 0}])
async def test_what_is_no_size_is_none(aiohttp_server: AiohttpServer, row: Any) -> None:
    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m", **row}]})

    app = web.Application()
    app.router.add_get("/v1/models", models)
    server = await aiohttp_server(app)
    async with ChatBackend(str(server.make_url("/v1"))) as backend:
        assert [(each.id, each.context) for each in await backend.models()] == [("m", None)]
