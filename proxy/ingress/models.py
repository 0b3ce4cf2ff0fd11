"""GET /v1/models: the backend's models and the owner's aliases for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress

from aiohttp import web
from msgspec.structs import replace

from ..contracts import Model, TextBackend
from ..errors import BackendError
from ..wire.models import find_model, model_behind, model_list, model_object, with_aliases
from .bodies import json_reply

# Seconds to wait for the backend's list: for the first one, and for a newer one than is known already.
# Plugins look at the list to see whether the server is there at all, and give up after 8.
FIRST_WAIT = 5.0
NEWER_WAIT = 0.05


# How the names of Anthropic's models begin.
ANTHROPICS = "claude-"


class ModelList:
    """The models of one server, known from the first answer of its backend on; `aliases` is name to model."""

    def __init__(self, backend: TextBackend, aliases: Mapping[str, str], named: Sequence[str]) -> None:
        self._backend = backend
        self._aliases = dict(aliases)
        self._named = [Model(name, 0, "tagcall", listed=False) for name in named]
        self._known: Sequence[Model] = ()
        self._since = int(time.time())
        self._tasks: asyncio.TaskGroup | None = None
        self._looking: asyncio.Task[None] | None = None

    async def run(self, _: web.Application) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as self._tasks:
            yield
            if self._looking is not None:
                self._looking.cancel()

    def look(self) -> None:
        """Asks for the models beside what is being done, as long as none is known."""
        idle = self._looking is None or self._looking.done()
        if self._tasks is not None and not self._known and idle:
            self._looking = self._tasks.create_task(self._look(), name="first look at the models")

    async def _look(self) -> None:
        with suppress(BackendError):
            await self.current()

    def label(self, model: str) -> str:
        """`model` if it is listed, so that it is no word of a client's; else `other`."""
        listed = {each.id for each in (*self._known, *self._named)} | {*self._aliases.values()}
        return model if model in listed else "other"

    def behind(self, name: str) -> str:
        """What the backend is asked for when a client asks for `name`."""
        return model_behind(name, self._aliases) or name

    async def stand_in(self, name: str) -> str:
        """`name`, or for a name of Anthropic's that nothing here stands for the first model of the backend's."""
        if not name.startswith(ANTHROPICS) or model_behind(name, self._aliases) is not None:
            return name
        if not self._known:
            with suppress(BackendError):
                await self.current()
        models = self._known or self._named
        return name if not models or any(model.id == name for model in models) else models[0].id

    async def current(self) -> list[Model]:
        """All that can be listed now. Raises `BackendError` when that is nothing."""
        try:
            async with asyncio.timeout(NEWER_WAIT if self._known else FIRST_WAIT):
                self._known = await self._backend.models() or self._known
        except TimeoutError:
            trouble = BackendError(
                "The backend is still starting: ask again in a moment.", status=503, retry_after=2, elsewhere=True
            )
        except BackendError as error:
            trouble = error
        else:
            return self._dated(self._known)
        if models := self._dated(self._known or self._named):
            return models
        raise trouble

    def _dated(self, models: Sequence[Model]) -> list[Model]:
        """`models` and the aliases. One whose backend names no time is as old as this server: clients show a date."""
        named = with_aliases(models, self._aliases)
        return [model if model.created else replace(model, created=self._since) for model in named]


MODELS = web.AppKey("models", ModelList)


async def list_models(request: web.Request) -> web.StreamResponse:
    return json_reply(model_list(await request.app[MODELS].current()))


async def get_model(request: web.Request, name: str) -> web.StreamResponse:
    return json_reply(model_object(find_model(await request.app[MODELS].current(), name)))
