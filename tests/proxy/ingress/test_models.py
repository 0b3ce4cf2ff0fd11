"""The model list, which plugins ask for to see whether the server is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from proxy.contracts import Model
from proxy.errors import BackendError
from proxy.ingress.models import NEWER_WAIT, ModelList
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import client, error_of
from tests.support.memory_backend import MemoryBackend
from tests.support.virtual_clock import on_a_virtual_clock

BIG = Model("openai/gpt-5.5:latest", 7, "codex")


class StartingBackend(MemoryBackend):
    """Lists its models once it is up, and is silent until then."""

    def __init__(self) -> None:
        super().__init__([])
        self.up = asyncio.Event()
        self.error: BackendError | None = None

    async def models(self) -> Sequence[Model]:
        await self.up.wait()
        if self.error:
            raise self.error
        return [BIG]


@asynccontextmanager
async def serving(backend: MemoryBackend, **settings: Any) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    async with running_server(Settings(port=0, **settings), backend) as url, aiohttp.ClientSession() as session:
        yield session, url


async def listed(session: aiohttp.ClientSession, url: str) -> dict[str, int]:
    """When each model was made."""
    async with session.get(f"{url}/models") as response:
        assert response.status == 200
        return {model["id"]: model["created"] for model in (await response.json())["data"]}


async def refusal(session: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    async with session.get(f"{url}/models") as response:
        return response.status, (await error_of(response))["message"]


async def test_a_backend_that_is_silent_does_not_keep_the_list_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.models.FIRST_WAIT", 0.01)
    backend = StartingBackend()
    async with serving(backend, alias=(("notes", "gpt-5.5"),), model=("gpt-5.5",)) as server:
        assert [*await listed(*server)] == ["notes", "gpt-5.5"]
        backend.up.set()
        assert [*await listed(*server)] == ["notes", BIG.id]


async def test_without_a_model_to_name_a_silent_backend_is_said_to_be_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.models.FIRST_WAIT", 0.01)
    async with serving(StartingBackend()) as server:
        assert await refusal(*server) == (503, "The backend is still starting: ask again in a moment.")


async def test_a_model_whose_backend_names_no_time_is_as_old_as_the_server() -> None:
    before = int(time.time())
    backend = StartingBackend()
    backend.up.set()
    async with serving(backend, alias=(("notes", "nobody's"),)) as server:
        models = await listed(*server)
        assert models == {"notes": models["notes"], BIG.id: BIG.created}
        assert before <= models["notes"] <= time.time()
        assert await listed(*server) == models


@on_a_virtual_clock
async def test_a_list_that_is_known_is_told_at_once_while_the_backend_is_away() -> None:
    backend = StartingBackend()
    backend.up.set()
    models = ModelList(backend, {}, [])
    assert await models.current() == [BIG]
    backend.up.clear()
    assert await models.current() == [BIG]
    assert asyncio.get_running_loop().time() == NEWER_WAIT
    backend.up.set()
    backend.error = BackendError("It crashed.")
    assert await models.current() == [BIG]


async def test_a_backend_that_cannot_list_anything_says_why() -> None:
    backend = StartingBackend()
    backend.up.set()
    backend.error = BackendError("Run `tagcall login`.")
    async with serving(backend) as server:
        assert (await refusal(*server))[1] == "Run `tagcall login`."


@pytest.mark.parametrize("path", ["/v1/models/{}", "/models/{}/", "//v1/models/{}"])
async def test_a_model_is_found_under_a_name_with_slashes_and_colons(path: str) -> None:
    backend = StartingBackend()
    backend.up.set()
    async with serving(backend) as (session, url):
        for name in (BIG.id, BIG.id.replace("/", "%2F").replace(":", "%3A")):
            target = url.removesuffix("/v1") + path.format(name)
            async with session.get(target, allow_redirects=False) as response:
                assert response.status == 200
                assert await response.json() == {
                    "id": BIG.id, "object": "model", "created": 7, "owned_by": "codex",
                }  # fmt: skip


async def test_a_model_that_is_not_listed_is_not_found() -> None:
    async with client() as (session, url), session.get(f"{url}/models/gpt-6") as response:
        assert response.status == 404
        error = await error_of(response)
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    assert error["message"] == "The model 'gpt-6' does not exist or you do not have access to it."


async def test_aliases_are_listed() -> None:
    async with client(alias=(("notes", "scripted"),)) as (session, url):
        async with session.get(f"{url}/models") as response:
            listed = (await response.json())["data"]
        async with session.get(f"{url}/models/notes") as response:
            assert await response.json() == listed[0]
    assert [(model["id"], model["created"]) for model in listed] == [
        ("notes", 1_700_000_000), ("scripted", 1_700_000_000),
    ]  # fmt: skip


NOT_LOGGED_IN = BackendError("Run `tagcall login`.")
SONNET = Model("claude-sonnet-5", 0, "anthropic")


@pytest.mark.parametrize(
    ("models", "named", "asked", "behind"),
    [
        ([BIG], (), "claude-sonnet-5", BIG.id),
        ([BIG], (), "gpt-4", "gpt-4"),
        ([BIG], (), "claude-haiku-5", "small"),
        (NOT_LOGGED_IN, ("gpt-6",), "claude-sonnet-5", "gpt-6"),
        (NOT_LOGGED_IN, (), "claude-sonnet-5", "claude-sonnet-5"),
        ([BIG, SONNET], (), "claude-sonnet-5", "claude-sonnet-5"),
        ([BIG, SONNET], (), "claude-opus-5", BIG.id),
    ],
)
async def test_the_first_model_stands_in_for_those_of_anthropics_that_nothing_else_stands_for(
    models: Sequence[Model] | BackendError, named: tuple[str, ...], asked: str, behind: str
) -> None:
    class Listing(MemoryBackend):
        async def models(self) -> Sequence[Model]:
            if isinstance(models, BackendError):
                raise models
            return models

    backend = Listing(["Hello"])
    async with serving(backend, alias=(("*haiku*", "small"),), model=named) as (session, url):
        body = {"model": asked, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
        async with session.post(f"{url}/messages", json=body) as response:
            assert response.status == 200
    assert backend.prompts[0].model == behind
