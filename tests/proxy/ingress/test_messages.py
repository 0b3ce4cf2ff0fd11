"""Anthropic's Messages over HTTP, in front of a backend in memory."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from parser import write_call
from proxy.contracts import TextPiece, TurnEnded, Usage
from proxy.errors import TOO_LONG, BackendError
from proxy.ingress.messages import NO_SEARCH
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import client
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.messages_grammar import checked, events_of

VERSION = {"anthropic-version": "2023-06-01"}
TOOLS = [{"name": "read_note", "description": "Reads a note.", "input_schema": {"type": "object"}}]
BODY: dict[str, Any] = {
    "model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "What is in a?"}], "tools": TOOLS,
}  # fmt: skip
CALL = write_call("read_note", '{"path": "a.md"}')
OTHER = write_call("read_note", '{"path": "b \\u00e9.md"}')
ANSWER = f"I look, as `<tool>` says.\n{CALL}\n{OTHER}"


async def streamed(session: aiohttp.ClientSession, url: str, **members: Any) -> dict[str, Any]:
    async with session.post(f"{url}/messages?beta=true", json={**BODY, "stream": True, **members}) as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        assert response.headers["request-id"] == response.headers["x-request-id"]
        return checked(events_of(await response.read()))


async def test_a_deferred_tool_that_is_called_before_it_is_found_is_searched_for() -> None:
    search = {"name": "find_tools", "description": "Finds tools.", "input_schema": {"type": "object"}}
    tools = [search, {**TOOLS[0], "defer_loading": True}]
    async with client(f"I read it. {CALL}", write_call("find_tools", '{"query": "read_note"}')) as (session, url):
        message = await streamed(session, url, tools=tools)
    assert [block.get("name", block.get("text")) for block in message["content"]] == ["I read it. ", "find_tools"]
    assert message["stop_reason"] == "tool_use"


async def refused(session: aiohttp.ClientSession, url: str, status: int, **request: Any) -> dict[str, Any]:
    """The error of a refused request."""
    async with session.post(url, **request) as response:
        assert response.status == status
        body = await response.json()
    assert set(body) == {"type", "error", "request_id"}
    assert (body["type"], body["request_id"]) == ("error", response.headers["request-id"])
    error: dict[str, Any] = body["error"]
    return error


@pytest.mark.parametrize("path", ["/v1/messages", "/messages", "/v1/v1/messages", "/v1/messages?beta=true"])
async def test_it_is_served_however_the_base_url_ends(path: str) -> None:
    async with client("Hello") as (session, url):
        async with session.post(url.removesuffix("/v1") + path, json=BODY) as response:
            assert response.status == 200
            message = await response.json()
    assert message["content"] == [{"type": "text", "text": "Hello", "citations": None}]
    assert (message["role"], message["stop_reason"], message["model"]) == ("assistant", "end_turn", "m")


async def test_a_stream_and_a_message_say_the_same() -> None:
    async with client(ANSWER, ANSWER, call_key="off") as (session, url):
        streamed_message = await streamed(session, url)
        async with session.post(f"{url}/messages", json=BODY) as response:
            message = await response.json()
    for each in (message, streamed_message):
        del each["id"]
        for block in each["content"]:
            assert block.pop("id", "toolu_").startswith("toolu_")
    assert streamed_message == message
    assert [block["type"] for block in message["content"]] == ["text", "tool_use", "tool_use"]
    assert message["content"][2]["input"] == {"path": "b é.md"}
    assert message["stop_reason"] == "tool_use"


async def test_how_the_models_text_is_cut_does_not_show() -> None:
    end = TurnEnded(Usage(1, 0, 1))
    scripts: list[Script] = [[TextPiece(ANSWER[:at]), TextPiece(ANSWER[at:]), end] for at in range(1, len(ANSWER))]
    async with client(*scripts, call_key="off") as (session, url):
        told = [await streamed(session, url) for _ in scripts]
    for message in told:
        del message["id"]
        for block in message["content"]:
            block.pop("id", None)
    assert all(message == told[0] for message in told)
    assert len(told[0]["content"]) == 3


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_pieces_of_any_size_are_the_same_message(size: int) -> None:
    backend = MemoryBackend([ANSWER], chunk=size)
    async with running_server(Settings(port=0, store="none", call_key="off"), backend) as url:
        async with aiohttp.ClientSession() as session:
            message = await streamed(session, url)
    assert [block["type"] for block in message["content"]] == ["text", "tool_use", "tool_use"]


async def test_a_loop_goes_on_with_its_results() -> None:
    backend = MemoryBackend([write_call("read_note", '{"path": "a"}'), "It says beans."])
    async with running_server(Settings(port=0, store="none", call_key="off"), backend) as url:
        async with aiohttp.ClientSession() as session:
            called = await streamed(session, url)
            result = {"type": "tool_result", "tool_use_id": called["content"][0]["id"], "content": "beans"}
            messages = [
                *BODY["messages"],
                {"role": "assistant", "content": called["content"]},
                {"role": "user", "content": [result]},
            ]
            answer = await streamed(session, url, messages=messages)
    assert answer["content"][0]["text"] == "It says beans."
    assert called["content"][0]["id"] in str(backend.prompts[1].parts)


@pytest.mark.parametrize("header", ["Authorization", "x-api-key"])
async def test_either_kind_of_key_is_taken(header: str) -> None:
    async with client("Hello", api_key=("secret",)) as (session, url):
        key = "Bearer secret" if header == "Authorization" else "secret"
        async with session.post(f"{url}/messages", json=BODY, headers={header: key}) as response:
            assert response.status == 200
        error = await refused(session, f"{url}/messages", 401, json=BODY)
        assert error["type"] == "authentication_error"


@pytest.mark.parametrize(
    ("error", "status", "kind", "words"),
    [
        (BackendError("Slow down.", status=429, retry_after=3), 429, "rate_limit_error", "Slow down."),
        (BackendError("Full.", status=503, retry_after=3), 529, "overloaded_error", "Full."),
        (BackendError("Gone."), 502, "api_error", "Gone."),
        (BackendError("None.", status=400, code="model_not_found"), 404, "not_found_error", "None."),
        (BackendError(TOO_LONG, status=400), 400, "invalid_request_error", "prompt is too long"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_backend_that_refuses_is_an_http_error(
    error: BackendError, status: int, kind: str, words: str, stream: bool
) -> None:
    async with client(error) as (session, url):
        told = await refused(session, f"{url}/messages", status, json={**BODY, "stream": stream})
    assert told["type"] == kind
    assert words in told["message"]


async def test_a_model_that_does_not_do_what_it_must_is_no_fault_of_the_server() -> None:
    body = {**BODY, "tool_choice": {"type": "any"}}
    async with client("Hello.", "Hello.") as (session, url):
        told = await refused(session, f"{url}/messages", 422, json=body)
    assert told["type"] == "invalid_request_error"
    assert "call" in told["message"]


async def test_a_failure_in_mid_stream_is_an_error_event() -> None:
    async with client([TextPiece("I lo"), BackendError("Gone.", status=503)]) as (session, url):
        message = await streamed(session, url, tools=[])
    assert message["error"] == {"type": "overloaded_error", "message": "Gone."}


async def test_what_is_wrong_with_a_request_is_told_in_anthropics_form() -> None:
    async with client("Hello") as (session, url):
        await refused(session, f"{url}/messages", 400, json={"model": "m"})
        await refused(session, f"{url}/messages", 400, data=b"{", headers={"Content-Type": "application/json"})
        await refused(session, f"{url}/messages", 415, data=b"{}")
        await refused(session, f"{url}/messages/batches", 404, json={})
        await refused(session, f"{url}/nothing", 404, json={}, headers=VERSION)
        async with session.get(f"{url}/messages") as response:
            assert (response.status, (await response.json())["error"]["type"]) == (405, "invalid_request_error")


async def test_tokens_are_counted_without_a_turn() -> None:
    backend = MemoryBackend([])
    counts = []
    async with running_server(Settings(port=0, store="none"), backend) as url, aiohttp.ClientSession() as session:
        body = {name: value for name, value in BODY.items() if name != "max_tokens"}
        more: list[dict[str, Any]] = [{"tools": []}, {}, {"system": "Be kind. " * 100}]
        for members in more:
            async with session.post(f"{url}/messages/count_tokens?beta=true", json={**body, **members}) as response:
                assert response.status == 200
                told = await response.json()
            assert list(told) == ["input_tokens"]
            counts.append(told["input_tokens"])
    assert counts == sorted(set(counts))
    assert backend.prompts == []


async def test_the_models_are_in_the_form_of_who_asks() -> None:
    async with client() as (session, url):
        async with session.get(f"{url}/models") as response:
            assert (await response.json())["object"] == "list"
        async with session.get(f"{url}/models?limit=1000", headers=VERSION) as response:
            listed = await response.json()
        name = listed["first_id"]
        assert listed["data"][0]["type"] == "model"
        async with session.get(f"{url}/models/{name}", headers=VERSION) as response:
            assert (await response.json())["id"] == name
        async with session.get(f"{url}/models/nobody", headers=VERSION) as response:
            assert (response.status, (await response.json())["error"]["type"]) == (404, "not_found_error")


async def test_a_tool_that_is_not_offered_is_told() -> None:
    async with client("Hello") as (session, url):
        tools = [{"type": "web_search_20250305", "name": "web_search"}]
        async with session.post(f"{url}/messages", json={**BODY, "tools": tools}) as response:
            assert "web_search_20250305" in response.headers["x-tagcall-warning"]


@pytest.mark.parametrize("kind", ["a\0b", "a\nb: c", "é", "x" * 70_000])
async def test_a_type_that_no_header_can_carry_is_not_told_by_its_name(kind: str) -> None:
    async with client("Hello") as (session, url):
        tools = [{"type": kind, "name": "a"}, {"type": "advisor_20260301", "name": "b"}]
        async with session.post(f"{url}/messages", json={**BODY, "tools": tools}) as response:
            told = response.headers["x-tagcall-warning"]
    assert told.endswith("can run it: a type that is none, advisor_20260301.")


async def test_a_warning_is_no_longer_than_clients_read() -> None:
    async with client("Hello") as (session, url):
        tools = [{"type": f"{'x' * 60}_{number}", "name": "a"} for number in range(1000)]
        async with session.post(f"{url}/messages", json={**BODY, "tools": tools}) as response:
            assert response.status == 200
            assert 1000 < len(response.headers["x-tagcall-warning"]) <= 2000


VERDICT = {
    "model": "claude-sonnet-5", "max_tokens": 64, "stop_sequences": ["</block>"], "thinking": {"type": "disabled"},
    "system": "Judge the command.", "messages": [{"role": "user", "content": "rm -rf /"}],
}  # fmt: skip


async def test_a_verdict_on_a_command_ends_at_its_stop_sequence_and_is_left_as_it_is() -> None:
    async with client("<block>yes</block><reason>It is `<tool_call>`.") as (session, url):
        async with session.post(f"{url}/messages", json=VERDICT) as response:
            assert response.status == 200
            message = await response.json()
    assert [block["text"] for block in message["content"]] == ["<block>yes"]
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "</block>")
    assert message["model"] == "claude-sonnet-5"


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"auto_mode": "refuse"}, 403),
        ({"profile": "small"}, 403),
        ({"profile": "small", "auto_mode": "serve"}, 200),
        ({"auto_mode": "serve"}, 200),
    ],
)
async def test_whether_commands_are_judged_is_the_owners_choice(settings: dict[str, Any], status: int) -> None:
    async with client("<block>no", "Hello", **settings) as (session, url):
        async with session.post(f"{url}/messages", json=VERDICT) as response:
            assert response.status == status
            if status == 403:
                assert (await response.json())["error"]["type"] == "permission_error"
        async with session.post(f"{url}/messages", json=BODY) as response:
            assert response.status == 200


async def test_claude_code_is_told_that_nothing_searches_the_web_and_others_get_an_answer_without() -> None:
    asked = {**BODY, "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}]}
    async with client("From memory.") as (session, url):
        headers = {"X-Claude-Code-Session-Id": "s"}
        async with session.post(f"{url}/messages", json=asked, headers=headers) as response:
            assert response.status == 400
            assert (await response.json())["error"]["message"] == NO_SEARCH
        async with session.post(f"{url}/messages", json=asked) as response:
            assert response.status == 200
            assert "web_search_20250305" in response.headers["x-tagcall-warning"]


async def test_a_name_of_anthropics_is_answered_by_the_model_that_stands_for_it() -> None:
    backend = MemoryBackend(["Hello", "Hello"])
    settings = Settings(port=0, store="none", alias=(("*haiku*", "little"),))
    async with running_server(settings, backend) as url, aiohttp.ClientSession() as session:
        for model in ("claude-opus-5[1m]", "claude-haiku-5"):
            message = await streamed(session, url, model=model, tools=[])
            assert message["model"] == model
    first = (await backend.models())[0].id
    assert [prompt.model for prompt in backend.prompts] == [first, "little"]


async def test_no_tokens_at_all_ask_for_nothing_but_a_warm_cache() -> None:
    backend = MemoryBackend(["Hello", "Hello"])
    async with running_server(Settings(port=0, store="none"), backend) as url, aiohttp.ClientSession() as session:
        message = await streamed(session, url, max_tokens=0, tools=[])
        async with session.post(f"{url}/messages", json={**BODY, "max_tokens": 0}) as response:
            whole = await response.json()
    for each in (message, whole):
        assert (each["content"], each["stop_reason"]) == ([], "max_tokens")
    assert len(backend.prompts) == 2


async def test_the_page_shows_a_message_and_may_ask_it_again() -> None:
    async with client("Hello", "Hello again", inspect=True) as (session, url):
        message = await streamed(session, url, tools=[])
        page = url.removesuffix("/v1")
        headers = {"Origin": page}
        async with session.get(f"{page}/inspect/turns") as response:
            (turn,) = (await response.json())["turns"]
        async with session.get(f"{page}/inspect/turns/{turn['id']}") as response:
            shown = await response.json()
        assert turn["path"] == "/messages"
        assert "Hello" in str(shown["left"])
        async with session.post(f"{page}/inspect/turns/{turn['id']}/again", headers=headers) as response:
            again = await response.json()
        assert (len(again["turns"]), again["problem"]) == (1, None)
    assert message["content"][0]["text"] == "Hello"
