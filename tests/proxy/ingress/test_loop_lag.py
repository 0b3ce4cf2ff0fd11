from __future__ import annotations

from structlog.testing import capture_logs

from proxy.ingress.loop_lag import SILENCE, TOO_LATE, LoopLag
from tests.support.http_client import client


class Seen(list[float]):
    def observe(self, amount: float, /) -> None:
        self.append(amount)


def test_a_loop_that_is_held_up_is_warned_of_now_and_then() -> None:
    seen = Seen()
    lag = LoopLag(seen)
    with capture_logs() as logs:
        for seconds, now in ((0.0, 0.0), (TOO_LATE, 1.0), (0.3, 2.0), (0.4, 3.0), (0.5, 3.0 + SILENCE)):
            lag.late(seconds, now)
    assert seen == [0.0, TOO_LATE, 0.3, 0.4, 0.5]
    assert [entry["seconds"] for entry in logs] == [0.3, 0.5]
    assert {entry["log_level"] for entry in logs} == {"warning"}


async def test_a_server_tells_how_late_its_loop_is() -> None:
    async with client() as (session, url):
        async with session.get(url.removesuffix("/v1") + "/metrics") as response:
            assert "tagcall_loop_lag_seconds_bucket" in await response.text()
