"""The model list, which plugins ask for to see whether the server is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

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


async def test_a_backend_that_is_silent_does_not_keep_the_list_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.models.FIRST_WAIT", 0.01)
    backend = StartingBackend()
    models = ModelList(backend, {"notes": "gpt-5.5"}, ["gpt-5.5"])
    assert [model.id for model in await models.current()] == ["notes", "gpt-5.5"]
    with pytest.raises(BackendError, match="still starting") as caught:
        await ModelList(backend, {}, []).current()
    assert caught.value.status == 503
    backend.up.set()
    assert [model.id for model in await models.current()] == ["notes", BIG.id]


async def test_a_model_whose_backend_names_no_time_is_as_old_as_the_server() -> None:
    before = int(time.time())
    backend = StartingBackend()
    backend.up.set()
    models = ModelList(backend, {"notes": "nobody's"}, [])
    listed = {model.id: model.created for model in await models.current()}
    assert listed == {"notes": listed["notes"], BIG.id: BIG.created}
    assert before <= listed["notes"] <= time.time()
    assert [model.created for model in await models.current()] == [*listed.values()]


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
    with pytest.raises(BackendError, match="tagcall login"):
        await ModelList(backend, {}, []).current()


@pytest.mark.parametrize("path", ["/v1/models/{}", "/models/{}/", "//v1/models/{}"])
async def test_a_model_is_found_under_a_name_with_slashes_and_colons(path: str) -> None:
    backend = StartingBackend()
    backend.up.set()
    async with running_server(Settings(port=0), backend) as url, aiohttp.ClientSession() as session:
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


async def test_the_first_model_stands_in_for_anthropics_where_nothing_else_does() -> None:
    backend = StartingBackend()
    backend.up.set()
    models = ModelList(backend, {"*haiku*": "small"}, [])
    assert await models.stand_in("claude-sonnet-5") == BIG.id
    assert await models.stand_in("gpt-4") == "gpt-4"
    assert await models.stand_in("claude-haiku-5") == "claude-haiku-5"
    assert models.behind("claude-haiku-5") == "small"
    backend.error = BackendError("Run `tagcall login`.")
    assert await ModelList(backend, {}, ["gpt-6"]).stand_in("claude-sonnet-5") == "gpt-6"
    assert await ModelList(backend, {}, []).stand_in("claude-sonnet-5") == "claude-sonnet-5"


async def test_a_model_of_anthropics_that_the_backend_has_is_that_one() -> None:
    class Anthropic(StartingBackend):
        async def models(self) -> Sequence[Model]:
            return [BIG, Model("claude-sonnet-5", 0, "anthropic")]

    models = ModelList(Anthropic(), {}, [])
    assert await models.stand_in("claude-sonnet-5") == "claude-sonnet-5"
    assert await models.stand_in("claude-opus-5") == BIG.id
