"""What the page asks itself: a turn again, and a question that wants a tool."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from parser import write_call
from proxy.contracts import Prompt, TextPiece, TurnEnded
from proxy.errors import BackendError
from proxy.replay.key_placeholder import key_of
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import client, error_of
from tests.support.memory_backend import USAGE, MemoryBackend
from tests.support.sockets import talk

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
BODY = {"model": "m", "input": "hi"}


def call(prompt: Prompt) -> str:
    return write_call("read", '{"note": "welcome.md"}', key=key_of(prompt.developer))


async def turns(session: aiohttp.ClientSession, url: str) -> list[dict[str, Any]]:
    """With their words, newest first."""
    root = url.replace("/v1", "/inspect/turns")
    async with session.get(root) as response:
        ids = [turn["id"] for turn in (await response.json())["turns"]]
    found = []
    for turn in ids:
        async with session.get(f"{root}/{turn}") as response:
            found.append(await response.json())
    return found


async def press(session: aiohttp.ClientSession, url: str, path: str, **headers: str) -> Any:
    root = url.removesuffix("/v1")
    async with session.post(f"{root}/inspect/{path}", headers={"Origin": root, **headers}) as response:
        assert response.status == 200, await response.text()
        return await response.json()


@pytest.mark.parametrize(("path", "body"), [("/responses", BODY), ("/chat/completions", CHAT)])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_is_asked_again(path: str, body: dict[str, Any], stream: bool) -> None:
    backend = MemoryBackend(["One.", "Two."])
    async with running_server(Settings(port=0, store="memory", inspect=True), backend) as url:
        async with aiohttp.ClientSession() as session:
            async with session.post(url + path, json=body | {"stream": stream}) as response:
                await response.read()
            [first] = await turns(session, url)
            told = await press(session, url, f"turns/{first['id']}/again")
            again, first = await turns(session, url)
    assert told == {"turns": [again["id"]], "problem": None}
    assert (again["repeats"], first["repeats"]) == (first["id"], None)
    assert (again["client"], again["path"], again["state"]) == ("this page", path, "done")
    assert again["answers"][0]["prompt"] == first["answers"][0]["prompt"]
    assert again["answers"][0]["wrote"] == "Two."
    assert [row["name"] for row in again["left"]] == [row["name"] for row in first["left"]]


async def test_it_is_asked_as_whoever_asked_and_nothing_of_it_is_stored() -> None:
    backend = MemoryBackend(["One.", "Two.", "Three."])
    settings = Settings(port=0, store="memory", inspect=True, api_key=("his", "mine"), inspect_key="mine")
    async with running_server(settings, backend) as url, aiohttp.ClientSession() as session:
        his, mine = {"Authorization": "Bearer his"}, {"Authorization": "Bearer mine"}
        async with session.post(url + "/responses", json=BODY, headers=his) as response:
            first = (await response.json())["id"]
        body = BODY | {"previous_response_id": first}
        async with session.post(url + "/responses", json=body, headers=his) as response:
            await response.read()
        async with session.get(url.replace("/v1", "/inspect/turns"), headers=mine) as response:
            turn = (await response.json())["turns"][0]["id"]
        told = await press(session, url, f"turns/{turn}/again", **mine)
        async with session.get(url.replace("/v1", f"/inspect/turns/{told['turns'][0]}"), headers=mine) as response:
            again = await response.json()
        made = next(row["data"]["response"]["id"] for row in again["left"] if row["name"] == "response.completed")
        for headers in (his, mine):
            async with session.get(f"{url}/responses/{made}", headers=headers) as response:
                assert response.status == 404
    assert again["answers"][0]["wrote"] == "Three."


async def test_a_turn_is_asked_again_in_other_words() -> None:
    backend = MemoryBackend(["One.", "Two."])
    async with running_server(Settings(port=0, store="memory", inspect=True), backend) as url:
        root = url.removesuffix("/v1")
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{url}/responses", json=BODY):
                pass
            [first] = await turns(session, url)
            path, headers = f"{root}/inspect/turns/{first['id']}/again", {"Origin": root}
            async with session.post(path, json=BODY | {"input": "Say two."}, headers=headers) as response:
                assert response.status == 200
            again, _ = await turns(session, url)
            async with session.post(path, data=b"no JSON", headers=headers) as response:
                assert response.status == 400
    assert again["answers"][0]["wrote"] == "Two."
    assert again["answers"][0]["prompt"][-1]["text"] == "Say two."


async def test_other_words_are_asked_as_whoever_looks_on() -> None:
    settings = Settings(port=0, store="memory", inspect=True, api_key=("his", "mine"), inspect_key="mine")
    async with running_server(settings, MemoryBackend(["One.", "Two."])) as url, aiohttp.ClientSession() as session:
        his, mine = {"Authorization": "Bearer his"}, {"Authorization": "Bearer mine"}
        async with session.post(f"{url}/responses", json=BODY, headers=his) as response:
            first = (await response.json())["id"]
        root = url.removesuffix("/v1")
        async with session.get(f"{root}/inspect/turns", headers=mine) as response:
            (turn,) = (await response.json())["turns"]
        body = BODY | {"previous_response_id": first}
        headers = mine | {"Origin": root}
        async with session.post(f"{root}/inspect/turns/{turn['id']}/again", json=body, headers=headers) as response:
            told = await response.json()
    assert "not found" in told["problem"], "what is stored for another is not his to go on with"


async def test_a_turn_that_cannot_be_asked_again_says_why() -> None:
    async with client("One.", inspect=True) as (session, url):
        async with talk(url, "/realtime?model=m") as socket:
            await socket.say("response.create", response={"instructions": "Say hi."})
            await socket.hear_until("response.done")
        [turn] = await turns(session, url)
        root = url.removesuffix("/v1")
        async with session.post(f"{root}/inspect/turns/{turn['id']}/again", headers={"Origin": root}) as response:
            assert response.status == 409
            assert (await error_of(response))["code"] == "turn_not_usable"


async def test_a_failure_to_ask_again_is_told() -> None:
    refused = BackendError("Wait.", status=429, code="rate_limit_exceeded")
    async with client("One.", refused, inspect=True) as (session, url):
        async with session.post(url + "/responses", json=BODY):
            pass
        [turn] = await turns(session, url)
        told = await press(session, url, f"turns/{turn['id']}/again")
        again, _ = await turns(session, url)
    assert told == {"turns": [again["id"]], "problem": "Wait."}
    assert again["state"] == "failed"


async def test_what_the_page_asks_wants_its_origin() -> None:
    async with client(inspect=True) as (session, url):
        for path in ("trial", "turns/x/again"):
            async with session.post(url.replace("/v1", f"/inspect/{path}")) as response:
                assert response.status == 403


async def test_the_test_question_is_a_whole_tool_loop() -> None:
    async with client(call, "In May.", inspect=True) as (session, url):
        told = await press(session, url, "trial")
        answered, called = await turns(session, url)
    assert told["good"] is True
    assert told["said"].startswith("scripted called a tool in ")
    assert told["turns"] == [called["id"], answered["id"]]
    assert called["group"] == answered["group"]
    assert [each["mark"] for each in called["calls"]] == ["valid"]
    assert "[tool:" in answered["answers"][0]["prompt"][-1]["text"]
    assert answered["answers"][0]["wrote"] == "In May."


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (BackendError("The quota is used up.", status=429, code="insufficient_quota"), "Wait until the quota"),
        (BackendError("codex is not logged in.", status=502, code="backend_auth"), "Log in again"),
    ],
)
async def test_a_test_question_that_fails_says_what_to_do(error: BackendError, remedy: str) -> None:
    async with client(error) as (session, url):
        told = await press(session, url, "trial")
    assert told["good"] is False
    assert told["said"] == f"scripted did not call a tool: {error.message}"
    assert told["remedy"].startswith(remedy)


async def test_a_test_question_whose_answer_is_cut_says_so() -> None:
    half = TextPiece('<tool_call>{"name": "read", "arguments": {"note": "wel')
    async with client([half, TurnEnded(USAGE, "max_output_tokens")]) as (session, url):
        told = await press(session, url, "trial")
    assert told["good"] is False
    assert told["said"] == "scripted did not call a tool: its server cut the answer at a limit of tokens"
    assert told["remedy"].startswith("Raise the server's limit")
