"""Chat Completions as clients meet them, in front of a backend in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest
from openai import APIError, AsyncOpenAI, BadRequestError, RateLimitError

from parser import write_call
from proxy.contracts import ReasoningEnded, ReasoningPiece, TextPiece, TurnEnded
from proxy.errors import BackendError
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import client, error_of
from tests.support.memory_backend import USAGE, MemoryBackend, Script
from tests.support.sdk import openai_client
from tests.support.talking import shown

READ = {"name": "read_note", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
TOOLS: list[Any] = [{"type": "function", "function": READ}]
ASK: Any = {"role": "user", "content": "What is in a.md?"}
BODY: dict[str, Any] = {"model": "m", "messages": [ASK]}
CALLS = "I look.\n" + write_call("read_note", '{"path": "a.md"}') + "\n" + write_call("read_note", '{"path": "b.md"}')


class FailingBackend(MemoryBackend):
    """Says one word and fails."""

    @asynccontextmanager
    async def stream(self, prompt: object) -> AsyncIterator[Any]:
        async def batches() -> AsyncIterator[Any]:
            yield [TextPiece("word")]
            raise BackendError("The backend went away.", code="backend_gone")

        yield batches()


@asynccontextmanager
async def talking(*answers: Script, **settings: Any) -> AsyncIterator[tuple[AsyncOpenAI, MemoryBackend]]:
    backend = MemoryBackend(list(answers), chunk=3)
    async with (
        running_server(Settings(port=0, **settings), backend) as url,
        openai_client(url, "any") as openai,
    ):
        yield openai, backend


async def streamed(openai: AsyncOpenAI, **members: Any) -> Any:
    async with openai.chat.completions.stream(model="m", messages=[ASK], **members) as stream:
        return await stream.get_final_completion()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_tool_loop_goes_round(stream: bool) -> None:
    async with talking(CALLS, "Both are empty.") as (openai, backend):
        if stream:
            first = await streamed(openai, tools=TOOLS)
        else:
            first = await openai.chat.completions.create(model="m", messages=[ASK], tools=TOOLS)
        message = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls"
        assert message.content.strip() == "I look."
        assert [call.function.arguments for call in message.tool_calls] == ['{"path": "a.md"}', '{"path": "b.md"}']
        results: list[Any] = [
            {"role": "tool", "tool_call_id": call.id, "content": f"result {number}"}
            for number, call in enumerate(message.tool_calls)
        ]
        kept = message.model_dump()
        second = await openai.chat.completions.create(model="m", messages=[ASK, kept, *results], tools=TOOLS)
    assert second.choices[0].message.content == "Both are empty."
    assert second.choices[0].finish_reason == "stop"
    text = shown(backend)
    assert text.index("What is in a.md?") < text.index("I look.") < text.index("result 0") < text.index("result 1")


async def test_a_tool_may_have_as_long_a_name_as_mcp_clients_make() -> None:
    name = "mcp__plugin_everything_github__create_pull_request_review".ljust(128, "_")
    tools: list[Any] = [{"type": "function", "function": {**READ, "name": name}}]
    async with talking(write_call(name, '{"path": "a.md"}')) as (openai, _):
        completion = await openai.chat.completions.create(model="m", messages=[ASK], tools=tools)
    message: Any = completion.choices[0].message
    [call] = message.tool_calls
    assert (call.function.name, call.function.arguments) == (name, '{"path": "a.md"}')


async def test_the_older_form_of_calls_goes_round() -> None:
    async with talking(CALLS, "It is empty.") as (openai, backend):
        first = await openai.chat.completions.create(model="m", messages=[ASK], functions=[READ])  # type: ignore[list-item]  # a dict is what people send
        choice = first.choices[0]
        assert choice.finish_reason == "function_call"
        assert choice.message.function_call is not None
        assert choice.message.function_call.arguments == '{"path": "a.md"}'
        assert choice.message.tool_calls is None
        messages: list[Any] = [
            ASK,
            choice.message.model_dump(),
            {"role": "function", "name": "read_note", "content": "R"},
        ]
        second = await openai.chat.completions.create(model="m", messages=messages)
    assert second.choices[0].message.content == "It is empty."
    assert "R" in shown(backend)


async def test_a_call_can_leave_while_it_is_written() -> None:
    async with talking(CALLS, calls="live") as (openai, _):
        stream = await openai.chat.completions.create(model="m", messages=[ASK], tools=TOOLS, stream=True)
        calls = [call async for chunk in stream for call in chunk.choices[0].delta.tool_calls or ()]
    pieces = [call.function.arguments for call in calls if call.index == 0 and call.function]
    assert len(pieces) > 2
    assert "".join(piece or "" for piece in pieces) == '{"path": "a.md"}'
    assert [(call.index, call.function and call.function.name) for call in calls if call.id] == [
        (0, "read_note"), (1, "read_note"),
    ]  # fmt: skip


async def test_a_stream_is_chunks_and_one_done() -> None:
    async with client("Hello", CALLS) as (session, url):
        for tools in ([], TOOLS):
            async with session.post(
                f"{url}/chat/completions", json={**BODY, "stream": True, "tools": tools}
            ) as response:
                assert response.content_type == "text/event-stream"
                blocks = (await response.text()).split("\n\n")
            assert blocks[-2:] == ["data: [DONE]", ""]
            chunks = [orjson.loads(block.removeprefix("data: ")) for block in blocks[:-2]]
            assert all(len(chunk["choices"]) == 1 for chunk in chunks)
            assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1


async def test_the_answer_keeps_to_its_limits() -> None:
    async with talking("one END two", "word " * 100, '{"a": 1}') as (openai, backend):
        stopped = await streamed(openai, stop=["", "END"])
        assert (stopped.choices[0].message.content, stopped.choices[0].finish_reason) == ("one ", "stop")
        cut = await openai.chat.completions.create(model="m", messages=[ASK], max_tokens=5)
        assert cut.choices[0].finish_reason == "length"
        assert 0 < len(cut.choices[0].message.content or "") < 100
        form: Any = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
        completion = await openai.chat.completions.create(model="m", messages=[ASK], response_format=form)
    assert completion.choices[0].message.content == '{"a": 1}'
    assert backend.prompts[2].output_schema == '{"type":"object"}'


async def test_usage_comes_when_it_is_asked_for() -> None:
    async with talking("Hello") as (openai, _):
        completion = await streamed(openai, stream_options={"include_usage": True})
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (100, 20)


async def test_a_backend_error_before_the_first_chunk_is_an_http_error() -> None:
    error = BackendError("Slow down.", status=429, code="rate_limit_exceeded", retry_after=3)
    async with talking(error, error) as (openai, _):
        for stream in (True, False):
            with pytest.raises(RateLimitError, match="Slow down"):
                await openai.chat.completions.create(model="m", messages=[ASK], stream=stream)


async def test_a_failure_in_mid_stream_is_told_and_the_stream_is_ended() -> None:
    """For clients that wait for `[DONE]` and for those that look for an error alike."""
    async with running_server(Settings(port=0), FailingBackend([])) as url:
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{url}/chat/completions", json={**BODY, "stream": True}) as response:
                *_, failed, done, _ = (await response.text()).split("\n\n")
        assert orjson.loads(failed.removeprefix("data: ")) == {
            "error": {
                "message": "The backend went away.",
                "type": "server_error",
                "param": None,
                "code": "backend_gone",
            }
        }
        assert done == "data: [DONE]"
        async with openai_client(url, "any") as openai:
            with pytest.raises(APIError, match="The backend went away"):
                await streamed(openai)


async def test_a_bad_request_is_openais_error() -> None:
    async with talking() as (openai, _):
        with pytest.raises(BadRequestError, match="must be a response to a preceeding message"):
            await openai.chat.completions.create(
                model="m", messages=[ASK, {"role": "tool", "tool_call_id": "call_1", "content": "x"}]
            )


@pytest.mark.parametrize(("told", "expected"), [(True, "Think."), (False, None)])
async def test_reasoning_is_told_by_option(told: bool, expected: str | None) -> None:
    script: Script = [ReasoningPiece(0, "Think."), ReasoningEnded(), TextPiece("Hello"), TurnEnded(USAGE)]
    async with talking(script, reasoning_content=told) as (openai, backend):
        completion = await openai.chat.completions.create(model="m", messages=[ASK])
    assert (completion.choices[0].message.model_extra or {}).get("reasoning_content") == expected
    assert backend.prompts[0].summary == ("auto" if told else None)


async def test_an_alias_is_another_name_for_a_model_in_both_apis() -> None:
    async with talking("Hello", "Hello", alias=(("notes", "gpt-5.5"),)) as (openai, backend):
        completion = await openai.chat.completions.create(model="notes", messages=[ASK])
        response = await openai.responses.create(model="notes", input="hi")
    assert completion.model == response.model == "notes"
    assert [prompt.model for prompt in backend.prompts] == ["gpt-5.5", "gpt-5.5"]


async def read_by_line(stream: aiohttp.StreamReader) -> AsyncIterator[dict[str, Any]]:
    """As BMO: each network read is cut at line ends, and nothing is kept for the next."""
    async for piece in stream.iter_any():
        for line in piece.decode().split("\n"):
            if line == "data: [DONE]":
                return
            if line:
                yield orjson.loads(line.removeprefix("data: "))


async def read_by_cut(stream: aiohttp.StreamReader) -> AsyncIterator[dict[str, Any]]:
    """As Smart Connections: of each block, what stands behind the first `data: ` and before the next."""
    for block in (await stream.read()).decode().split("\n\n"):
        if block == "data: [DONE]":
            return
        yield orjson.loads(block.split("data: ")[1])


@pytest.mark.parametrize("read", [read_by_line, read_by_cut])
async def test_readers_written_by_hand_get_the_whole_text(read: Any) -> None:
    """All of them look for `choices[0].delta` in every chunk, as Text Generator does."""
    text = "The stream has lines `data: {}` and ends with\ndata: [DONE]\n\nThat is all."
    backend = MemoryBackend([text], chunk=7)
    async with running_server(Settings(port=0), backend) as url, aiohttp.ClientSession() as session:
        async with session.post(f"{url}/chat/completions", json={**BODY, "stream": True, "stop": ""}) as response:
            deltas = [chunk["choices"][0]["delta"] async for chunk in read(response.content)]
    assert "".join(delta.get("content", "") for delta in deltas) == text


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/chat/completions/", "//v1//chat//completions", "/v1/v1/chat/completions"]
)
async def test_every_spelling_of_the_path_is_served(path: str) -> None:
    async with client("Hello") as (session, url):
        async with session.post(url.removesuffix("/v1") + path, json=BODY) as response:
            assert response.status == 200


async def test_stored_completions_are_not_listed() -> None:
    async with client() as (session, url), session.get(f"{url}/chat/completions") as response:
        assert response.status == 405
        assert (await error_of(response))["code"] == "method_not_supported"


@pytest.mark.parametrize(
    ("path", "asked", "status"),
    [("/chat/completions", {"messages": [ASK]}, 404), ("/responses", {"input": "hi"}, 400)],
)
async def test_an_unknown_model_has_the_status_that_its_api_gives_it(
    path: str, asked: dict[str, Any], status: int
) -> None:
    gone = BackendError("The model is gone.", status=400, code="model_not_found", param="model")
    async with client(gone) as (session, url):
        async with session.post(url + path, json={"model": "m", **asked}) as response:
            assert response.status == status
            assert (await error_of(response))["code"] == "model_not_found"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_schema_that_is_none_is_named_as_this_api_names_it(stream: bool) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}}
    async with client("{}") as (session, url):
        body = {"model": "m", "messages": [ASK], "response_format": form, "stream": stream}
        async with session.post(f"{url}/chat/completions", json=body) as response:
            assert response.status == 400
            assert (await error_of(response))["param"] == "response_format"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_to_call_is_an_error_of_the_model(stream: bool) -> None:
    async with client("I would rather not.", "No.") as (session, url):
        body = {**BODY, "tools": TOOLS, "tool_choice": "required", "stream": stream}
        async with session.post(f"{url}/chat/completions", json=body) as response:
            assert response.status == 422
            error = await error_of(response)
    assert (error["code"], error["param"]) == ("tool_call_missing", "tool_choice")


@pytest.mark.parametrize(
    ("syntax", "definition"), [("regex", "[0-9]+ (cm|m)"), ("lark", 'start: INT " " ("cm" | "m")\n%import common.INT')]
)
async def test_an_input_outside_of_its_grammar_is_asked_for_once_more_and_never_passed_on(
    syntax: str, definition: str
) -> None:
    grammar = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
    tool = {"type": "custom", "custom": {"name": "cut", "format": grammar}}
    bad, good = (write_call("cut", orjson.dumps({"input": text}).decode()) for text in ("a bit", "12 cm"))
    async with client(bad, good, bad, bad) as (session, url):
        body = {"model": "m", "messages": [ASK], "tools": [tool]}
        async with session.post(f"{url}/chat/completions", json=body) as response:
            [call] = (await response.json())["choices"][0]["message"]["tool_calls"]
        assert call["custom"] == {"name": "cut", "input": "12 cm"}
        async with session.post(f"{url}/chat/completions", json=body) as response:
            assert response.status == 422
            assert (await error_of(response))["code"] == "tool_arguments_invalid"


@pytest.mark.parametrize(("syntax", "definition"), [("regex", "(?=a)a+"), ("lark", 'start: "' + "a" * 9_000 + '"')])
async def test_a_grammar_that_nothing_can_be_held_to_is_told(syntax: str, definition: str) -> None:
    grammar = {"type": "grammar", "syntax": syntax, "definition": definition}
    tool = {"type": "custom", "name": "cut", "format": grammar}
    async with client("Hello.") as (session, url):
        async with session.post(f"{url}/responses", json={"model": "m", "input": "hi", "tools": [tool]}) as response:
            assert response.status == 200
            assert "nothing checks it: cut" in response.headers["x-tagcall-warning"]
