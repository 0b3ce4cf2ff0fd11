"""Checks whether a codex program with our configuration gives the model tools of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from prompts import Text

from ...contracts import Prompt
from ...errors import BackendError
from ...rpc import RpcObject
from .backend import codex_backend
from .baseline import refusing_endpoint, without_proxies


async def tools_that_reach_the_model(program: str | None, models: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """By model name, the tools in the request that codex would send its service.

    One turn a model, in a home of its own, in front of an endpoint on this machine that refuses them all.
    """
    seen: dict[str, tuple[str, ...]] = {}

    def see(body: RpcObject) -> None:
        seen[str(body["model"])] = tuple(_tools(body))

    with tempfile.TemporaryDirectory(prefix="tagcall-") as folder:
        async with refusing_endpoint(see) as url:
            environment = without_proxies(os.environ)
            backend = codex_backend(home=Path(folder), program=program, upstream=url, models=models, env=environment)
            async with backend:
                for model in await backend.models():
                    with suppress(BackendError):
                        async with backend.stream(Prompt(model.id, None, (Text("Hello"),))) as batches:
                            async for _ in batches:
                                pass
    return seen


def _tools(body: RpcObject) -> Iterator[str]:
    for tool in body.get("tools") or ():
        yield str(tool.get("name") or tool.get("type"))
    # From 0.160 on some models get theirs as an item of the conversation.
    for item in body.get("input") or ():
        if item.get("type") == "additional_tools":
            yield from (str(tool.get("name") or tool.get("type")) for tool in item.get("tools") or ())
