"""The page's routes: who may ask, what they show with and without --inspect, and the turns as they happen."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from parser import write_call
from proxy.contracts import Prompt
from proxy.errors import BackendError
from proxy.ingress.inspect import PageOptions
from proxy.ingress.inspect.page import FILES
from proxy.replay.key_placeholder import PLACEHOLDER, key_of
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import client, error_of
from tests.support.memory_backend import MemoryBackend
from tests.support.patience import PATIENCE
from tests.support.sockets import talk

BROWSER = {"Accept": "text/html,application/xhtml+xml", "Sec-Fetch-Mode": "navigate", "User-Agent": "Obsidian/1.9"}
TOOLS = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]
BODY: dict[str, Any] = {"model": "m", "input": "What is in a.md?", "tools": TOOLS}


def keyed_call(prompt: Prompt) -> str:
    return write_call("read_note", '{"path": "a.md"}', key=key_of(prompt.developer))


def repaired_call(prompt: Prompt) -> str:
    return keyed_call(prompt).replace('"a.md"}', '"a.md",}')


async def turns(session: aiohttp.ClientSession, url: str) -> list[dict[str, Any]]:
    async with session.get(url.replace("/v1", "/inspect/turns")) as response:
        assert response.status == 200
        found: list[dict[str, Any]] = (await response.json())["turns"]
        return found


async def detail(session: aiohttp.ClientSession, url: str, turn: str) -> dict[str, Any]:
    async with session.get(url.replace("/v1", f"/inspect/turns/{turn}")) as response:
        found: dict[str, Any] = await response.json()
        return found


async def test_a_browser_gets_the_page_and_any_other_client_what_it_always_got() -> None:
    async with client() as (session, url):
        root = url.removesuffix("v1")
        async with session.get(root) as response:
            assert (await response.text()).startswith("tagcall is running.")
            assert response.content_type == "text/plain"
        async with session.get(root, headers=BROWSER | {"Sec-Fetch-Site": "cross-site"}) as response:
            assert response.status == 200
            page = await response.text()
            policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "onclick" not in page
    assert "<style" not in page


async def test_its_files_come_from_the_package_and_name_no_other_address() -> None:
    async with client() as (session, url):
        for name, kind in FILES.items():
            async with session.get(url.replace("/v1", f"/inspect/{name}")) as response:
                assert (response.status, response.content_type) == (200, kind)
                text = (await response.text()).replace("http://www.w3.org/", "")
                assert "://" not in text
                assert "innerHTML" not in text
        async with session.get(url.replace("/v1", "/inspect/page.py")) as response:
            assert response.status == 404


async def test_a_tool_loop_is_one_group_whose_calls_have_marks() -> None:
    def wrong(prompt: Prompt) -> str:
        return write_call("burn_note", "{}", key=key_of(prompt.developer)) + "No."

    async with client(keyed_call, repaired_call, wrong, "Other.", "Hi.", store="memory", inspect=True) as (
        session,
        url,
    ):
        said: list[Any] = [{"role": "user", "content": BODY["input"]}]
        for _ in range(3):
            async with session.post(url + "/responses", json=BODY | {"input": said}) as response:
                answer = await response.json()
                said += answer["output"]
                said += [
                    {"type": "function_call_output", "call_id": item["call_id"], "output": "x"}
                    for item in answer["output"]
                    if item["type"] == "function_call"
                ]
        async with session.post(url + "/responses", json={"model": "m", "input": "hi"}):
            pass
        newest, *loop = await turns(session, url)
    assert len({turn["group"] for turn in loop}) == 1
    assert newest["group"] != loop[0]["group"]
    marks = [[(call["mark"], call["name"]) for call in turn["calls"]] for turn in reversed(loop)]
    assert marks == [[("valid", "read_note")], [("repaired", "read_note")], [("refused", "burn_note")]]
    assert loop[1]["calls"][0]["why"] == ["trailing comma"]
    assert loop[0]["calls"][0]["why"] == ["burn_note is not among the tools that were offered"]
    assert [turn["state"] for turn in loop] == ["done"] * 3
    assert loop[0]["input_tokens"] == 100


async def test_without_inspect_no_word_of_anybody_is_kept() -> None:
    async with client(keyed_call) as (session, url):
        async with session.post(url + "/responses", json=BODY) as response:
            assert response.status == 200
        [turn] = await turns(session, url)
        full = await detail(session, url, turn["id"])
    assert "a.md" not in json.dumps(full)
    assert full == turn | {"dropped": False}


async def test_turns_are_found_by_their_words_as_far_as_they_are_kept() -> None:
    for kept in (True, False):
        async with client("Only beans.", "Nothing.", inspect=kept) as (session, url):
            for asked in ("Was ist in B\u00e4umen.md?", "And now?"):
                async with session.post(url + "/responses", json={"model": "m", "input": asked}):
                    pass
            for words, count in (("b\u00e4umen", kept), ("ONLY", kept), ("no such", 0), ("", 2), ("answered", 2)):
                async with session.get(url.replace("/v1", "/inspect/turns"), params={"words": words}) as response:
                    found = (await response.json())["turns"]
                assert len(found) == count, words


async def test_a_turn_whose_client_cut_an_emoji_is_shown() -> None:
    async with client("Hello", inspect=True) as (session, url):
        body, kind = rb'{"model": "m", "input": "half \ud83d"}', {"Content-Type": "application/json"}
        async with session.post(url + "/responses", data=body, headers=kind) as response:
            assert response.status == 200
        [turn] = await turns(session, url)
        assert (await detail(session, url, turn["id"]))["asked"]["input"] == "half \ufffd"


async def test_with_it_a_turn_has_its_four_columns_and_no_call_key() -> None:
    keys: list[str | None] = []

    def told(prompt: Prompt) -> str:
        keys.append(key_of(prompt.developer))
        return f"The key is {keys[0]}.\n" + keyed_call(prompt)

    async with client(told, inspect=True) as (session, url):
        async with session.post(url + "/responses", json=BODY | {"stream": True}) as response:
            await response.read()
        [turn] = await turns(session, url)
        full = await detail(session, url, turn["id"])
    assert full["asked"]["input"] == BODY["input"]
    [answer] = full["answers"]
    assert [message["role"] for message in answer["prompt"]] == ["developer", "user"]
    assert "read_note" in answer["prompt"][0]["text"]
    assert "<tool_call>" in answer["wrote"]
    assert full["blocks"][0]["block"] in answer["wrote"]
    names = [row["name"] for row in full["left"]]
    assert "response.output_text.delta" in names
    assert names[-1] == "response.completed"
    [key] = {key for key in keys if key}
    assert key not in json.dumps(full)
    assert PLACEHOLDER in answer["wrote"]


async def test_a_turn_on_a_socket_shows_what_was_asked_there() -> None:
    async with client("Hi.", "Ho.", inspect=True) as (session, url):
        async with talk(url, "/responses") as socket:
            await socket.say("response.create", model="m", input="What is in a.md?", tools=TOOLS)
            await socket.hear_until("response.completed")
        async with talk(url, "/realtime?model=m") as socket:
            said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And in b.md?"}]}
            await socket.say("conversation.item.create", item=said)
            await socket.say("response.create", response={"instructions": "Be short."})
            await socket.hear_until("response.done")
        realtime, responses = [await detail(session, url, turn["id"]) for turn in await turns(session, url)]
    assert (responses["method"], responses["path"]) == ("WS", "/responses")
    assert responses["asked"] == {"model": "m", "input": "What is in a.md?", "tools": TOOLS}
    assert realtime["asked"]["items"][0]["content"] == said["content"]
    assert realtime["asked"]["response"] == {"instructions": "Be short."}


async def test_what_left_is_whole_from_its_opening_on() -> None:
    async with client("Hi.", inspect=True) as (session, url):
        async with session.post(url + "/responses", json=BODY | {"stream": True}) as response:
            told = [line[7:] for line in (await response.text()).splitlines() if line.startswith("event: ")]
        [turn] = await turns(session, url)
        full = await detail(session, url, turn["id"])
    assert [row["name"] for row in full["left"] for _ in range(row["count"])] == told


async def test_a_turn_that_failed_says_why() -> None:
    async with client(BackendError("no", code="usage_limit_reached", status=429)) as (session, url):
        async with session.post(url + "/responses", json=BODY) as response:
            assert response.status == 429
        [turn] = await turns(session, url)
    assert (turn["state"], turn["error"]) == ("failed", "usage_limit_reached")


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in response.content:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


async def until(found: AsyncIterator[dict[str, Any]], count: int) -> AsyncIterator[dict[str, Any]]:
    """The first so many."""
    async with asyncio.timeout(PATIENCE):
        for _ in range(count):
            yield await anext(found)


async def test_who_follows_sees_a_turn_begin_and_end() -> None:
    async with client("Hi.", "Ho.") as (session, url):
        async with session.post(url + "/responses", json=BODY):
            pass
        async with asyncio.timeout(PATIENCE), session.get(url.replace("/v1", "/inspect/events")) as stream:
            seen = events(stream)
            assert (await anext(seen))["state"] == "done"
            async with session.post(url + "/responses", json=BODY):
                pass
            states = [(await anext(seen))["state"]]
            while states[-1] != "done":
                states.append((await anext(seen))["state"])


async def test_who_follows_does_not_keep_a_server_from_stopping() -> None:
    backend = MemoryBackend([])
    async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE):
        async with running_server(Settings(port=0), backend) as url:
            stream = await session.get(url.replace("/v1", "/inspect/events"))
        assert (await stream.read()).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "app://obsidian.md"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
])  # fmt: skip
async def test_pages_of_others_see_nothing(headers: dict[str, str]) -> None:
    async with client() as (session, url):
        for path in ("state", "turns", "events", "page.js"):
            async with session.get(url.replace("/v1", f"/inspect/{path}"), headers=headers) as response:
                assert response.status == 403
                assert "Access-Control-Allow-Credentials" not in response.headers


async def test_a_foreign_host_is_refused() -> None:
    async with client() as (session, url):
        async with session.get(url.replace("/v1", "/inspect/turns"), headers={"Host": "evil.example"}) as response:
            assert response.status == 421


async def test_what_does_something_wants_the_exact_origin() -> None:
    async with client() as (session, url):
        root = url.removesuffix("/v1")
        for origin, status in ((None, 403), (root.replace("127.0.0.1", "localhost"), 403), (root, 200)):
            headers = {} if origin is None else {"Origin": origin}
            async with session.post(root + "/inspect/session", headers=headers) as response:
                assert response.status == status


async def test_with_a_key_the_page_wants_the_key_or_its_link_which_holds_once() -> None:
    backend = MemoryBackend(["Hi."])
    settings, page = Settings(port=0, api_key=("secret",)), PageOptions(link="once")
    async with running_server(settings, backend, page=page) as url, aiohttp.ClientSession() as anyone:
        root = url.removesuffix("/v1")
        async with anyone.get(root, headers=BROWSER) as response:
            assert response.status == 200
        for path in ("state", "turns", "events"):
            async with anyone.get(f"{root}/inspect/{path}") as response:
                assert response.status == 401
        async with anyone.get(root + "/inspect/turns", headers={"Authorization": "Bearer secret"}) as response:
            assert response.status == 200
        origin = {"Origin": root}
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            async with session.post(root + "/inspect/session", headers={**origin, "X-Tagcall-Link": "once"}) as opened:
                assert opened.status == 200
                cookie = opened.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert "secret" not in cookie
            assert "once" not in cookie
            async with session.get(root + "/inspect/turns") as response:
                assert response.status == 200
            # It opens nothing but the page.
            async with session.get(url + "/models") as response:
                assert response.status == 401
        for given in ({"X-Tagcall-Link": "once"}, {"Authorization": "Bearer wrong"}, {}):
            async with anyone.post(root + "/inspect/session", headers={**origin, **given}) as response:
                assert response.status == 401
                await error_of(response)
        async with anyone.post(
            root + "/inspect/session", headers={**origin, "Authorization": "Bearer secret"}
        ) as response:
            assert response.status == 200


async def test_a_key_shows_what_was_asked_with_it_and_the_inspect_key_shows_all() -> None:
    backend = MemoryBackend(["One.", "Two.", "Three."])
    settings = Settings(port=0, store="memory", inspect=True, api_key=("a", "b"), inspect_key="all")
    async with running_server(settings, backend) as url, aiohttp.ClientSession() as anyone:
        root = url.removesuffix("/v1")
        bearer = {key: {"Authorization": f"Bearer {key}"} for key in ("a", "b", "all")}
        for key in ("a", "b"):
            async with anyone.post(url + "/responses", json=BODY, headers=bearer[key]) as response:
                assert response.status == 200
        seen: dict[str, list[str]] = {}
        for key, headers in bearer.items():
            async with anyone.post(root + "/inspect/session", headers={"Origin": root, **headers}) as opened:
                cookie = opened.headers["Set-Cookie"].partition(";")[0]
            for proof in (headers, {"Cookie": cookie}):
                async with anyone.get(root + "/inspect/turns", headers=proof) as response:
                    seen[key] = [turn["id"] for turn in (await response.json())["turns"]]
                async with anyone.get(root + "/inspect/events", headers=proof) as response:
                    told = [event["id"] async for event in until(events(response), len(seen[key]))]
                assert sorted(told) == sorted(seen[key])
        assert [len(seen[key]) for key in ("a", "b", "all")] == [1, 1, 2]
        assert set(seen["all"]) == {*seen["a"], *seen["b"]}
        (his,) = seen["a"]
        for path in ("", "/lines", "/fixture"):
            async with anyone.get(f"{root}/inspect/turns/{his}{path}", headers=bearer["b"]) as response:
                assert response.status == 404
        address = f"{root}/inspect/turns/{his}/again"
        async with anyone.post(address, headers={"Origin": root, **bearer["b"]}) as response:
            assert response.status == 404
        # It opens nothing but the page.
        async with anyone.get(url + "/models", headers=bearer["all"]) as response:
            assert response.status == 401


async def test_an_inspect_key_alone_locks_the_page_and_nothing_else() -> None:
    async with client("One.", inspect_key="all") as (session, url):
        async with session.post(url + "/responses", json=BODY) as response:
            assert response.status == 200
        turns_at = url.replace("/v1", "/inspect/turns")
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer x"}, 401),
            ({"Authorization": "Bearer all"}, 200),
        ):
            async with session.get(turns_at, headers=headers) as response:
                assert response.status == status


async def test_many_long_turns_take_no_more_memory_than_they_may() -> None:
    size = 4 << 20
    answers = ["w" * 100_000] * 120
    backend = MemoryBackend([*answers], chunk=5_000)
    settings = Settings(port=0, store="memory", inspect=True, inspect_bytes=size, log_level="error")
    async with running_server(settings, backend) as url, aiohttp.ClientSession() as session:
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for number in range(len(answers)):
                body = {"model": "m", "stream": True, "input": f"{number} " + "q" * 50_000}
                async with session.post(url + "/responses", json=body | {"store": False}) as response:
                    await response.read()
                backend.prompts.clear()
            gc.collect()
            taken = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        found = await turns(session, url)
    assert len(found) == 100
    assert 0 < sum(turn["words"] for turn in found) < 100
    # What else a server keeps is little.
    assert taken < size + (2 << 20)
