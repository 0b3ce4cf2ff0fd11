"""Ollama's API over HTTP, in front of a backend in memory: read by its official Python client, and by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from ollama import AsyncClient, ResponseError

from parser import write_call
from prompts import Text
from proxy.contracts import TextPiece, TurnEnded, Usage
from proxy.errors import BackendError, UsageError
from proxy.ingress.ollama import NO_EMBEDDINGS, UNMANAGED
from proxy.server import bind, running_server
from proxy.settings import Settings
from tests.support.http_client import client
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.ports import free_port

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "read_note",
        "description": "Reads a note.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}
QUESTION: dict[str, Any] = {"role": "user", "content": "What is in a and b?"}
CALLS = write_call("read_note", '{"path": "a.md"}') + "\n" + write_call("read_note", '{"path": "b \\u00e9.md"}')
ANSWER = f"I look.\n{CALLS}"
# What Home Assistant sends with each request.
OPTIONS = {"num_ctx": 8192, "temperature": 0.2, "top_k": 40}


async def lines(session: aiohttp.ClientSession, url: str, path: str = "chat", **body: Any) -> list[dict[str, Any]]:
    """The lines of a stream. None is blank, and each is JSON."""
    async with session.post(f"{root(url)}/api/{path}", json={"model": "m", **body}) as response:
        assert (response.status, response.content_type) == (200, "application/x-ndjson")
        text = (await response.read()).decode()
    assert text.endswith("\n")
    return [json.loads(line) for line in text[:-1].split("\n")]


def root(url: str) -> str:
    return url.removesuffix("/v1")


def added_up(told: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a host makes of the lines."""
    message: dict[str, Any] = {"content": "", "tool_calls": []}
    for line in told:
        assert line["message"]["role"] == "assistant"
        message["content"] += line["message"]["content"]
        message["tool_calls"] += line["message"].get("tool_calls", [])
    assert [line["done"] for line in told] == [False] * (len(told) - 1) + [True]
    return message


async def test_a_stream_has_whole_calls_in_one_line_and_ends_with_what_it_took() -> None:
    async with client(ANSWER, call_key="off") as (session, url):
        told = await lines(session, url, messages=[QUESTION], tools=[TOOL], options=OPTIONS, keep_alive="5m")
    message = added_up(told)
    assert message["content"] == "I look.\n"
    assert [call["function"] for call in message["tool_calls"]] == [
        {"index": 0, "name": "read_note", "arguments": {"path": "a.md"}},
        {"index": 1, "name": "read_note", "arguments": {"path": "b é.md"}},
    ]
    assert sum("tool_calls" in line["message"] for line in told) == 1
    last = told[-1]
    assert last["done_reason"] == "stop"
    assert all(last[name] > 0 for name in last if name.endswith("_duration"))


async def test_how_the_models_text_is_cut_does_not_show() -> None:
    end = TurnEnded(Usage(1, 0, 1))
    scripts: list[Script] = [[TextPiece(ANSWER[:at]), TextPiece(ANSWER[at:]), end] for at in range(1, len(ANSWER))]
    async with client(*scripts, call_key="off") as (session, url):
        told = [added_up(await lines(session, url, messages=[QUESTION], tools=[TOOL])) for _ in scripts]
    assert all(message == told[0] for message in told)


@pytest.mark.parametrize("named", [{}, {"tool_name": "read_note"}, {"tool_call_id": True}])
async def test_results_find_their_calls_with_ids_names_or_nothing(named: dict[str, Any]) -> None:
    async with answering(ANSWER, "Both are empty.") as (session, url, backend):
        message = added_up(await lines(session, url, messages=[QUESTION], tools=[TOOL]))
        results = [
            {"role": "tool", "content": f"note {number}", **named}
            | ({"tool_call_id": call["id"]} if "tool_call_id" in named else {})
            for number, call in enumerate(message["tool_calls"])
        ]
        calls = message["tool_calls"]
        if "tool_call_id" not in named:  # as the Python client sends them back
            calls = [{"function": {name: call["function"][name] for name in ("name", "arguments")}} for call in calls]
        history = [QUESTION, {"role": "assistant", "content": "I look.", "tool_calls": calls}, *results]
        await lines(session, url, messages=history, tools=[TOOL])
    shown = [part.text for item in backend.prompts[-1].items for part in item.parts if isinstance(part, Text)]
    assert [text for text in shown if text.startswith("[tool:")] == ["[tool:call_0_0] note 0", "[tool:call_0_1] note 1"]


