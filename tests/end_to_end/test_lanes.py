"""Lanes, on the real codex programs: a conversation keeps its thread, and with it the provider's cache."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from parser import write_call
from proxy.replay.key_placeholder import key_of
from tests.support.backends import TestBackend
from tests.support.codex_programs import TestProgram, installed_programs
from tests.support.endpoint import Endpoint, calls_of, serving
from tests.support.scripted_model import Message, Reasoning, Reply, ScriptedModel

LANED = [program for program in installed_programs() if program.supported]

pytestmark = pytest.mark.parametrize("codex", LANED, ids=lambda codex: codex.version)

TOOLS: Any = [
    {"type": "function", "name": "read_note", "description": "Read a note.", "strict": False,
     "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
]  # fmt: skip
ROUNDS = 6


def developer_of(body: Mapping[str, Any]) -> str:
    texts: list[str] = [
        part["text"] for item in body["input"] if item.get("role") == "developer" for part in item["content"]
    ]
    return texts[-1]


def calling(number: int, body: Mapping[str, Any]) -> Reply:
    """A reply with one call, which carries the key that it is shown."""
    call = write_call("read_note", json.dumps({"path": f"{number}.md"}), key=key_of(developer_of(body)))
    return Reply([Message(f"I look.\n{call}")])


async def loop(endpoint: Endpoint, **members: Any) -> list[dict[str, Any]]:
    """Runs a loop of `ROUNDS` requests. Returns what the provider was asked."""
    number = 0

    def respond(body: Mapping[str, Any]) -> Reply:
        nonlocal number
        number += 1
        return calling(number, body) if number < ROUNDS else Reply([Message("Done.")])

    endpoint.model.choose = respond
    conversation: list[Any] = [{"role": "user", "content": "Read my notes. " + "Much context. " * 50}]
    for _ in range(ROUNDS):
        answer = await endpoint.client.responses.create(
            model="gpt-5.5", input=conversation, tools=TOOLS, instructions="Be brief.", **members
        )
        conversation += [item.to_dict() for item in answer.output]
        conversation += [
            {"type": "function_call_output", "call_id": call.call_id, "output": f"# {call.arguments}\nLong."}
            for call in calls_of(answer)
        ]
    return [dict(request.body) for request in endpoint.model.requests]


def holds(body: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Whether a request begins with all that an earlier one held, byte for byte."""
    return bool(json.dumps(body["input"][: len(earlier["input"])]) == json.dumps(earlier["input"]))


@pytest.mark.parametrize("members", [{}, {"parallel_tool_calls": False}])
async def test_a_tool_loop_has_one_key_and_one_growing_beginning(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path, members: dict[str, Any]
) -> None:
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        bodies = await loop(endpoint, **members)
    assert len(bodies) == ROUNDS
    assert len({body["prompt_cache_key"] for body in bodies}) == 1
    assert all(holds(later, earlier) for earlier, later in pairwise(bodies))


@pytest.mark.parametrize(("drops_text", "fills_in"), [(True, False), (False, True), (True, True)])
async def test_a_client_that_drops_the_text_beside_calls_or_fills_in_defaults_keeps_its_thread(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path, drops_text: bool, fills_in: bool
) -> None:
    """As CrewAI and many a loop written by hand do the one, the Vercel AI SDK with Zod the other."""
    tools = json.loads(json.dumps(TOOLS))
    tools[0]["parameters"]["properties"]["limit"] = {"type": "integer", "default": 10}
    model.choose = lambda body: calling(len(model.requests), body)
    conversation: list[Any] = [{"role": "user", "content": "Read my notes."}]
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        for _ in range(ROUNDS):
            answer = await endpoint.client.responses.create(model="gpt-5.5", input=conversation, tools=tools)
            [call] = calls_of(answer)
            arguments = json.loads(call.arguments) | ({"limit": 10} if fills_in else {})
            conversation += [] if drops_text else [{"role": "assistant", "content": answer.output_text}]
            conversation += [
                {**call.to_dict(), "arguments": json.dumps(arguments)},
                {"type": "function_call_output", "call_id": call.call_id, "output": "Long."},
            ]
    bodies = [dict(request.body) for request in model.requests]
    assert len(bodies) == ROUNDS
    assert len({body["prompt_cache_key"] for body in bodies}) == 1
    assert all(holds(later, earlier) for earlier, later in pairwise(bodies))


@pytest.mark.parametrize("each_step", [True, False])
async def test_a_client_that_makes_one_round_of_several_keeps_its_thread(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path, each_step: bool
) -> None:
    """As older versions of Mastra do at each step, and LibreChat from the next question on."""

    def respond(body: Mapping[str, Any]) -> Reply:
        call = write_call(
            "read_note", json.dumps({"path": f"{len(model.requests)}.md"}), key=key_of(developer_of(body))
        )
        return Reply([Message(call)]) if len(model.requests) % 4 else Reply([Message("Done.")])

    model.choose = respond
    conversation: list[Any] = []
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        for _ in range(2):
            conversation.append({"role": "user", "content": "Read my notes."})
            calls: list[Any] = []
            results: list[Any] = []
            rounds: list[Any] = []
            output: list[Any] = []
            for _ in range(4):
                said = [*calls, *results] if each_step else rounds
                answer = await endpoint.client.responses.create(
                    model="gpt-5.5", input=[*conversation, *said], tools=TOOLS, instructions="Be brief."
                )
                output = [item.to_dict() for item in answer.output]
                called = [call.to_dict() for call in calls_of(answer)]
                found = [
                    {"type": "function_call_output", "call_id": call["call_id"], "output": "Long."} for call in called
                ]
                calls, results, rounds = [*calls, *called], [*results, *found], [*rounds, *called, *found]
            conversation += [*calls, *results, *output]
    bodies = [dict(request.body) for request in model.requests]
    assert len(bodies) == 8
    assert len({body["prompt_cache_key"] for body in bodies}) == 1
    assert all(holds(later, earlier) for earlier, later in pairwise(bodies))


