"""What a connection remembers, in front of a store in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.ingress.websocket import recent
from proxy.ingress.websocket.recent import Recent
from proxy.stores import make_store
from tests.support.stored import RESPONSE, SECOND


async def test_it_comes_before_the_store_and_gives_way_to_it() -> None:
    async with make_store("memory") as store:
        await store.save(RESPONSE)
        near = Recent(store)
        near.add(replace(RESPONSE, created_at=2))
        assert await near.load("resp_1", "me") == replace(RESPONSE, created_at=2)
        assert await near.find_item("msg_2", "me") == RESPONSE.output[0]
        near.forget("resp_1")
        near.forget("resp_1")
        assert await near.load("resp_1", "me") == RESPONSE
        assert await near.find_item("msg_1", "me") == RESPONSE.input[0]
        assert await near.items("conv_x", "me") is None


@pytest.mark.parametrize(("name", "limit"), [("MAX_RESPONSES", 1), ("MAX_BYTES", 100)])
async def test_the_oldest_goes_first_when_there_is_too_much(
    monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    monkeypatch.setattr(recent, name, limit)
    async with make_store("memory") as store:
        near = Recent(store)
        near.add(RESPONSE)
        near.add(SECOND)
        assert await near.load("resp_1", "me") is None
        assert await near.load("resp_2", "me") == SECOND
