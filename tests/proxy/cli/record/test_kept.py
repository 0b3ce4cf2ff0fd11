"""A turn that the page has kept is saved as the fixture that a recorder would have written."""

from __future__ import annotations

import io
import zipfile
from itertools import product
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from parser import write_call
from proxy.cli.record.kept import FixtureOfTurn
from proxy.cli.replay import ReplayOptions, run_replay
from proxy.contracts import Prompt
from proxy.errors import BackendError
from proxy.ingress.inspect import PageOptions
from proxy.replay.answers import load_answer
from proxy.replay.fixture import load_fixtures
from proxy.replay.key_placeholder import key_of
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import error_of
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.one_cut import replay_at_one_cut
from tests.support.sockets import talk

TOOL = {"name": "read_note", "parameters": {"type": "object"}}
RESPONSES = {"model": "m", "input": "What is in /home/jane/a.md?", "tools": [{"type": "function", **TOOL}]}
CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": RESPONSES["input"]}],
    "tools": [{"type": "function", "function": TOOL}],
}


@pytest.fixture(autouse=True)
def _at_one_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_at_one_cut(monkeypatch)


def call(prompt: Prompt) -> str:
    return "I will look it up.\n" + write_call("read_note", '{"path": "a.md"}', key=key_of(prompt.developer))


async def saved(session: aiohttp.ClientSession, url: str) -> aiohttp.ClientResponse:
    async with session.get(url.replace("/v1", "/inspect/turns")) as response:
        turn = (await response.json())["turns"][0]["id"]
    return await session.get(url.replace("/v1", f"/inspect/turns/{turn}/fixture"))


async def unpacked(response: aiohttp.ClientResponse, folder: Path) -> Path:
    assert response.status == 200, await response.text()
    with zipfile.ZipFile(io.BytesIO(await response.read())) as archive:
        archive.extractall(folder)
    return folder


def server(*answers: Script, **more: Any) -> Any:
    settings = Settings(port=0, inspect=True, store="memory", **more)
    return running_server(
        settings, MemoryBackend(list(answers), chunk=3), page=PageOptions(save=FixtureOfTurn(settings))
    )


@pytest.mark.parametrize("answer", [call, "No.", BackendError("Wait.", status=429, code="rate_limit_exceeded")])
async def test_it_replays(answer: Script, tmp_path: Path) -> None:
    every = tmp_path / "every"
    every.mkdir()
    for (path, body), stream in product((("/responses", RESPONSES), ("/chat/completions", CHAT)), (False, True)):
        async with server(answer) as url, aiohttp.ClientSession() as session:
            async with session.post(url + path, json=body | {"stream": stream}) as response:
                await response.read()
            folder = await unpacked(await saved(session, url), tmp_path / "one")
        (case,) = (folder / name for name in load_fixtures(folder))
        assert case.name == "what-is-in-home-user"
        assert load_answer(case) is not None
        assert "jane" not in "".join(file.read_text("utf-8") for file in case.iterdir())
        case.rename(every / f"{path[1:].replace('/', '-')}, {stream=}")
    assert await run_replay(every, ReplayOptions()) == 0


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("NOTES_API_KEY", "beans-and-peas", True),
        ("NOTES_ACCESS_KEY", "beans-and-peas", True),
        ("FERNET_KEY", "beans-and-peas-4", True),
        ("FERNET_KEY", "BeansAndPeas", True),
        ("SORT_KEY", "timestamp", False),
        ("OPENAI_API_KEY", "anything", False),
        ("PARTITION_KEY", "user_id.created-at", False),
        ("NOTES_TOKEN", "beans-and-peas", True),
        ("NOTES_SECRET", "beans-and-peas", True),
        ("NOTES_PASSWORD", "beans-and-peas", True),
        ("NOTES_PASSWORD", "peas", False),
        ("NOTES_PASSWORD_FILE", "beans-and-peas", False),
    ],
)
async def test_what_the_environment_calls_a_secret_is_not_in_it(
    name: str, value: str, hidden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    async with server("No.") as url, aiohttp.ClientSession() as session:
        async with session.post(
            url + "/responses", json={"model": "m", "input": f"I keep <{value}> here."}
        ) as response:
            assert response.status == 200
        folder = await unpacked(await saved(session, url), tmp_path)
    words = "".join(file.read_text("utf-8") for file in folder.rglob("*.json*"))
    assert "I keep" in words
    assert (f"<{value}>" not in words) is hidden


async def test_its_note_names_the_kind_of_backend_and_no_address(tmp_path: Path) -> None:
    async with server("No.", backend="http://10.0.0.7:9/v1") as url, aiohttp.ClientSession() as session:
        async with session.post(url + "/responses", json=RESPONSES) as response:
            assert response.status == 200
        folder = await unpacked(await saved(session, url), tmp_path)
    (recorded,) = folder.rglob("backend.jsonl")
    meta = orjson.loads(recorded.read_text("utf-8").splitlines()[0])
    assert meta["note"] == "Recorded with --backend http, version memory."


async def test_what_it_went_on_from_is_in_it(tmp_path: Path) -> None:
    async with server("One.", "Two.") as url, aiohttp.ClientSession() as session:
        async with session.post(url + "/responses", json=RESPONSES) as response:
            first = (await response.json())["id"]
        again = {"model": "m", "input": "And?", "previous_response_id": first}
        headers = {"Authorization": "Bearer somebody"}
        async with session.post(url + "/responses", json=again, headers=headers) as response:
            assert response.status == 400
        async with session.post(url + "/responses", json=again) as response:
            assert response.status == 200
        folder = await unpacked(await saved(session, url), tmp_path)
    assert await run_replay(folder, ReplayOptions()) == 0


async def test_what_makes_no_fixture_says_why() -> None:
    async with server("One.", "Two.") as url, aiohttp.ClientSession() as session:
        async with talk(url, "/responses") as socket:
            await socket.say("response.create", model="m", input="hi")
            await socket.hear_until("response.completed")
        response = await saved(session, url)
        assert response.status == 409
        assert "only what is sent to POST /v1/chat/completions" in (await error_of(response))["message"]