@asynccontextmanager
async def answering(*answers: str) -> AsyncIterator[tuple[aiohttp.ClientSession, str, MemoryBackend]]:
    backend = MemoryBackend(list(answers))
    settings = Settings(port=0, call_key="off")
    async with running_server(settings, backend=backend) as url, aiohttp.ClientSession() as session:
        yield session, url, backend


async def test_the_python_client_goes_through_a_whole_loop_streamed_and_not() -> None:
    answers = (ANSWER, "Both are empty.") * 2
    async with client(*answers, call_key="off") as (_, url), AsyncClient(host=root(url)) as asks:
        for stream in (True, False):
            messages: list[Any] = [QUESTION]
            while True:
                text = ""
                calls: list[Any] = []
                if stream:
                    async for part in await asks.chat(model="m", messages=messages, tools=[TOOL], stream=True):
                        text += part.message.content or ""
                        calls += part.message.tool_calls or []
                else:
                    whole = await asks.chat(model="m:latest", messages=messages, tools=[TOOL])
                    text, calls = whole.message.content or "", list(whole.message.tool_calls or [])
                if not calls:
                    break
                messages.append({"role": "assistant", "content": text, "tool_calls": calls})
                messages += [{"role": "tool", "content": "(empty)", "tool_name": call.function.name} for call in calls]
            assert text == "Both are empty."
            assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool"]


async def test_the_python_client_reads_each_line_end_that_a_model_writes() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\rj\nk"
    call = write_call("read_note", json.dumps({"path": text}, ensure_ascii=False))
    async with client(text, call, call_key="off") as (_, url), AsyncClient(host=root(url)) as asks:
        told = [part.message async for part in await asks.chat(model="m", messages=[QUESTION], stream=True)]
        assert "".join(message.content or "" for message in told) == text
        told = [
            part.message async for part in await asks.chat(model="m", messages=[QUESTION], tools=[TOOL], stream=True)
        ]
        assert [made.function.arguments for message in told for made in message.tool_calls or []] == [{"path": text}]


async def test_hosts_find_models_that_have_tools_and_a_context() -> None:
    async with client() as (session, url), AsyncClient(host=root(url)) as asks:
        (model,) = (await asks.list()).models
        assert model.model is not None
        shown = await asks.show(model.model)
        assert shown.capabilities == ["completion", "tools"]
        assert shown.modelinfo is not None
        assert shown.modelinfo["tagcall.context_length"] > 0
        assert [each.model for each in (await asks.ps()).models] == [model.model]
        assert (await asks.pull(f"{model.model}:latest")).status == "success"
        with pytest.raises(ResponseError, match="file does not exist"):
            await asks.pull("unknown")
        with pytest.raises(ResponseError, match="does not exist") as unknown:
            await asks.show("unknown")
        assert unknown.value.status_code == 404
        async with session.get(f"{root(url)}/api/version") as response:
            version = (await response.json())["version"]
        assert [part.isdecimal() for part in version.split(".")] == [True] * 3
        async with session.head(root(url) + "/") as response:
            assert response.status == 200


async def test_a_prompt_alone_is_answered_and_insertion_is_refused() -> None:
    async with client("A title", "A title") as (session, url):
        told = await lines(session, url, "generate", prompt="Name this note.", system="Be short.")
        assert "".join(line["response"] for line in told) == "A title"
        assert (told[-1]["done"], told[-1]["context"]) == (True, [])
        body = {"model": "m", "prompt": "Name this note.", "stream": False, "raw": True}
        async with session.post(f"{root(url)}/api/generate", json=body) as response:
            assert (await response.json())["response"] == "A title"
            assert response.headers["x-tagcall-warning"] == "Without effect here: raw."
        body = {"model": "m", "prompt": "a", "suffix": "b"}
        async with session.post(f"{root(url)}/api/generate", json=body) as response:
            assert (response.status, await response.json()) == (400, {"error": "m does not support insert"})


