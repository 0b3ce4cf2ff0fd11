"""When lanes end and when they go on, on the real codex programs, by what is said to them and what they say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from openai import APIStatusError

from parser import write_call
from proxy.backends.codex.threads import CodexThreads
from proxy.rpc import RpcClient
from tests.support.backends import TestBackend
from tests.support.codex_programs import TestProgram, installed_programs
from tests.support.endpoint import Endpoint, serving
from tests.support.scripted_model import Failed, Incomplete, Message, Refusal, Reply, ScriptedModel

LANED = [program for program in installed_programs() if program.supported]
# Seconds for anything to happen at all.
PATIENCE = 30.0

TOOLS: Any = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]
HELLO: Any = {"role": "user", "content": "Hello."}
AND: Any = {"role": "user", "content": "And?"}

pytestmark = pytest.mark.parametrize("codex", LANED, ids=lambda codex: codex.version)


class Wire:
    """What goes over the connection to codex: each line's method and thread, in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self._more = asyncio.Event()

    def add(self, method: str, params: Mapping[str, Any] | None) -> None:
        self.lines.append((method, str((params or {}).get("threadId"))))
        self._more.set()

    async def until(self, method: str, thread: str) -> int:
        """Where a line stands, once it does."""
        async with asyncio.timeout(PATIENCE):
            while (method, thread) not in self.lines:
                self._more.clear()
                await self._more.wait()
        return self.lines.index((method, thread))


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    seen = Wire()
    post, receive = RpcClient.post, CodexThreads.receive

    def posted(self: RpcClient, method: str, params: Any = None) -> None:
        seen.add(method, params)
        post(self, method, params)

    def received(self: CodexThreads, method: str, params: Any) -> None:
        seen.add(method, params)
        receive(self, method, params)

    monkeypatch.setattr(RpcClient, "post", posted)
    monkeypatch.setattr(CodexThreads, "receive", received)
    return seen


def keys(endpoint: Endpoint) -> list[str]:
    """codex's own name of the thread for each request of the model."""
    return [request.body["prompt_cache_key"] for request in endpoint.model.requests]


async def create(endpoint: Endpoint, *items: Any, **members: Any) -> Any:
    post: Any = endpoint.client.responses.create  # its overloads know no members by name
    return await post(**{"model": "gpt-5.5", "input": items, "tools": TOOLS, **members})


async def leave(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Message("One two three.")], chunk=4, hold_after=2, gate=asyncio.Event()))
    stream = await create(endpoint, HELLO, stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()


async def leave_before_a_word(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Message("One.")], gate=asyncio.Event()))
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(create(endpoint, HELLO), name="a request")
        async with asyncio.timeout(PATIENCE):
            await endpoint.model.called.wait()
        asking.cancel()


async def be_asked_again(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Message('<tool_call>{"name": </tool_call>')]), Reply([Message("Hello.")]))
    await create(endpoint, HELLO)


async def be_cut(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Message("Hel")], end=Incomplete("max_output_tokens")))
    await create(endpoint, HELLO)


async def fail(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Message("One two.")], end=Failed("server_is_overloaded", "At capacity.")))
    with pytest.raises(APIStatusError):
        await create(endpoint, HELLO)


async def reach_a_limit(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Message("word " * 100)]))
    await create(endpoint, HELLO, max_output_tokens=16)


async def be_repaired(endpoint: Endpoint) -> None:
    endpoint.model.push(Reply([Message(write_call("read_note", '{"path": "a.md",}'))]))
    await create(endpoint, HELLO)


@pytest.mark.parametrize("spoil", [
    leave, leave_before_a_word, be_asked_again, be_cut, fail, reach_a_limit, be_repaired,
], ids=lambda spoil: spoil.__name__)  # fmt: skip
async def test_a_lane_that_cannot_go_on_is_given_up_once_its_turn_has_ended(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path, wire: Wire, spoil: Callable[[Endpoint], Awaitable[None]]
) -> None:
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        await spoil(endpoint)
        # At once, while the turn may still be ending.
        await create(endpoint, HELLO, AND)
        *spoilt, fresh = keys(endpoint)
        for thread in spoilt:
            assert await wire.until("turn/completed", thread) < await wire.until("thread/unsubscribe", thread)
        assert fresh not in spoilt
        assert ("thread/unsubscribe", fresh) not in wire.lines
        assert wire.lines.count(("thread/unsubscribe", spoilt[0])) == 1


