"""Codex as a client of tagcall: it completes tasks with tools of an MCP server, over HTTP and over WebSocket."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog

from parser import write_call
from prompts import compaction_request
from tests.support.codex_programs import TestProgram, installed_programs
from tests.support.conversation import all_shown, results_shown
from tests.support.endpoint import Endpoint
from tests.support.lanes import continued
from tests.support.scripted_model import Failed, Message, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_server
from tests.support.vault import ANSWER, CALLS

from .clients.codex_cli import BASE_URL, CODING_MODEL, SEARCHING_MODEL, CodexClient, provider

# Older programs have no WebSocket transport.
NEW = [program for program in installed_programs() if program.supported]

every_new_program = pytest.mark.parametrize("program", NEW, ids=lambda program: program.version)
over_both_transports = pytest.mark.parametrize("websockets", [False, True], ids=["http", "websocket"])


def client_of(program: TestProgram, home: Path) -> CodexClient:
    assert program.path is not None, "openai-codex-cli-bin is not installed"
    return CodexClient(program.path, home)


def transports(logs: Iterable[Mapping[str, Any]]) -> set[str]:
    """By which turns came."""
    return {line["method"] for line in logs if line["event"] == "request" and line.get("model")}


def next_call(made: int) -> Reply:
    """The call that follows so many, or the answer."""
    if made == len(CALLS):
        return Reply([Message(ANSWER)], chunk=3)
    call = write_call(f"mcp__vault__{CALLS[made].name}", json.dumps(CALLS[made].arguments))
    return Reply([Message(f"I will look.\n{call}")], chunk=3)


def librarian(body: Mapping[str, Any]) -> Reply:
    """Makes the calls, one an answer, then answers."""
    return next_call(len(results_shown(body)))


@over_both_transports
@every_new_program
async def test_codex_completes_a_task_with_a_tool_of_an_mcp_server(
    model: ScriptedModel, program: TestProgram, websockets: bool, tmp_path: Path
) -> None:
    codex = client_of(program, tmp_path / "client")
    with structlog.testing.capture_logs() as logs:
        async with tagcall_server(model, tmp_path / "home", store="memory") as url:
            model.choose = librarian
            codex.configure(provider(url, websockets=websockets))
            assert await codex.ask("When does Alpha start?") == ANSWER
    assert codex.calls == list(CALLS)
    assert transports(logs) == {"WS" if websockets else "POST"}
    assert len(model.requests) == len(CALLS) + 1, "a warm-up asks for no answer"
    assert continued(model.requests) == len(CALLS)


def forgetful(body: Mapping[str, Any]) -> Reply:
    """A librarian who sums up how many calls there were, and has nothing else to go on from when that was asked."""
    shown = all_shown(body)
    summaries: list[str] = re.findall(r"I made (\d+) calls\.", shown)
    # A compacted conversation shows no result that was there before.
    made = int(summaries[-1] if summaries else 0) + len(results_shown(body))
    if compaction_request() in shown:
        return Reply([Message(f"I made {made} calls.")])
    return next_call(made)


@pytest.mark.parametrize(
    ("configured", "transport"),
    [(partial(provider, websockets=False, name="OpenAI"), "POST"), (lambda url: BASE_URL.format(url=url), "WS")],
    ids=["http", "base-url-alone"],
)
@every_new_program
async def test_codex_goes_on_behind_its_compactions_and_when_it_is_resumed(
    model: ScriptedModel, program: TestProgram, configured: Callable[[str], str], transport: str, tmp_path: Path
) -> None:
    codex = client_of(program, tmp_path / "client")
    with structlog.testing.capture_logs() as logs:
        async with tagcall_server(model, tmp_path / "home", store="memory") as url:
            model.choose = forgetful
            # The model says that each answer took 120 tokens: the limit is passed each time.
            codex.configure(configured(url), compact_at=100)
            assert await codex.ask("When does Alpha start?") == ANSWER
            assert codex.calls == list(CALLS)
            summaries = [request for request in model.requests if compaction_request() in all_shown(request.body)]
            assert len(summaries) >= 2
            assert continued(model.requests) == len(summaries), "what is summed up is in the provider's cache"
            assert await codex.ask("And once more?", resume=True) == ANSWER
    assert transports(logs) == {transport}
    assert codex.calls == list(CALLS), "what was done is known from the summary"
    newest = all_shown(model.requests[-1].body)
    assert newest.index("When does Alpha start?") < newest.index(f"I made {len(CALLS)} calls.")


# How codex asks for a summary itself, at a provider that it does not know.
CHECKPOINT = "CONTEXT CHECKPOINT COMPACTION"


def briefly(body: Mapping[str, Any]) -> Reply:
    """As a forgetful librarian, who is asked for a summary as for anything else."""
    shown = all_shown(body)
    summaries: list[str] = re.findall(r"I made (\d+) calls\.", shown)
    made = int(summaries[-1] if summaries else 0) + len(results_shown(body))
    return Reply([Message(f"I made {made} calls.")]) if CHECKPOINT in shown else next_call(made)


@over_both_transports
@every_new_program
async def test_codex_reads_no_conversation_anew_to_sum_it_up_under_another_name(
    endpoint: Endpoint, program: TestProgram, websockets: bool, tmp_path: Path
) -> None:
    codex = client_of(program, tmp_path / "client")
    endpoint.model.choose = briefly
    # The model says that each answer took 120 tokens: the limit is passed each time.
    codex.configure(provider(endpoint.url, websockets=websockets), compact_at=100)
    assert await codex.ask("When does Alpha start?") == ANSWER
    assert codex.calls == list(CALLS)
    summaries = [request for request in endpoint.model.requests if CHECKPOINT in all_shown(request.body)]
    assert len(summaries) >= 2
    assert continued(endpoint.model.requests) == len(summaries), "what is summed up is in the provider's cache"


def searcher(body: Mapping[str, Any]) -> Reply:
    """A librarian who looks for the tools first, and makes no call of one that is not offered."""
    results, offered = results_shown(body), all_shown(body)
    if not results:
        query = json.dumps({"query": "search_vault read_note list_tags of the vault", "limit": 8})
        return Reply([Message(write_call("tool_search", query))], chunk=3)
    made = len(results) - 1
    if made < len(CALLS) and f'{{"name":"mcp__vault__{CALLS[made].name}"' not in offered:
        return Reply([Message("There is no such tool.")])
    return next_call(made)


@over_both_transports
@every_new_program
async def test_under_a_name_that_codex_knows_the_model_searches_for_its_tools(
    endpoint: Endpoint, program: TestProgram, websockets: bool, tmp_path: Path
) -> None:
    codex = client_of(program, tmp_path / "client")
    endpoint.model.choose = searcher
    codex.configure(provider(endpoint.url, websockets=websockets), model=SEARCHING_MODEL)
    assert await codex.ask("When does Alpha start?") == ANSWER
    assert codex.calls == list(CALLS)
    # What is found is shown where it was found: the beginning of the prompt stays, and so does the provider's cache.
    assert continued(endpoint.model.requests) == len(endpoint.model.requests) - 1


def programmer(body: Mapping[str, Any]) -> Reply:
    """A librarian who makes the calls in the code that some models are to write."""
    made = len(results_shown(body))
    if made == len(CALLS):
        return Reply([Message(ANSWER)], chunk=3)
    call = f"tools.mcp__vault__{CALLS[made].name}({json.dumps(CALLS[made].arguments)})"
    return Reply([Message(write_call("functions__exec", json.dumps({"input": f"text(await {call})"})))], chunk=3)


@over_both_transports
@every_new_program
async def test_under_a_name_for_which_codex_wants_code_the_model_writes_it(
    endpoint: Endpoint, program: TestProgram, websockets: bool, tmp_path: Path
) -> None:
    codex = client_of(program, tmp_path / "client")
    endpoint.model.choose = programmer
    codex.configure(provider(endpoint.url, websockets=websockets), model=CODING_MODEL)
    assert await codex.ask("When does Alpha start?") == ANSWER
    assert codex.calls == list(CALLS)


OVERFLOW = Failed("context_length_exceeded", "Your input exceeds the context window of this model.")


@over_both_transports
@every_new_program
async def test_codex_takes_an_overflow_in_mid_stream_for_one_and_asks_no_more(
    model: ScriptedModel, program: TestProgram, websockets: bool, tmp_path: Path
) -> None:
    codex = client_of(program, tmp_path / "client")
    with structlog.testing.capture_logs() as logs:
        async with tagcall_server(model, tmp_path / "home", store="memory") as url:
            model.default = Reply([Message("I will look at it all, and")], end=OVERFLOW)
            codex.configure(provider(url, websockets=websockets, retries=5))
            said = await codex.fail("When does Alpha start?")
    assert len(said) == 1
    assert "ran out of room in the model's context window" in said[0]
    assert len(model.requests) == 1
    outcomes = [line["outcome"] for line in logs if line["event"] == "request"]
    assert outcomes == (["done", "refused", "done"] if websockets else ["refused"]), "the warm-up, the turn, the socket"


@pytest.mark.parametrize(
    ("code", "sentence"), [("insufficient_quota", "Quota exceeded"), ("server_is_overloaded", "at capacity")]
)
@every_new_program
async def test_codex_gives_up_at_once_what_it_is_told_in_mid_stream_not_to_try_again(
    endpoint: Endpoint, program: TestProgram, code: str, sentence: str, tmp_path: Path
) -> None:
    codex = client_of(program, tmp_path / "client")
    endpoint.model.default = Reply([Message("I will look at it all, and")], end=Failed(code, "It failed."))
    codex.configure(provider(endpoint.url, websockets=False, retries=5))
    said = await codex.fail("When does Alpha start?")
    assert len(said) == 1
    assert sentence in said[0]
    assert len(endpoint.model.requests) == 1


@over_both_transports
@every_new_program
async def test_what_codex_was_given_for_a_tool_that_nobody_called_reaches_the_model_under_its_name(
    endpoint: Endpoint, program: TestProgram, websockets: bool, tmp_path: Path
) -> None:
    codex = client_of(program, tmp_path / "client")
    codex.configure(provider(endpoint.url, websockets=websockets))
    status = await codex.turn({"name": "read_note", "output": "The zebra is striped."})
    assert status == "completed"
    assert "[tool:read_note] The zebra is striped." in all_shown(endpoint.model.requests[-1].body)


@every_new_program
async def test_codex_shows_the_limits_of_the_account_behind_tagcall(
    model: ScriptedModel, program: TestProgram, tmp_path: Path
) -> None:
    codex = client_of(program, tmp_path / "client")
    told = {"x-codex-primary-used-percent": "43", "x-codex-primary-window-minutes": "300"}
    model.default = Reply([Message("Hi.")], headers=told)
    async with tagcall_server(model, tmp_path / "home", store="memory") as url, aiohttp.ClientSession() as session:
        async with session.post(f"{url}/responses", json={"model": "m", "input": "hi"}) as response:
            headers = response.headers
        assert (headers["x-ratelimit-limit-requests"], headers["x-ratelimit-remaining-requests"]) == ("100", "57")
        codex.configure(f'chatgpt_base_url = "{url}"\n{BASE_URL.format(url=url)}')
        codex.log_in()
        limits = await codex.limits()
    assert limits["primary"]["usedPercent"] == 43
    assert limits["primary"]["windowDurationMins"] == 300
