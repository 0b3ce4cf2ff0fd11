"""The real program, in front of a scripted model."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import struct
import sys
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from prompts import DETAILS, Image, Item, Text
from proxy.backends.codex import LaneBounds
from proxy.backends.codex.backend import codex_backend, codex_environment
from proxy.backends.codex.config import PROVIDER
from proxy.contracts import (
    MessageEnded,
    Prompt,
    ReasoningEnded,
    ReasoningPiece,
    TextBackend,
    TextPiece,
    TurnEnded,
    Usage,
)
from proxy.errors import BackendError
from proxy.rpc import ChildTransport, Launch, RpcClient
from tests.support.backend_events import merged, prompt, read_turn
from tests.support.codex_homes import informed_home
from tests.support.codex_programs import TestProgram, child_environment
from tests.support.patience import PATIENCE, wait_for_codex
from tests.support.scripted_model import (
    Call,
    Cut,
    Failed,
    Incomplete,
    Message,
    Reasoning,
    Refusal,
    Reply,
    ScriptedModel,
    Silent,
    served,
)

USAGE = Usage(input_tokens=100, cached_tokens=40, output_tokens=20, reasoning_tokens=5)


@pytest.fixture(scope="module")
async def shared_model() -> AsyncIterator[ScriptedModel]:
    async with served(ScriptedModel()) as model:
        yield model


@pytest.fixture(scope="module")
async def shared_backend(
    program: TestProgram, shared_model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[TextBackend]:
    assert program.path is not None
    home = informed_home(tmp_path_factory.mktemp("shared") / "home", program.path)
    with pytest.MonkeyPatch.context() as patch:
        wait_for_codex(patch)
        async with codex_backend(
            home=home, program=str(program.path), upstream=shared_model.url, env=child_environment(home)
        ) as backend:
            yield backend


@pytest.fixture
def model(shared_model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    wait_for_codex(monkeypatch)
    shared_model.begin_anew()
    return shared_model


@pytest.fixture
def running(shared_backend: TextBackend, model: ScriptedModel) -> TextBackend:
    """In front of the scripted model; its process is that of the whole module."""
    return shared_backend


async def test_text_comes_as_the_model_wrote_it(running: TextBackend, model: ScriptedModel) -> None:
    model.push(Reply([Message("Hello there")], chunk=1))
    events = await read_turn(running, prompt())
    assert merged(events) == [TextPiece("Hello there"), MessageEnded(), TurnEnded(USAGE)]


@pytest.mark.parametrize("chunk", [1, 3, 1000])
async def test_markup_comes_unchanged(chunk: int, running: TextBackend, model: ScriptedModel) -> None:
    text = (
        'I look.\n<tool_call>{"name": "a", "arguments": {"b": "</c> <oai-mem> <"}}</tool_call>\n<<< \\u00e4 \r\n end <'
    )
    model.push(Reply([Message(text)], chunk=chunk))
    events = await read_turn(running, prompt())
    assert merged(events)[0] == TextPiece(text)


async def test_a_message_without_deltas_comes_whole(running: TextBackend, model: ScriptedModel) -> None:
    model.push(Reply([Message("all at once", deltas=False)]))
    events = await read_turn(running, prompt())
    assert events == [TextPiece("all at once"), MessageEnded(), TurnEnded(USAGE)]


async def test_reasoning_comes_by_its_parts_before_the_message(running: TextBackend, model: ScriptedModel) -> None:
    model.push(Reply([Reasoning(["**Looking**", "Found it"], raw="private"), Message("Done.")]))
    events = await read_turn(running, Prompt("m", None, (Text("hi"),), effort="high", summary="auto"))
    assert merged(events) == [
        ReasoningPiece(0, "**Looking**"),
        ReasoningPiece(1, "Found it"),
        ReasoningEnded(),
        TextPiece("Done."),
        MessageEnded(),
        TurnEnded(USAGE),
    ]


async def test_the_service_tier_reaches_the_model(
    running: TextBackend, model: ScriptedModel, program: TestProgram
) -> None:
    """codex sends `flex` for every model, and `priority` for those that its table says it of."""
    if program.release < (0, 160):
        pytest.skip("this version knows no tiers, and passes over them")
    for name, tier in (("gpt-5.5", "priority"), ("gpt-5.5", None), ("any", "flex"), ("any", None)):
        await read_turn(running, Prompt(name, None, (Text("hi"),), tier=tier))
    assert [request.body.get("service_tier") for request in model.requests] == ["priority", None, "flex", None]


async def test_the_verbosity_reaches_the_models_that_have_one(running: TextBackend, model: ScriptedModel) -> None:
    for name, verbosity in (("gpt-5.5", "high"), ("gpt-5.5", "medium"), ("any", "high")):
        await read_turn(running, Prompt(name, None, (Text("hi"),), verbosity=verbosity))
    sent = [request.body.get("text", {}).get("verbosity") for request in model.requests]
    assert sent == ["high", "medium", None]


async def test_what_is_said_of_a_models_verbosity_is_what_reaches_it(
    running: TextBackend, model: ScriptedModel, program: TestProgram
) -> None:
    if program.release < (0, 133):
        pytest.skip("this version shows no table of its models")
    names = ["gpt-5.5", "gpt-5.5-of-mine", "mine/gpt-5.5", "gpt-5.4-mini", "codex-mini", "any", "g"]
    for name in names:
        await read_turn(running, Prompt(name, None, (Text("hi"),), verbosity="high"))
    said = {name: "verbosity" in running.heeds(name) for name in names}
    assert said == {request.body["model"]: "verbosity" in request.body.get("text", {}) for request in model.requests}
    assert {*said.values()} == {True, False}


async def test_effort_and_summary_reach_the_model(
    running: TextBackend, model: ScriptedModel, program: TestProgram
) -> None:
    await read_turn(running, Prompt("gpt-5.2", None, (Text("hi"),), effort="high", summary="detailed"))
    await read_turn(running, Prompt("gpt-5.2", None, (Text("hi"),), effort="low"))
    asked, unasked = (request.body["reasoning"] for request in model.requests)
    if program.release < (0, 100) and asked is None:
        pytest.skip("this version sends no reasoning settings for the model")
    assert asked == {"effort": "high", "summary": "detailed"}
    assert unasked == {"effort": "low"}


POINT = """{
  "type": "object",
  "properties": {"x": {"type": "integer", "minimum": -5}, "note": {"type": ["string", "null"], "pattern": "^a"}},
  "required": ["x", "note"], "additionalProperties": false
}"""


async def test_a_schema_for_the_answer_reaches_the_model_as_it_is(running: TextBackend, model: ScriptedModel) -> None:
    await read_turn(running, Prompt("gpt-5.2", None, (Text("hi"),), output_schema=POINT))
    await read_turn(running, prompt())
    held, free = (request.body.get("text", {}).get("format") for request in model.requests)
    assert held == {
        "type": "json_schema",
        "strict": True,
        "name": "codex_output_schema",
        "schema": json.loads(POINT),
    }
    assert free is None


async def test_a_schema_that_strict_mode_would_refuse_is_not_sent(running: TextBackend, model: ScriptedModel) -> None:
    await read_turn(running, Prompt("gpt-5.2", None, (Text("hi"),), output_schema='{"type": "object"}'))
    assert "format" not in model.requests[0].body.get("text", {})


async def test_a_schema_that_the_service_refuses_is_told_apart(running: TextBackend, model: ScriptedModel) -> None:
    message = "Invalid schema for response_format 'codex_output_schema': In context=(), 'x' is not permitted."
    error = {
        "message": message,
        "type": "invalid_request_error",
        "param": "text.format.schema",
        "code": "invalid_json_schema",
    }
    model.push(Refusal(400, error))
    with pytest.raises(BackendError) as caught:
        await read_turn(running, Prompt("gpt-5.2", None, (Text("hi"),), output_schema=POINT))
    assert (caught.value.status, caught.value.code, caught.value.message) == (400, "invalid_json_schema", message)


async def test_an_input_that_is_too_long_for_the_model_says_so_in_openais_words(
    running: TextBackend, model: ScriptedModel
) -> None:
    message = "Your input exceeds the context window of this model. Please adjust your input and try again."
    error = {"message": message, "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}
    model.push(Reply([], end=Failed("context_length_exceeded", message)), Refusal(400, error))
    for _ in range(2):
        with pytest.raises(BackendError) as caught:
            await read_turn(running, prompt())
        assert caught.value.error_object() == error
        assert caught.value.status == 400


async def test_instructions_and_conversation_reach_the_model_unchanged(
    running: TextBackend, model: ScriptedModel
) -> None:
    await read_turn(running, prompt("line one\n\n<b>ä \N{PARTY POPPER}</b>", developer="Be brief.\n"))
    texts = [(item["role"], item["content"][-1]["text"]) for item in model.requests[0].body["input"]]
    assert texts[-1] == ("user", "line one\n\n<b>ä \N{PARTY POPPER}</b>")
    assert ("developer", "Be brief.\n") in texts


async def test_an_image_reaches_the_model(running: TextBackend, model: ScriptedModel) -> None:
    url = "data:image/png;base64," + base64.b64encode(png()).decode()
    await read_turn(running, Prompt("m", None, (Text("what is this?"), Image(url))))
    content = [part for item in model.requests[0].body["input"] for part in item["content"]]
    assert [part["image_url"][:22] for part in content if part["type"] == "input_image"] == ["data:image/png;base64,"]


@pytest.mark.parametrize("asked", [None, *DETAILS])
async def test_an_image_is_shown_as_closely_as_codex_can(
    home: Path, program: TestProgram, model: ScriptedModel, asked: str | None
) -> None:
    """The same in what is said now and in what was said before, wherever codex tells one."""
    image = Image("data:image/png;base64," + base64.b64encode(png()).decode(), asked)
    one, two = (Item("user", (Text(text), image), text.encode()) for text in ("One.", "Two."))
    said = (one, Item("assistant", (Text("Seen."),), b"Seen."), two)
    env = child_environment(home)
    async with codex_backend(
        home=home, program=str(program.path), upstream=model.url, env=env, lanes=LaneBounds()
    ) as backend:
        await read_turn(backend, Prompt("m", None, (Text("One."), image, image), items=said))
    messages = model.requests[0].body["input"]
    content = [part for item in messages for part in item["content"]]
    details = [part.get("detail") for part in content if part["type"] == "input_image"]
    assert len(details) == 2
    if program.release < (0, 133):
        assert details == [None, None]
    else:
        assert [item["content"][0]["text"] for item in messages[-3:]] == ["One.", "Seen.", "Two."]
        # 0.169 shows every image as it is
        assert details in ([["original"] * 2] if asked == "original" else [["high"] * 2, ["original"] * 2])


async def test_leaving_the_stream_closes_the_models_stream(running: TextBackend, model: ScriptedModel) -> None:
    # 0.89 looks whether anybody still listens when the model says its next word.
    model.push(Reply([Message("word " * 10_000)], chunk=5, pace=0.01))
    async with running.stream(prompt()) as batches:
        await anext(batches)
    async with asyncio.timeout(PATIENCE):
        await model.stream_closed.wait()


async def test_leaving_before_the_turn_began_leaves_nothing_behind(backend: TextBackend, model: ScriptedModel) -> None:
    model.default = Reply([Message("never read")], gate=asyncio.Event())
    async with backend:
        await backend.health()
        for _ in range(5):
            async with backend.stream(prompt()):
                await asyncio.sleep(0)
        model.default = Reply([Message("next")])
        assert merged(await read_turn(backend, prompt()))[0] == TextPiece("next")


async def test_turns_run_beside_each_other(running: TextBackend, model: ScriptedModel) -> None:
    def echo(body: Mapping[str, Any]) -> Reply:
        return Reply([Message(f"to {body['input'][-1]['content'][-1]['text']}")], chunk=1)

    model.choose = echo
    async with asyncio.TaskGroup() as group:
        turns = [group.create_task(read_turn(running, prompt(f"caller {n}"))) for n in range(8)]
    assert [merged(turn.result())[0] for turn in turns] == [TextPiece(f"to caller {n}") for n in range(8)]


async def test_a_killed_child_fails_its_turn_and_the_next_turn_works(
    backend: TextBackend, model: ScriptedModel, children: Children
) -> None:
    model.push(Reply([Message("half an answer")], chunk=4, hold_after=1, gate=asyncio.Event()))
    async with backend:
        with pytest.raises(BackendError) as failed:
            async with backend.stream(prompt()) as batches:
                await anext(batches)
                os.kill(children.pids[-1], signal.SIGKILL)
                await anext(batches)
        assert (failed.value.status, failed.value.code) == (502, "backend_disconnected")
        assert merged(await read_turn(backend, prompt()))[-1] == TurnEnded(USAGE)


async def test_a_turn_that_told_nothing_is_started_again_on_the_next_child(
    backend: TextBackend, model: ScriptedModel, children: Children
) -> None:
    model.push(Reply([], gate=asyncio.Event()))
    async with backend, asyncio.TaskGroup() as group:
        turn = group.create_task(read_turn(backend, prompt()))
        await model.called.wait()
        os.kill(children.pids[-1], signal.SIGKILL)
    assert merged(turn.result())[0] == TextPiece("Hello from the scripted model.")


async def test_no_child_is_left_after_the_end(backend: TextBackend, model: ScriptedModel, children: Children) -> None:
    model.push(Reply([Message("never whole")], hold_after=1, gate=asyncio.Event()))
    async with backend:
        async with backend.stream(prompt()) as batches:
            await anext(batches)
    assert children.pids
    for pid in children.pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


TOO_OLD = (
    "The 'gpt-5.6-sol' model requires a newer version of Codex. Please upgrade to the latest app or CLI and try again."
)
ERRORS: Mapping[str, tuple[Reply | Refusal, tuple[int, str]]] = {
    "400": (Refusal(400, {"message": "Bad thing", "type": "invalid_request_error"}), (400, "invalid_prompt")),
    "401": (Refusal(401, {"message": "no key"}), (502, "backend_auth")),
    "404": (Refusal(404, {"message": "gone", "code": "model_not_found"}), (400, "model_not_found")),
    "429": (Refusal(429, {"message": "slow down"}), (429, "rate_limit_exceeded")),
    "429 usage": (
        Refusal(429, {"type": "usage_limit_reached", "message": "limit", "plan_type": "plus"}),
        (429, "insufficient_quota"),
    ),
    "too old": (Refusal(400, body={"detail": TOO_OLD}), (400, "newer_codex_required")),
    "too old, as OpenAI": (Refusal(400, {"message": TOO_OLD}), (400, "newer_codex_required")),
    "500": (Refusal(500), (502, "backend_error")),
    "503": (Refusal(503, {"message": "busy", "code": "server_is_overloaded"}), (503, "server_is_overloaded")),
    "context": (Reply([], end=Failed("context_length_exceeded", "too long")), (400, "context_length_exceeded")),
    "quota": (Reply([], end=Failed("insufficient_quota", "no money")), (429, "insufficient_quota")),
    "rate": (
        Reply([], end=Failed("rate_limit_exceeded", "Rate limit reached for x. Please try again in 11.054s.")),
        (429, "rate_limit_exceeded"),
    ),
    "cut": (Reply([], end=Cut()), (502, "backend_error")),
    "silent": (Reply([], end=Silent()), (502, "backend_error")),
}


async def test_the_upstreams_failure_becomes_the_clients_error(running: TextBackend, model: ScriptedModel) -> None:
    for number, (case, (reply, expected)) in enumerate(ERRORS.items(), start=1):
        model.push(reply)
        with pytest.raises(BackendError) as failed:
            await read_turn(running, prompt())
        assert (failed.value.status, failed.value.code) == expected, case
        assert "127.0.0.1" not in failed.value.message, case
        assert "{" not in failed.value.message, case
        assert len(model.requests) == number, f"{case}: codex must not retry"


async def test_a_cut_answer_is_incomplete_and_no_error(
    running: TextBackend, model: ScriptedModel, program: TestProgram
) -> None:
    model.push(Reply([Message("cut of")], end=Incomplete("max_output_tokens")))
    if program.release < (0, 100):
        # It does not tell a cut answer from a lost one.
        with pytest.raises(BackendError):
            await read_turn(running, prompt())
    else:
        events = merged(await read_turn(running, prompt()))
        assert events == [TextPiece("cut of"), MessageEnded(), TurnEnded(USAGE, "max_output_tokens")]


async def test_a_prompt_beyond_the_limit_is_refused_before_it_is_sent(
    running: TextBackend, model: ScriptedModel
) -> None:
    with pytest.raises(BackendError) as failed:
        await read_turn(running, prompt("x" * 1_048_577))
    assert failed.value.error_object() == {
        "message": "Your input exceeds the context window of this model. Please adjust your input and try again. "
        "The backend takes 1,048,576 characters in one request, and this one has 1,048,577.",
        "type": "invalid_request_error",
        "param": "input",
        "code": "context_length_exceeded",
    }
    await read_turn(running, prompt("ä" * 1_048_576))
    assert len(model.requests) == 1


async def test_a_home_that_cannot_be_written_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    home = tmp_path / "file" / "codex"
    async with codex_backend(home=home, program=sys.executable) as backend:
        problem = str((await backend.health()).problem)
    told = f"codex does not start: {home} cannot be written (Not a directory): name a folder of yours with --codex-home"
    assert problem.startswith(f"{told} DIR. It")


async def test_without_a_login_nothing_is_sent(home: Path, program: TestProgram) -> None:
    async with codex_backend(home=home, program=str(program.path), env=child_environment(home)) as backend:
        health = await backend.health()
        with pytest.raises(BackendError) as failed:
            await read_turn(backend, prompt())
    assert health.problem == "codex is not logged in: run `tagcall login`."
    assert (failed.value.status, failed.value.code, failed.value.retryable) == (502, "backend_auth", False)
    assert failed.value.message == health.problem


async def test_a_login_made_meanwhile_is_used(home: Path, program: TestProgram) -> None:
    async with codex_backend(home=home, program=str(program.path), env=child_environment(home)) as backend:
        assert (await backend.health()).problem is not None
        await log_in(home, program)
        assert (await backend.health()).problem is None


def test_codex_sees_what_it_needs_and_no_keys_that_happen_to_be_set(tmp_path: Path) -> None:
    needed = {"PATH": "/bin", "HOME": "/home/me", "LC_ALL": "C", "https_proxy": "http://proxy", "NO_PROXY": "localhost"}
    others = {
        "OPENAI_API_KEY": "sk",
        "TAGCALL_API_KEY": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "CODEX_HOME": "/mine",
        "X": "1",
    }
    assert codex_environment(tmp_path, {**needed, **others}) == {
        **needed,
        "RUST_LOG": "error",
        "CODEX_HOME": str(tmp_path),
    }


def test_on_windows_codex_sees_what_no_program_there_runs_without(tmp_path: Path) -> None:
    needed = ("SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
    shown = codex_environment(tmp_path, dict.fromkeys((*needed, "ONEDRIVE", "COMPUTERNAME"), "x"))
    assert shown.keys() - {"RUST_LOG", "CODEX_HOME"} == set(needed)


async def test_a_login_never_goes_to_an_upstream(home: Path, program: TestProgram, model: ScriptedModel) -> None:
    await log_in(home, program)
    before = (home / "auth.json").read_bytes()
    env = {**child_environment(home), "OPENAI_API_KEY": "sk-test-environment", "CODEX_API_KEY": "sk-test-environment"}
    async with codex_backend(home=home, program=str(program.path), upstream=model.url, env=env) as backend:
        await read_turn(backend, prompt())
    assert "authorization" not in {name.lower() for name in model.requests[0].headers}
    assert (home / "auth.json").read_bytes() == before


# 0.89 keeps these whatever it is told.
TOOLS_OF_089 = {
    "list_mcp_resources",
    "list_mcp_resource_templates",
    "read_mcp_resource",
    "update_plan",
    "view_image",
}


@pytest.mark.parametrize("name", ["some-model", "gpt-5.5", "gpt-6.1-sol", "gpt-5.6-luna", "vendor/other"])
async def test_the_model_is_offered_no_tool_of_codexs_own(
    name: str, running: TextBackend, model: ScriptedModel, program: TestProgram
) -> None:
    await read_turn(running, prompt(model=name))
    body = model.requests[0].body
    assert body["model"] == name
    tools = {tool["name"] for tool in body.get("tools") or ()}
    assert tools == (set() if program.supported else TOOLS_OF_089)
    assert [item["type"] for item in body["input"] if item["type"] != "message"] == []


async def test_the_base_instructions_are_codexs_own(
    tmp_path: Path, running: TextBackend, model: ScriptedModel, program: TestProgram
) -> None:
    names = ["some-model", "gpt-5.5", "gpt-6.1-sol", "vendor/other"]
    for name in names:
        await read_turn(running, prompt(model=name, developer="OURS"))
    await run_with_default_settings(program, tmp_path / "control", model, names)
    asked = [request.body for request in model.requests]
    for name, ours, control in zip(names, asked[: len(names)], asked[len(names) :], strict=True):
        assert (ours["model"], control["model"]) == (name, name)
        assert base_instructions(ours) == base_instructions(control), name
        everything = [part["text"] for item in ours["input"] for part in item["content"]]
        if program.supported:
            assert everything == [base_instructions(ours), "OURS", "hi"]


async def test_base_instructions_are_replaced_on_request(
    home: Path, model: ScriptedModel, program: TestProgram
) -> None:
    async with codex_backend(
        home=home, program=str(program.path), upstream=model.url, base_instructions="", env=child_environment(home)
    ) as backend:
        await read_turn(backend, prompt())
    assert "Codex" not in str(model.requests[0].body)


async def test_a_model_that_calls_a_tool_all_the_same_gets_no_second_word(
    running: TextBackend, model: ScriptedModel, program: TestProgram, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png())
    model.push(Reply([Call("view_image", f'{{"path": "{secret}"}}')]), Reply([Message("it shows ...")]))
    if program.supported:
        await read_turn(running, prompt())
        assert base64.b64encode(png()).decode() not in str(model.requests[-1].body)
    else:
        # It runs the tool before anybody can stop it, and on a busy machine it asks the model once more.
        with pytest.raises(BackendError) as failed:
            await read_turn(running, prompt())
        assert failed.value.code == "backend_not_text_only"


async def test_the_configured_models_are_named_first(home: Path, model: ScriptedModel, program: TestProgram) -> None:
    async with codex_backend(
        home=home,
        program=str(program.path),
        upstream=model.url,
        models=["mine", "gpt-5.5"],
        env=child_environment(home),
    ) as backend:
        names = [it.id for it in await backend.models()]
    assert names[:2] == ["mine", "gpt-5.5"]
    assert len(names) == len(set(names)) > 3
    assert "" not in names


async def test_health_tells_the_version(running: TextBackend, program: TestProgram) -> None:
    health = await running.health()
    assert (health.problem, health.version) == (None, program.version)


class Children:
    """The children that were started, in order."""

    def __init__(self) -> None:
        self.pids: list[int] = []


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    children, start = Children(), ChildTransport.start

    async def remembering(launch: Launch) -> ChildTransport:
        transport = await start(launch)
        children.pids.append(transport.pid)
        return transport

    monkeypatch.setattr(ChildTransport, "start", remembering)
    return children


async def log_in(home: Path, program: TestProgram) -> None:
    """codex's own login, with a key that nobody gave out."""
    assert program.path is not None
    os.makedirs(home, exist_ok=True)  # noqa: PTH103 -- Path.mkdir is taken for slow in a coroutine
    process = await asyncio.create_subprocess_exec(
        program.path,
        "login",
        "--with-api-key",
        env={**child_environment(home), "CODEX_HOME": str(home)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    await process.communicate(b"sk-test-nobody\n")
    assert process.returncode == 0


async def run_with_default_settings(
    program: TestProgram, home: Path, model: ScriptedModel, names: Sequence[str]
) -> None:
    """One turn by each model of codex as it comes, with nothing set but where the models are."""
    write_default_settings(home, model)
    env = {**child_environment(home), "CODEX_HOME": str(home)}
    client = RpcClient(
        await ChildTransport.start(Launch([str(program.path), "app-server"], env, home)),
        on_notification=lambda method, params: None,
    )
    async with client.running():
        await client.request("initialize", {"clientInfo": {"name": "control", "version": "0"}}, deadline=PATIENCE)
        client.notify("initialized")
        for name in names:
            seen = len(model.requests)
            model.called.clear()
            thread = await client.request("thread/start", {"model": name, "cwd": str(home)}, deadline=PATIENCE)
            turn = {"threadId": thread["thread"]["id"], "input": [{"type": "text", "text": "hi"}]}
            await client.request("turn/start", turn, deadline=PATIENCE)
            async with asyncio.timeout(PATIENCE):
                while len(model.requests) == seen:
                    await model.called.wait()


def write_default_settings(home: Path, model: ScriptedModel) -> None:
    home.mkdir()
    (home / "config.toml").write_text(
        f'model_provider = "{PROVIDER}"\n[model_providers.{PROVIDER}]\nname = "{PROVIDER}"\n'
        f'base_url = "{model.url}"\nwire_api = "responses"\nrequires_openai_auth = false\n'
    )


def base_instructions(body: Mapping[str, Any]) -> str:
    if body.get("instructions"):
        return str(body["instructions"])
    return next(
        str(item["content"][0]["text"])
        for item in body["input"]
        if item.get("role") == "developer" and "content" in item
    )


def png() -> bytes:
    """One grey pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixel = zlib.compress(b"\0\x80")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