async def test_a_request_that_failed_before_a_word_goes_on_in_its_lane_when_it_is_asked_again(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    full = {"message": "At capacity.", "code": "server_is_overloaded"}
    failures: list[Reply | Refusal] = [
        Refusal(503, full),
        Refusal(429),
        Reply([], end=Failed(full["code"], full["message"])),
    ]
    said: list[Any] = [HELLO]
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        for failure in failures:
            endpoint.model.push(failure, failure, Reply([Message("Yes.")]))
            for _ in range(2):
                with pytest.raises(APIStatusError):
                    await create(endpoint, *said)
            said += [*(item.to_dict() for item in (await create(endpoint, *said)).output), AND]
        assert len(set(keys(endpoint))) == 1
        first, *_, last = [request.body["input"] for request in endpoint.model.requests]
        assert last[: len(first)] == first
        told = [part["text"] for item in last[len(first) - 1 :] for part in item["content"]]
        assert told == ["Hello.", "Yes.", "And?", "Yes.", "And?"]


@pytest.mark.parametrize(
    ("members", "goes_on"),
    [
        (({"tool_choice": "required"}, {}), False),
        (({}, {"tool_choice": "required"}), True),
        (({"tool_choice": "required"}, {"tool_choice": "required"}), True),
        (({"tools": []}, {"tools": []}), True),
        (({"tools": []}, {}), False),
    ],
)
async def test_a_request_that_failed_before_a_word_is_asked_again_only_with_the_same_lines_of_ours(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path, members: Any, goes_on: bool
) -> None:
    """A demand that nobody answered would count for whoever asks without it."""
    first, then = members
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        answer = await create(endpoint, HELLO)
        said = [HELLO, *(item.to_dict() for item in answer.output), AND]
        model.push(Refusal(503), Reply([Message(f"Yes.\n{write_call('read_note', '{}')}" if then else "Yes.")]))
        with pytest.raises(APIStatusError):
            await create(endpoint, *said, **first)
        await create(endpoint, *said, **then)
        assert (keys(endpoint)[1] == keys(endpoint)[2]) is goes_on


async def test_a_request_that_was_too_long_takes_another_thread(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    """codex 0.169 sums up what such a thread holds, in its next turn, by itself."""
    error = {"message": "Your input exceeds the context window of this model.", "code": "context_length_exceeded"}
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        endpoint.model.push(Refusal(400, error))
        with pytest.raises(APIStatusError):
            await create(endpoint, HELLO)
        await create(endpoint, HELLO)
        assert len(set(keys(endpoint))) == len(endpoint.model.requests) == 2


NAMED: Any = {"type": "function", "name": "read_note"}
JSON: Any = {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}}


# What one request asks for, and whether it goes on in the lane of one that did not.
MEMBERS: list[tuple[dict[str, Any], bool]] = [
    ({"tool_choice": "required"}, True),
    ({"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [NAMED]}}, True),
    ({"tool_choice": "none"}, False),
    ({"parallel_tool_calls": False}, False),
    ({"reasoning": {"effort": "high", "summary": "auto"}}, True),
    ({"text": JSON}, False),
    ({"text": {"verbosity": "high"}}, False),
    ({"service_tier": "flex"}, True),
    ({"max_output_tokens": 1000}, True),
    ({"prompt_cache_key": "another", "user": "another"}, True),
]


async def test_what_is_asked_for_beside_the_conversation_may_take_another_lane(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    wanted = {"required": write_call("read_note", "{}"), "text": '{"a": 1}'}
    went_on: list[bool] = []
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        for number, (members, _) in enumerate(MEMBERS):
            answer = next((text for word, text in wanted.items() if word in str(members)), "Yes.")
            model.push(Reply([Message("Hello.")]), Reply([Message(answer)]))
            said: list[Any] = [{"role": "user", "content": f"Hello {number}."}]
            said += [*(item.to_dict() for item in (await create(endpoint, *said)).output), AND]
            await create(endpoint, *said, **members)
            first, second = keys(endpoint)[-2:]
            went_on.append(first == second)
    assert went_on == [goes_on for _, goes_on in MEMBERS]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_lane_is_idle_before_the_end_of_its_answer_is_told(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path, api: str
) -> None:
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        said: list[Any] = [HELLO]
        answer: Any = {"role": "assistant", "content": "Hello from the scripted model."}
        for _ in range(5):
            if api == "responses":
                stream: Any = await create(endpoint, *said, stream=True)
            else:
                stream = await endpoint.client.chat.completions.create(model="gpt-5.5", messages=said, stream=True)
            said = [*said, answer, AND]
            async for event in stream:
                if api == "chat" and any(choice.finish_reason for choice in event.choices):
                    break
                if api == "responses" and event.type == "response.completed":
                    break
            # The rest of the stream has not been read, and its connection is open.
        assert len(keys(endpoint)) == 5
        assert len(set(keys(endpoint))) == 1


async def test_two_requests_at_once_on_one_conversation_have_two_threads(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        answer = await create(endpoint, HELLO)
        said = [HELLO, *(item.to_dict() for item in answer.output)]
        gate = asyncio.Event()
        both = asyncio.Event()

        def hold(body: Mapping[str, Any]) -> Reply:
            if len(endpoint.model.requests) == 3:
                both.set()
            return Reply([Message(body["input"][-1]["content"][-1]["text"])], gate=gate)

        endpoint.model.choose = hold
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(create(endpoint, *said, {"role": "user", "content": word}), name="a branch")
                for word in ("left", "right")
            ]
            async with asyncio.timeout(PATIENCE):
                await both.wait()
            gate.set()
        assert [task.result().output_text for task in tasks] == ["left", "right"]
        first, *branches = keys(endpoint)
        assert len(set(branches)) == 2
        assert first in branches


async def test_a_conversation_without_its_oldest_part_goes_on_while_the_same_part_is_left_out(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    error = {"message": "Your input exceeds the context window of this model.", "code": "context_length_exceeded"}
    said: list[Any] = [{"role": "user", "content": "old " * 500}, {"role": "assistant", "content": "Ah."}, HELLO]
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        for text in ("One.", "Two."):
            endpoint.model.push(Refusal(400, error), Reply([Message(text)]))
            answer = await create(endpoint, *said, truncation="auto")
            assert answer.output_text == text
            said += [*(item.to_dict() for item in answer.output), AND]
        _, one, _, two = [request.body for request in endpoint.model.requests]
    assert one["prompt_cache_key"] == two["prompt_cache_key"]
    assert two["input"][: len(one["input"])] == one["input"]
    assert [item["content"][-1]["text"] for item in two["input"][-3:]] == ["Hello.", "One.", "And?"]