@pytest.mark.parametrize(("path", "body"), [("chat", {"messages": []}), ("generate", {"prompt": ""})])
async def test_a_request_that_asks_nothing_says_that_the_model_is_ready(path: str, body: dict[str, Any]) -> None:
    async with client() as (session, url):
        for keep, reason in ((300, "load"), (0, "unload")):
            asked = {"model": "m", "keep_alive": keep, **body}
            async with session.post(f"{root(url)}/api/{path}", json=asked) as response:
                told = await response.json()
            assert (told["done"], told["done_reason"]) == (True, reason)


async def test_json_beside_a_tool_demands_the_call_that_the_message_names() -> None:
    message = {"role": "user", "content": 'Look it up.\nUse the "read_note" tool.'}
    async with client("no call", write_call("read_note", '{"path": "a.md"}'), call_key="off") as (session, url):
        told = await lines(session, url, messages=[message], tools=[TOOL], format="json")
    assert [call["function"]["name"] for call in added_up(told)["tool_calls"]] == ["read_note"]


KINDS = pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain;charset=UTF-8", ""])


@KINDS
async def test_a_body_without_its_type_is_read_as_curl_sends_it(kind: str) -> None:
    """`curl -d` calls it a form, a `fetch` of Node text, and Python's requests nothing."""
    async with client("Hello.", "Hello.") as (session, url):
        for path, asked in (("chat", {"messages": [QUESTION]}), ("generate", {"prompt": "Hi"})):
            body = json.dumps({"model": "m", **asked})
            async with session.post(f"{root(url)}/api/{path}", data=body, headers={"Content-Type": kind}) as response:
                assert response.status == 200


@KINDS
@pytest.mark.parametrize(
    ("page", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        # Pages that are allowed can say what they send.
        ({"Origin": "http://localhost"}, 415),
        ({"origin": "app://obsidian.md"}, 415),
        ({"Sec-Fetch-Site": "same-origin"}, 415),
        ({"Sec-Fetch-Site": "none"}, 415),
    ],
)
async def test_no_page_begins_a_turn_by_a_request_for_which_its_browser_does_not_ask_first(
    kind: str, page: dict[str, str], status: int
) -> None:
    backend = MemoryBackend(["Hello."])
    async with running_server(Settings(port=0), backend) as url, aiohttp.ClientSession() as session:
        body = json.dumps({"model": "m", "messages": [QUESTION]})
        headers = {"Content-Type": kind, **page}
        async with session.post(f"{root(url)}/api/chat", data=body, headers=headers) as response:
            assert response.status == status
            assert (await response.json()).keys() == {"error"}
    assert not backend.prompts


async def test_errors_are_sentences_before_a_stream_and_in_it() -> None:
    gone = BackendError("The model is gone.", code="backend_disconnected")
    async with client([TextPiece("I "), gone], gone) as (session, url):
        told = await lines(session, url, messages=[QUESTION])
        assert told[-1] == {"error": "The model is gone."}
        async with session.post(f"{root(url)}/api/chat", json={"model": "m", "messages": [QUESTION]}) as response:
            assert (response.status, await response.json()) == (502, {"error": "The model is gone."})
        for method, path, status, said in (
            ("POST", "chat", 400, "model"), ("POST", "create", 403, UNMANAGED), ("DELETE", "delete", 403, UNMANAGED),
            ("POST", "embed", 403, NO_EMBEDDINGS), ("GET", "chat", 405, "GET"), ("GET", "nothing", 404, "/nothing"),
        ):  # fmt: skip
            async with session.request(method, f"{root(url)}/api/{path}", json={}) as response:
                assert response.status == status
                body = await response.json()
                assert set(body) == {"error"}
                assert said in body["error"]


async def test_a_model_that_does_not_do_what_it_must_is_no_fault_of_the_server() -> None:
    body = {"model": "m", "messages": [QUESTION], "tools": [TOOL], "format": "json"}
    async with client("Hello.", "Hello.") as (session, url):
        async with session.post(f"{root(url)}/api/chat", json=body) as response:
            assert response.status == 422
            assert "call" in (await response.json())["error"]


async def test_it_listens_on_ollamas_own_port_as_well() -> None:
    port = free_port()
    settings = Settings(port=0, also_port=(port,))
    async with (
        running_server(settings, MemoryBackend(["Hello"])),
        AsyncClient(host=f"http://127.0.0.1:{port}") as asks,
    ):
        assert (await asks.chat(model="m", messages=[QUESTION])).message.content == "Hello"
        with pytest.raises(UsageError, match=r"port \d+ \(.*\)"):
            bind(settings, port)