async def test_a_conversation_that_is_compacted_is_read_from_what_the_backend_holds(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    conversation: list[Any] = [{"role": "user", "content": "Read my notes. " + "Much context. " * 50}]
    members: Any = {"model": "gpt-5.5", "instructions": "Be brief."}
    model.choose = lambda _: Reply([Message("They spoke of notes.")])
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        answer = await endpoint.client.responses.create(input=conversation, tools=TOOLS, **members)
        conversation += [item.to_dict() for item in answer.output]
        await endpoint.client.responses.compact(input=conversation, extra_body={"tools": TOOLS}, **members)
    first, summary = (dict(request.body) for request in model.requests)
    assert holds(summary, first)


async def test_a_conversation_whose_service_tier_changes_keeps_its_thread(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    tiers: Any = [None, "priority", None, "flex", "priority", None]
    conversation: list[Any] = []
    model.choose = lambda _: Reply([Message("Well.")])
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        for tier in tiers:
            conversation += [{"role": "user", "content": "And?"}]
            answer = await endpoint.client.responses.create(model="gpt-5.5", input=conversation, service_tier=tier)
            conversation += [item.to_dict() for item in answer.output]
    bodies = [dict(request.body) for request in model.requests]
    assert [body.get("service_tier") for body in bodies] == tiers
    assert len({body["prompt_cache_key"] for body in bodies}) == 1
    assert all(holds(later, earlier) for earlier, later in pairwise(bodies))


async def test_a_conversation_looks_the_same_on_a_thread_of_its_own_and_on_the_next(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    """So a cache that goes by the text alone finds it again: when an answer is asked for anew, behind a failure."""

    def respond(body: Mapping[str, Any]) -> Reply:
        key = key_of(developer_of(body))
        calls = "\n".join(
            write_call("read_note", f'{{"path":"{len(model.requests)}.{name}"}}', key=key) for name in "ab"
        )
        return Reply([Message(f"I look.\n{calls}")])

    model.choose = respond
    conversation: list[Any] = [{"role": "user", "content": "Read my notes."}]
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        for again in (False, False, False, True):
            answer = await endpoint.client.responses.create(model="gpt-5.5", input=conversation, tools=TOOLS)
            if again:
                await endpoint.client.responses.create(model="gpt-5.5", input=conversation, tools=TOOLS)
            conversation += [item.to_dict() for item in answer.output]
            conversation += [
                {"type": "function_call_output", "call_id": call.call_id, "output": "Long."}
                for call in calls_of(answer)
            ]
    *_, continued, fresh = (request.body for request in model.requests)
    assert continued["prompt_cache_key"] != fresh["prompt_cache_key"]
    assert said_in(continued) == said_in(fresh)


def said_in(body: Mapping[str, Any]) -> list[Any]:
    return [(item["role"], [part["text"] for part in item["content"]]) for item in body["input"]]


@pytest.mark.parametrize("told", ["empty", "sentence"])
async def test_behind_an_empty_answer_a_conversation_keeps_its_thread(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path, told: str
) -> None:
    """Whether the client sends back nothing, or the sentence that it got in place of nothing."""
    model.push(Reply([Message("Well.")]), Reply([Reasoning(["Hm."])]), Reply([Message("")]), Reply([Message("Oh.")]))
    conversation: list[Any] = []
    async with serving(model, TestBackend(codex), tmp_path / "home", empty_answers=told) as endpoint:
        for text in ("One.", "", "", "Two."):
            conversation.append({"role": "user", "content": "And?"})
            answer = await endpoint.client.responses.create(model="gpt-5.5", input=conversation, tools=TOOLS)
            assert bool(answer.output_text) is bool(text or told == "sentence")
            conversation += [{"role": "assistant", "content": answer.output_text}] if answer.output_text else []
    bodies = [dict(request.body) for request in model.requests]
    assert len({body["prompt_cache_key"] for body in bodies}) == 1
    assert all(holds(later, earlier) for earlier, later in pairwise(bodies))


async def test_a_mended_history_is_the_same_in_each_request(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    """One result of two is missing, as when a client merges them, and a search of OpenAI's stands before it."""
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {
        "type": "search", "query": "tides", "sources": [{"type": "url", "url": "https://tides.example"}]}}  # fmt: skip
    asked = [
        {"type": "function_call", "call_id": f"call_{name}", "name": "read_note", "arguments": "{}"} for name in "ab"
    ]
    merged = {"type": "function_call_output", "call_id": "call_a", "output": "one\ntwo"}
    conversation: list[Any] = [{"role": "user", "content": "Read both."}, searched, *asked, merged]
    model.choose = lambda _: Reply([Message("Well.")])
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        for _ in range(3):
            answer = await endpoint.client.responses.create(model="gpt-5.5", input=conversation, tools=TOOLS)
            conversation += [*(item.to_dict() for item in answer.output), {"role": "user", "content": "And?"}]
    bodies = [dict(request.body) for request in model.requests]
    assert len({body["prompt_cache_key"] for body in bodies}) == 1
    assert all(holds(later, earlier) for earlier, later in pairwise(bodies))
    shown = json.dumps(bodies[0]["input"])
    for text in ("[tool:ws_1] https://tides.example", "[tool:call_a] one", "[tool:call_b] (no separate result)"):
        assert text in shown
