from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from aiohttp import web
from structlog.testing import capture_logs

from proxy.ingress.loop_lag import INTERVAL, SILENCE, TOO_LATE, LoopLag
from tests.support.http_client import client
from tests.support.virtual_clock import VirtualClockLoop, on_a_virtual_clock


class Seen(list[float]):
    def observe(self, amount: float, /) -> None:
        self.append(round(amount, 2))


@on_a_virtual_clock
async def test_a_loop_that_is_held_up_is_late_and_warned_of_now_and_then() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualClockLoop)
    seen = Seen()
    with capture_logs() as logs:
        async with asynccontextmanager(LoopLag(seen).run)(web.Application()):
            for late, wait in ((TOO_LATE - 0.05, 0.0), (0.3, 0.0), (0.4, 0.0), (0.5, SILENCE)):
                await asyncio.sleep(wait + INTERVAL * 1.5)
                loop.jump(late + INTERVAL / 2)
            await asyncio.sleep(INTERVAL)
    assert [late for late in seen if late] == [TOO_LATE - 0.05, 0.3, 0.4, 0.5]
    assert len(seen) >= SILENCE / INTERVAL
    assert [entry["seconds"] for entry in logs] == [0.3, 0.5]
    assert {entry["log_level"] for entry in logs} == {"warning"}


async def test_a_server_tells_how_late_its_loop_is() -> None:
    async with client() as (session, url):
        async with session.get(url.removesuffix("/v1") + "/metrics") as response:
            assert "tagcall_loop_lag_seconds_bucket" in await response.text()
