"""Real servers of a model that only writes text: the official client, tagcall, llama.cpp's own HTTP server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import orjson
import pytest
from openai import APIStatusError, AsyncOpenAI

from parser import write_call
from proxy.cli.doctor import run_doctor
from proxy.server import running_server
from proxy.settings import Settings
from proxy.trial import QUESTION
from tests.support.librarian import ROUNDS
from tests.support.llama_server import LlamaServer, llama_server
from tests.support.patience import PATIENCE
from tests.support.responses_grammar import check_events
from tests.support.tiny_gguf import STRICT_TEMPLATE, THINKING_TEMPLATE, Endless, write_tiny_gguf
from tests.support.vault import ANSWER, CALLS, SAID, Session, Way

from .clients import openai_python

pytestmark = [
    pytest.mark.llama,
    pytest.mark.skipif(
        find_spec("xllamacpp") is None and os.environ.get("TAGCALL_TEST_LLAMA") != "required",
        reason="llama.cpp's server is not installed: `make test-llama` installs it",
    ),
]

# What the model knows by heart: the vault's conversation, by words of its results. Where the conversation is one text,
# further lines of a result stand two spaces to the right.
TEXTS: dict[str, str | Endless] = {
    "Write on": Endless("one two three four five six seven eight nine ten "),
    "Think first": "<think>\nLet me see.\n</think>\n\nIt is done.",
    "Think no further": f"I read it.\n{write_call('read_note', '{}')}",
    "Alpha.md\nProjekte": ROUNDS[1].written,
    "Alpha.md\n  Projekte": ROUNDS[1].written,
    "waits for [[": ROUNDS[2].written,
    "#done\n#pro": ROUNDS[3].written,
    "#done\n  #pro": ROUNDS[3].written,
    "] Projekte": ROUNDS[4].written,
    "): Projekte": ROUNDS[4].written,
    "friday": ROUNDS[5].written,
    # Doctor's trial bounds no string, and in one a random model may come upon the text above that never ends.
    QUESTION: '{"calls": [{"name": "read", "arguments": {"note": "welcome.md"}}]}',
}
TOOL: Any = {"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}


@pytest.fixture(scope="session")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_tiny_gguf(path, TEXTS, ROUNDS[0].written)
    return path


@pytest.fixture
async def llama(gguf: Path) -> AsyncIterator[LlamaServer]:
    async with llama_server(gguf) as server:
        yield server


@asynccontextmanager
async def serving(llama: LlamaServer, **settings: Any) -> AsyncIterator[str]:
    async with running_server(Settings(port=0, backend=llama.url, store="memory", **settings)) as url:
        yield url


@asynccontextmanager
async def talking(llama: LlamaServer, **settings: Any) -> AsyncIterator[AsyncOpenAI]:
    async with (
        serving(llama, **settings) as url,
        AsyncOpenAI(base_url=url, api_key="any", max_retries=0, timeout=PATIENCE) as client,
    ):
        yield client


@pytest.mark.parametrize("roles", ["real", "flat"])
async def test_the_tool_loop_is_completed_in_every_way(llama: LlamaServer, roles: str) -> None:
    ways: dict[str, Way] = {
        f"{api} {name}": way for api, named in openai_python.WAYS.items() for name, way in named.items()
    }
    async with serving(llama, chat_roles=roles) as url:
        for name, way in ways.items():
            session = Session(url)
            await way(session)
            assert session.calls == list(CALLS), name
            assert session.texts == [SAID, ANSWER], name


async def test_a_template_that_refuses_roles_is_given_one_text(gguf: Path) -> None:
    async with llama_server(gguf, chat_template=STRICT_TEMPLATE) as strict, serving(strict) as url:
        session = Session(url)
        await openai_python.WAYS["responses"]["create"](session)
    assert session.calls == list(CALLS)
    assert session.texts == [SAID, ANSWER]


async def test_its_prompt_cache_is_read_from_the_second_request_on(llama: LlamaServer) -> None:
    async with talking(llama) as client:
        ask: list[Any] = [{"role": "user", "content": "Think first."}]
        first = await client.responses.create(model="m", input=ask, tools=[TOOL])
        ask += [*(item.to_dict() for item in first.output), {"role": "user", "content": "And now?"}]
        second = await client.responses.create(model="m", input=ask, tools=[TOOL])
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.input_tokens_details.cached_tokens > first.usage.input_tokens // 2


async def test_its_models_are_listed(llama: LlamaServer, gguf: Path) -> None:
    async with talking(llama, model=("mine",)) as client:
        assert [model.id async for model in client.models.list()] == ["mine", str(gguf)]


async def test_the_page_knows_how_large_the_context_of_its_model_is(llama: LlamaServer, gguf: Path) -> None:
    async with serving(llama) as url, aiohttp.ClientSession() as session:
        async with session.get(llama.url.replace("/v1", "/props")) as response:
            size = (await response.json())["default_generation_settings"]["n_ctx"]
        async with session.get(url.replace("/v1", "/inspect/state")) as response:
            assert (await response.json())["contexts"] == {str(gguf): size}


async def test_thoughts_are_reasoning(llama: LlamaServer) -> None:
    async with talking(llama) as client:
        asked: Any = {"model": "m", "input": "Think first.", "reasoning": {"summary": "auto"}}
        response = await client.responses.create(**asked)
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert response.output[0].to_dict()["summary"] == [{"type": "summary_text", "text": "Let me see.\n"}]
    assert response.output_text == "It is done."


async def test_thoughts_may_end_by_a_call(gguf: Path) -> None:
    async with llama_server(gguf, chat_template=THINKING_TEMPLATE) as llama, talking(llama) as client:
        response = await client.responses.create(model="m", input="Think no further.", tools=[TOOL])
    assert [item.type for item in response.output] == ["reasoning", "function_call"]


# Random bytes need not be UTF-8, and llama.cpp counts and ends such texts in its own ways: here they are few letters.
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "pattern": "^[a-z]{1,8}$"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}


async def test_random_weights_are_held_to_a_schema(llama: LlamaServer) -> None:
    async with talking(llama) as client:
        held: Any = {"format": {"type": "json_schema", "name": "weather", "strict": True, "schema": SCHEMA}}
        response = await client.responses.create(model="m", input="Weather?", text=held)
    jsonschema.validate(orjson.loads(response.output_text), SCHEMA)


HELD_TOOLS: Any = [
    {
        "type": "function",
        "name": "reserve",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 99}, "unit": {"enum": ["C", "F"]}},
            "required": ["count", "unit"],
            "additionalProperties": False,
        },
    },
    {
        "type": "function",
        "name": "remind",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"at": {"$ref": "#/$defs/hour"}, "text": {"type": "string", "pattern": "^[a-z ]{1,12}$"}},
            "required": ["at", "text"],
            "additionalProperties": False,
            "$defs": {"hour": {"type": "string", "enum": ["noon", "midnight"]}},
        },
    },
]
HELD_CHOICES: list[Any] = ["required", {"type": "function", "name": "remind"}]


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("choice", HELD_CHOICES, ids=["required", "named"])
async def test_random_weights_are_held_to_calls(llama: LlamaServer, choice: Any, parallel: bool) -> None:
    """Thirteen a way, fifty-two in all, each another."""
    wanted = {tool["name"]: tool["parameters"] for tool in HELD_TOOLS}
    asked: dict[str, Any] = {"tools": HELD_TOOLS, "tool_choice": choice, "parallel_tool_calls": parallel}
    async with talking(llama) as client:
        for number in range(13):
            response = await client.responses.create(model="m", input=f"Question {number}.", temperature=1.5, **asked)
            calls = [item for item in response.output if item.type == "function_call"]
            assert response.status == "completed"
            assert len(calls) == len(response.output) >= 1
            for call in calls:
                jsonschema.validate(orjson.loads(call.arguments), wanted[call.name])
            if choice != "required":
                assert {call.name for call in calls} == {choice["name"]}
            if not parallel:
                assert len(calls) == 1


MARKUP = (
    "See <table><tr><td>1 < 2</td></tr></table>\n<title>T</title>, </tool_call> <tool_calls> <<tool_cal> and `a<b`, <"
)
RING: Any = {
    "type": "object",
    "properties": {
        "at": {"type": "array", "items": {"$ref": "#/$defs/hour"}, "minItems": 1},
        "loud": {"type": ["boolean", "null"]},
        "for": {"type": "object", "properties": {"minutes": {"type": "integer", "minimum": -3, "maximum": 3}}},
    },
    "required": ["at"],
    "$defs": {"hour": {"type": "string", "enum": ["noon", "midnight"]}},
}
FREE_TOOLS: Any = [HELD_TOOLS[0], {"type": "function", "name": "ring", "strict": False, "parameters": RING}]
BY_ITSELF: dict[str, str | Endless] = {
    "Show markup": MARKUP,
    "Call misfit": '<tool_call>{"name": "reserve", "arguments": {"count": 0, "unit": "K"}}</tool_call>',
    "Call wrongly": 'I look.\n<tool_call>{"name": "reserve_it", "arguments": [1}}</tool_call>',
    "Call with blanks": '<tool_call>{"name": ' + " " * 200 + '"ring", "arguments": {"at": "noon"}}</tool_call>',
}


@pytest.fixture(scope="session")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "caller.gguf"
    write_tiny_gguf(path, BY_ITSELF)
    return path


@pytest.mark.parametrize(("question", "unheld_calls"), [("Call wrongly", 0), ("Call with blanks", 25)])
async def test_a_model_that_calls_by_itself_is_held_to_calls_that_fit(
    caller: Path, question: str, unheld_calls: int
) -> None:
    """What it knows by heart is none, or has 200 blanks in it; within its tags it can write nothing else."""
    wanted = {tool["name"]: tool["parameters"] for tool in FREE_TOOLS}
    held = free = 0
    async with (
        llama_server(caller) as llama,
        talking(llama, hold_calls="all") as client,
        talking(llama) as unheld,
    ):
        for number in range(25):
            asked: Any = {"model": "m", "input": f"{question}. {number}", "temperature": 1.5, "max_output_tokens": 400}
            response = await client.responses.create(tools=FREE_TOOLS, **asked)
            calls = [item for item in response.output if item.type == "function_call" and item.status == "completed"]
            # A close tag alone is text: so hot, the model may leave out the tag that it knows by heart.
            assert "<tool_call" not in response.output_text
            for call in calls:
                jsonschema.validate(orjson.loads(call.arguments), wanted[call.name])
            held += bool(calls)
            other = await unheld.responses.create(tools=FREE_TOOLS, **asked)
            free += any(item.type == "function_call" for item in other.output)
    assert (held, free) == (25, unheld_calls)


async def test_a_strict_call_that_does_not_fit_fits_when_it_is_asked_for_again(caller: Path) -> None:
    outcomes = {"auto": list[str | None](), "off": list[str | None]()}
    async with llama_server(caller) as llama:
        for hold, ends in outcomes.items():
            async with talking(llama, hold_calls=hold) as client:
                for number in range(25):
                    asked: Any = {"model": "m", "input": f"Call misfit. {number}", "temperature": 1.5}
                    try:
                        response = await client.responses.create(tools=HELD_TOOLS, **asked)
                        ends.append(response.output[0].type)
                    except APIStatusError as error:
                        ends.append(error.code)
    assert outcomes == {"auto": ["function_call"] * 25, "off": ["tool_arguments_invalid"] * 25}


async def test_what_is_no_tag_of_ours_is_text_where_calls_are_held(caller: Path) -> None:
    async with llama_server(caller) as llama, talking(llama, hold_calls="all") as client:
        response = await client.responses.create(model="m", input="Show markup.", tools=FREE_TOOLS)
    assert response.output_text == MARKUP


async def test_free_they_write_none(llama: LlamaServer) -> None:
    async with talking(llama, hold_calls="off") as client:
        for number in range(5):
            with pytest.raises(APIStatusError) as caught:
                await client.responses.create(
                    model="m", input=f"Question {number}.", tools=HELD_TOOLS, tool_choice="required", temperature=1.5
                )
            assert caught.value.code == "tool_call_missing"


async def test_an_answer_ends_at_its_limit_and_at_a_stop_string(llama: LlamaServer) -> None:
    async with talking(llama) as client:
        cut = await client.responses.create(model="m", input="Write on.", max_output_tokens=16)
        asked: Any = [{"role": "user", "content": "Write on."}]
        stopped = await client.chat.completions.create(model="m", messages=asked, stop=" four")
    assert cut.incomplete_details is not None
    assert cut.incomplete_details.reason == "max_output_tokens"
    assert cut.usage is not None
    assert cut.usage.output_tokens == 16
    assert stopped.choices[0].message.content == "one two three"


PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize("stream", [False, True])
async def test_what_it_refuses_is_the_clients_400(llama: LlamaServer, stream: bool) -> None:
    image: Any = [{"role": "user", "content": [{"type": "input_image", "image_url": PIXEL, "detail": "auto"}]}]
    async with talking(llama) as client:
        for asked, code in (("word " * 8000, "context_length_exceeded"), (image, "unsupported_value")):
            with pytest.raises(APIStatusError) as caught:
                await client.responses.create(model="m", input=asked, stream=stream)
            assert (caught.value.status_code, caught.value.code) == (400, code)
            assert caught.value.response.headers["x-should-retry"] == "false"


async def test_a_conversation_that_is_too_long_is_cut_where_the_client_lets_us(llama: LlamaServer) -> None:
    old: Any = {"role": "user", "content": "word " * 3000}
    said: Any = {"role": "assistant", "content": "I see."}
    async with talking(llama) as client:
        asked: Any = [old, said, old, said, {"role": "user", "content": "Write on."}]
        response = await client.responses.create(model="m", input=asked, truncation="auto", max_output_tokens=16)
    assert response.output_text.startswith("one two three")


async def leave(client: AsyncOpenAI, deltas: int) -> None:
    """Leaves an answer that would never end, after so many pieces of it."""
    async with await client.responses.create(model="m", input="Write on.", tools=[TOOL], stream=True) as stream:
        async for event in stream:
            deltas -= event.type == "response.output_text.delta"
            if deltas <= 0:
                return


async def test_500_requests_that_are_left_keep_no_slot_busy(llama: LlamaServer) -> None:
    async with talking(llama) as client:
        # More at once than there are slots: some are left while they wait for one.
        for _ in range(25):
            await asyncio.gather(*(leave(client, number % 3) for number in range(20)))
        async with asyncio.timeout(PATIENCE):
            while await llama.busy_slots():  # noqa: ASYNC110 -- nobody is told when it is done
                await asyncio.sleep(0.05)
        response = await client.responses.create(model="m", input="Think first.")
    assert response.output_text == "It is done."


async def test_who_waits_for_a_slot_is_answered_when_it_is_free(gguf: Path) -> None:
    async with llama_server(gguf, n_parallel=1) as llama, talking(llama) as client, asyncio.TaskGroup() as group:
        async with await client.responses.create(model="m", input="Write on.", stream=True) as stream:
            async for event in stream:
                if event.type == "response.output_text.delta":
                    break
            second = group.create_task(client.responses.create(model="m", input="Think first."))
            assert await llama.busy_slots() == 1
            assert not second.done()
        assert (await second).output_text == "It is done."


async def test_killed_in_the_middle_of_an_answer_it_ends_once_and_the_next_request_is_told(llama: LlamaServer) -> None:
    events: list[Any] = []
    async with talking(llama) as client:
        asked = client.responses.with_streaming_response.create(model="m", input="Write on.", stream=True)
        async with asked as response:
            async for line in response.iter_lines():
                if line.startswith("data: {"):
                    events.append(orjson.loads(line.removeprefix("data: ")))
                    if events[-1]["type"] == "response.output_text.delta" and llama.process.returncode is None:
                        llama.process.kill()
        last = check_events(events)
        assert last["status"] == "failed"
        assert last["error"]["message"].endswith("has ended before its answer did.")
        async with asyncio.timeout(PATIENCE):
            await llama.process.wait()  # some of its connections end before its port is free
        with pytest.raises(APIStatusError, match="does not answer: start the model server") as caught:
            await client.responses.create(model="m", input="hi", stream=True)
    assert (caught.value.status_code, caught.value.code) == (503, "backend_unavailable")
    assert caught.value.response.headers["retry-after"] == "5"


async def test_doctor_tells_what_it_can(llama: LlamaServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert await run_doctor(Settings(port=0, backend=llama.url)) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "ok backend answers and takes turns (llama.cpp)" in lines
    assert any(line.startswith("ok schema ") and line.endswith("tiny.gguf is held to a JSON schema") for line in lines)
    assert any(line.startswith("ok tools the server takes tools, but made no call") for line in lines)
    assert "ok context 16,384 tokens" in lines
