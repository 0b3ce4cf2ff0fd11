"""What a key may use in a minute: what is refused, what is told, and whom it does not touch."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import RateLimitError

from proxy.api_keys import ApiKey
from proxy.contracts import Load, Usage
from proxy.errors import RequestError
from proxy.ingress.key_ring import KeyRing, digest_of
from proxy.ingress.rate_limits import RateLimits
from proxy.quota import MAIN_LIMIT, Quota, QuotaWindow
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import client, error_of
from tests.support.memory_backend import USAGE, MemoryBackend
from tests.support.sdk import openai_client

ADA, BOB = digest_of("sk-ada"), digest_of("sk-bob")
BODY: dict[str, Any] = {"model": "m", "input": "hi"}
TAKEN = USAGE.input_tokens + USAGE.output_tokens


class Watch:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_what_is_left_fills_up_evenly() -> None:
    watch = Watch()
    limits = RateLimits(KeyRing([ApiKey("sk-ada", requests=2), ApiKey("sk-bob")]), watch)
    for _ in range(2):
        limits.take(ADA)
    with pytest.raises(RequestError) as caught:
        limits.take(ADA)
    assert (caught.value.status, caught.value.type, caught.value.code) == (429, "requests", "rate_limit_exceeded")
    assert caught.value.headers()["retry-after"] == "30"
    assert "Limit 2, Used 2, Requested 1. Please try again in 30s" in caught.value.message
    limits.take(BOB)
    watch.now += 30
    limits.take(ADA)
    with pytest.raises(RequestError):
        limits.take(ADA)
    watch.now += 3600
    for _ in range(2):
        limits.take(ADA)
    with pytest.raises(RequestError):
        limits.take(ADA)


def test_tokens_are_counted_when_a_turn_is_over_and_the_next_ones_wait_for_them() -> None:
    watch = Watch()
    limits = RateLimits(KeyRing([ApiKey("sk-ada", tokens=600)]), watch)
    limits.take(ADA)
    limits.spend(ADA, Usage(input_tokens=1100, output_tokens=100))
    assert limits.headers(ADA) == {
        "x-ratelimit-limit-tokens": "600",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "2m0s",
    }
    with pytest.raises(RequestError) as caught:
        limits.take(ADA)
    assert caught.value.type == "tokens"
    watch.now += 61
    limits.take(ADA)


def test_other_limits_hold_as_soon_as_they_are_read() -> None:
    ring = KeyRing([ApiKey("sk-ada", requests=1)])
    limits = RateLimits(ring, Watch())
    limits.take(ADA)
    ring.replace([ApiKey("sk-ada", requests=3)])
    for _ in range(2):
        limits.take(ADA)
    with pytest.raises(RequestError):
        limits.take(ADA)
    ring.replace([ApiKey("sk-ada")])
    limits.take(ADA)
    assert limits.headers(ADA) == {}


def quota(left: int, resets_at: int | None = 100, limit: str = MAIN_LIMIT) -> Quota:
    windows = (QuotaWindow("primary", 100 - left, 300, resets_at), QuotaWindow("secondary", 10, 10080, None))
    return Quota(limit, windows, told_at=0)


@pytest.mark.parametrize(
    ("left", "told"),
    [
        (57, ("100", "57", "4h0m5s")),
        (40, ("100", "40", "4h0m5s")),
        (80, ("4", "3", "15s")),
    ],
    ids=["of the quota", "much less of it", "of the key"],
)
def test_what_is_nearer_its_end_is_told_the_backends_quota_or_the_keys_own_limit(
    left: int, told: tuple[str, str, str]
) -> None:
    limits = RateLimits(KeyRing([ApiKey("sk-ada", requests=4)]), Watch())
    limits.take(ADA)
    headers = limits.headers(ADA, [quota(left, 14505), quota(1, limit="other")], now=100)
    names = ("limit", "remaining", "reset")
    assert tuple(headers[f"x-ratelimit-{name}-requests"] for name in names) == told


def test_a_quota_is_told_every_key_without_its_end_where_that_is_not_known() -> None:
    limits = RateLimits(KeyRing([]), Watch())
    assert limits.headers("anybody", [quota(0, None)]) == {
        "x-ratelimit-limit-requests": "100",
        "x-ratelimit-remaining-requests": "0",
    }
    assert limits.headers("anybody", [quota(1, limit="other")]) == {}


async def test_an_answer_says_how_long_the_backends_quota_lasts() -> None:
    class Limited(MemoryBackend):
        def load(self) -> Load:
            return Load(0, starts=1, interrupts=0, quota=(quota(57, int(time.time()) + 3600),))

    async with running_server(Settings(port=0), Limited(["Hi."])) as url, aiohttp.ClientSession() as session:
        async with session.post(f"{url}/responses", json=BODY) as response:
            told = response.headers
    assert (told["x-ratelimit-limit-requests"], told["x-ratelimit-remaining-requests"]) == ("100", "57")
    # Nobody waits a minute for the answer of a test.
    assert re.fullmatch(r"1h0m0s|59m[\d.]+s", told["x-ratelimit-reset-requests"])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("proxy.ingress.rate_limits.MINUTE", 1e9)  # nothing comes back meanwhile
    file = tmp_path / "keys"
    file.write_text(f"ada=sk-ada requests=3 tokens={2 * TAKEN}\nbob=sk-bob\n")
    return file


async def test_a_key_over_its_limit_is_told_in_openais_form_and_no_other_is(file: Path) -> None:
    async with client(*["Hi."] * 4, api_key_file=file, store="memory") as (session, url):

        async def ask(key: str, path: str = "responses", **body: Any) -> tuple[int, Any]:
            headers = {"Authorization": f"Bearer {key}"}
            async with session.post(f"{url}/{path}", json={"model": "m", **body}, headers=headers) as response:
                return response.status, {
                    name: value for name, value in response.headers.items() if name.startswith("x-ratelimit")
                }

        status, told = await ask("sk-ada", input="hi")
        assert (status, told["x-ratelimit-limit-requests"], told["x-ratelimit-remaining-requests"]) == (200, "3", "2")
        assert told["x-ratelimit-remaining-tokens"] == "120"
        messages = [{"role": "user", "content": "hi"}]
        status, told = await ask("sk-ada", "chat/completions", messages=messages)
        assert (status, told["x-ratelimit-remaining-requests"]) == (200, "1")
        assert told["x-ratelimit-remaining-tokens"] == "0"
        for path, body in (("responses", {"background": True}), ("responses", {"stream": True})):
            async with session.post(
                f"{url}/{path}", json={**BODY, **body}, headers={"Authorization": "Bearer sk-ada"}
            ) as response:
                assert response.status == 429
                assert (await error_of(response))["type"] == "tokens"
                assert int(response.headers["retry-after"]) >= 1
        assert await ask("sk-bob", input="hi") == (200, {})
        async with openai_client(url, "sk-ada") as openai:
            with pytest.raises(RateLimitError):
                await openai.responses.create(model="m", input="hi")
            await openai.models.list()


async def test_a_socket_is_held_to_the_limit_as_well(file: Path) -> None:
    file.write_text("ada=sk-ada requests=1\n")
    async with client("Hi.", api_key_file=file, store="memory") as (session, url):
        headers = {"Authorization": "Bearer sk-ada"}
        async with session.ws_connect(f"{url}/responses", headers=headers) as socket:
            kinds = []
            for _ in range(2):
                await socket.send_json({"type": "response.create", **BODY})
                async for frame in socket:
                    assert frame.type is aiohttp.WSMsgType.TEXT
                    event = frame.json()
                    if event["type"] in {"response.completed", "error"}:
                        kinds.append((event["type"], event.get("status")))
                        break
    assert kinds == [("response.completed", None), ("error", 429)]
