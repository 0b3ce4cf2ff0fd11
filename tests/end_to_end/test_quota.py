"""What is left of the quota: from the headers of a model's answer through the real program to whoever asks."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from parser import write_call
from proxy.backends import Finding
from proxy.cli.doctor import examine
from proxy.replay.key_placeholder import key_of
from proxy.settings import Settings
from tests.support.backends import BACKENDS_UNDER_TEST, TestBackend
from tests.support.remembered_tools import remember_tools
from tests.support.scripted_model import Message, Refusal, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_server

PROGRAMS = [backend for backend in BACKENDS_UNDER_TEST if backend.codex is not None]

RESETS_AT = int(time.time()) + 3600
HEADERS = {
    "x-codex-primary-used-percent": "43",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": str(RESETS_AT),
    "x-codex-secondary-used-percent": "17",
    "x-codex-secondary-window-minutes": "10080",
    "x-codex-secondary-reset-at": str(RESETS_AT + 86400),
}
NO_CREDITS = {"x-codex-credits-has-credits": "false", "x-codex-credits-unlimited": "false"}
USED_UP = Refusal(
    429,
    {"type": "usage_limit_reached", "message": "The usage limit has been reached"},
    {**HEADERS, **NO_CREDITS, "x-codex-primary-used-percent": "100"},
)


@pytest.fixture(autouse=True)
def _known_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    remember_tools(monkeypatch)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def ask(session: aiohttp.ClientSession, url: str) -> int:
    async with session.post(url + "/responses", json={"model": "gpt-5.5", "input": "hi"}) as response:
        await response.read()
        return response.status


async def told(session: aiohttp.ClientSession, url: str) -> list[dict[str, Any]]:
    async with session.get(url.removesuffix("/v1") + "/inspect/state") as response:
        quota: list[dict[str, Any]] = (await response.json())["quota"]
        return quota


async def samples(session: aiohttp.ClientSession, url: str) -> dict[str, float]:
    async with session.get(url.removesuffix("/v1") + "/metrics") as response:
        lines = [line.rsplit(" ", 1) for line in (await response.text()).splitlines()]
    return {name: float(value) for name, value in lines if name.startswith("tagcall_quota_")}


@pytest.mark.parametrize("stack", PROGRAMS, ids=lambda stack: stack.name)
async def test_what_an_answers_headers_tell_is_json_and_metrics(
    model: ScriptedModel, stack: TestBackend, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    model.push(Reply([Message("one")], headers=HEADERS), Reply([Message("two")]), USED_UP)
    async with tagcall_server(model, tmp_path / "home", stack) as url:
        assert await told(session, url) == []
        assert await samples(session, url) == {}
        for _ in range(2):  # an answer that tells nothing takes nothing away
            assert await ask(session, url) == 200
            [quota] = await told(session, url)
            assert (quota["limit"], quota["exhausted"], quota["credits"]) == ("codex", False, None)
            assert [(window["name"], window["left_percent"], window["minutes"]) for window in quota["windows"]] == [
                ("primary", 57, 300),
                ("secondary", 83, 10080),
            ]
        found = await samples(session, url)
        assert found['tagcall_quota_left_ratio{limit="codex",window="primary"}'] == 0.57
        assert found['tagcall_quota_resets_timestamp_seconds{limit="codex",window="primary"}'] == RESETS_AT
        assert found['tagcall_quota_exhausted{limit="codex"}'] == 0
        assert time.time() - found['tagcall_quota_told_timestamp_seconds{limit="codex"}'] < 3600
        assert await ask(session, url) == 429
        assert [quota["exhausted"] for quota in await told(session, url)] == [True]
        assert (await samples(session, url))['tagcall_quota_exhausted{limit="codex"}'] == 1


def calling(body: Any, headers: dict[str, str]) -> Reply:
    """What `doctor` asks for, with the key that stands in the request."""
    return Reply([Message(write_call("read", '{"note": "welcome.md"}', key=key_of(str(body))))], headers=headers)


async def examined(model: ScriptedModel, home: Path, **settings: Any) -> list[Finding]:
    chosen = Settings(
        port=0, store="none", model=("gpt-5.5",), **BACKENDS_UNDER_TEST[0].settings(model, home), **settings
    )
    return [finding async for finding in examine(chosen)]


async def test_doctor_tells_what_is_left(model: ScriptedModel, tmp_path: Path) -> None:
    model.choose = lambda body: calling(body, HEADERS)
    findings = await examined(model, tmp_path / "home", call_key_secret=tmp_path / "key")
    assert [finding.name for finding in findings][-2:] == ["turn", "quota"]
    assert findings[-2].good, findings[-2]
    assert findings[-1].good
    assert findings[-1].said.startswith("57 % left of 5 hours (until ")


async def test_doctor_says_nothing_of_a_quota_where_there_is_none(model: ScriptedModel, tmp_path: Path) -> None:
    model.choose = lambda body: calling(body, {})
    findings = await examined(model, tmp_path / "home", call_key_secret=tmp_path / "key")
    assert findings[-1].name == "turn"


async def test_a_quota_that_is_used_up_is_red(model: ScriptedModel, tmp_path: Path) -> None:
    model.default = USED_UP
    findings = await examined(model, tmp_path / "home", call_key_secret=tmp_path / "key")
    assert [(finding.name, finding.good) for finding in findings][-2:] == [("turn", False), ("quota", False)]
    assert findings[-1].remedy == "Wait until the quota is renewed, or use another backend."
