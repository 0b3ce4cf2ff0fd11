"""A turn recorded from the real codex program, or from any backend, is played back as its client saw it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from msgspec.structs import replace

from parser import write_call
from prompts.profiles import PROFILES
from proxy.backends import make_backend
from proxy.cli.record.document import Recording, compose
from proxy.cli.record.recorder import Recorder
from proxy.cli.record.scrub import Scrubber
from proxy.cli.replay import ReplayOptions, run_replay
from proxy.cli.shaping import shaping_settings
from proxy.contracts import BackendEvent, MessageEnded, Prompt, ReasoningEnded, ReasoningPiece, TextPiece, TurnEnded
from proxy.errors import BackendError
from proxy.replay.answers import (
    FixtureAnswer,
    FixtureBody,
    FixtureStream,
    ReplayJson,
    load_answer,
    read_events,
    without_comments,
)
from proxy.replay.fixture import load_fixtures
from proxy.replay.key_placeholder import PLACEHOLDER, key_of
from proxy.replay.normal import Names, normal
from proxy.server import running_server
from proxy.settings import Settings
from proxy.turn import FixedHabit, KeyHabit
from tests.proxy.replay.child import shown
from tests.support.codex_homes import informed_home
from tests.support.codex_programs import TestProgram, installed_programs
from tests.support.memory_backend import USAGE, MemoryBackend, Script
from tests.support.one_cut import replay_at_one_cut
from tests.support.patience import PATIENCE
from tests.support.scripted_model import Message, Reasoning, Reply, ScriptedModel

PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
QUESTION = "What is in a.md?"
TEXT = "I will read it.\n" + write_call("read_note", '{"path": "a.md"}')
ARGUMENTS = '{"path": "a.md"}'
RESPONSES = {
    "model": "gpt-5.5",
    "input": QUESTION,
    "tools": [{"type": "function", "name": "read_note", "parameters": PARAMETERS}],
    "reasoning": {"summary": "auto"},
}
CHAT = {
    "model": "gpt-5.5",
    "messages": [{"role": "user", "content": QUESTION}],
    "tools": [{"type": "function", "function": {"name": "read_note", "parameters": PARAMETERS}}],
}


class Client:
    """Of a server that records."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self._url = url
        self._http = http

    async def ask(self, path: str, body: ReplayJson) -> FixtureStream | FixtureBody:
        async with self._http.post(self._url.removesuffix("/v1") + path, json=body) as response:
            data = await response.read()
            if response.content_type == "text/event-stream":
                return FixtureStream(read_events(without_comments(data)))
            return FixtureBody(response.status, {}, orjson.loads(data))

    async def ask_by_websocket(self, message: ReplayJson) -> None:
        """Reads the answer to its end."""
        async with self._http.ws_connect(f"{self._url}/responses") as socket, asyncio.timeout(PATIENCE):
            await socket.send_json(message)
            while (await socket.receive_json())["type"] != "response.completed":
                pass


class CodexClient(Client):
    """`model` is what codex asks."""

    def __init__(self, url: str, http: aiohttp.ClientSession, model: ScriptedModel) -> None:
        super().__init__(url, http)
        self.model = model


@asynccontextmanager
async def recording(
    model: ScriptedModel, folder: Path, home: Path, program: TestProgram, **options: Any
) -> AsyncIterator[CodexClient]:
    assert program.path is not None, "openai-codex-cli-bin is not installed"
    async with aiohttp.ClientSession() as http:
        home = informed_home(home, program.path)
        settings = Settings(port=0, codex=str(program.path), codex_home=home, upstream=model.url, store="memory")
        async with Recorder(make_backend(settings), "codex", folder, Scrubber(**options), {}) as recorder:
            async with running_server(settings, recorder.backend, [recorder.middleware]) as url:
                yield CodexClient(url, http, model)


@asynccontextmanager
async def recording_memory(
    folder: Path, backend: MemoryBackend, habit: KeyHabit = KeyHabit.NEVER, **chosen: Any
) -> AsyncIterator[Client]:
    settings = Settings(port=0, store="memory", **chosen)
    async with aiohttp.ClientSession() as http:
        async with Recorder(backend, "memory", folder, Scrubber(), shaping_settings(settings)) as recorder:
            async with running_server(settings, recorder.backend, [recorder.middleware], FixedHabit(habit)) as url:
                yield Client(url, http)


def kept(folder: Path) -> list[Path]:
    return [folder / name for name in load_fixtures(folder)]


@pytest.fixture(autouse=True)
def _at_one_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_at_one_cut(monkeypatch)


@pytest.fixture
def program() -> TestProgram:
    return installed_programs()[0]


async def test_every_attempt_of_a_turn_is_recorded(model: ScriptedModel, program: TestProgram, tmp_path: Path) -> None:
    folder = tmp_path / "fixtures"
    async with recording(model, folder, tmp_path / "home", program) as server:
        broken, undeclared = write_call("read_note", "[1}"), write_call("no_such_tool", "{}")
        server.model.push(*(Reply([Message(text)]) for text in (broken, TEXT, undeclared, "Nothing.")))
        await server.ask("/v1/responses", RESPONSES)
        await server.ask("/v1/responses", RESPONSES | {"input": "And what in b.md?"})
    assert [len(fixture.turns) for fixture in load_fixtures(folder).values()] == [2, 2]
    assert await run_replay(folder, ReplayOptions()) == 0


async def test_the_proxys_own_lines_are_not_taken_for_the_users(
    model: ScriptedModel, program: TestProgram, tmp_path: Path
) -> None:
    folder = tmp_path / "fixtures"
    async with recording(model, folder, tmp_path / "home", program) as server:
        server.model.push(Reply([Message(TEXT)]))
        await server.ask("/v1/responses", RESPONSES | {"tool_choice": "required"})
    (fixture,) = load_fixtures(folder).values()
    assert fixture.meta["ask"] == {"last_user": QUESTION, "after_tools": [], "with_tools": True}
    (turn,) = fixture.turns
    assert turn.ask.seen is not None
    assert turn.ask.seen.messages != shown(QUESTION)


async def test_what_the_proxy_left_early_is_replayed_all_the_same(
    model: ScriptedModel, program: TestProgram, tmp_path: Path
) -> None:
    folder = tmp_path / "fixtures"
    async with recording(model, folder, tmp_path / "home", program) as server:
        said = f"{TEXT}\n{TEXT} and so on"
        server.model.push(Reply([Message(said + " and on")], chunk=5, hold_after=len(said) // 5, gate=asyncio.Event()))
        await server.ask("/v1/responses", RESPONSES | {"parallel_tool_calls": False, "stream": True})
    (fixture,) = load_fixtures(folder).values()
    assert fixture.turns[0].interrupted
    assert await run_replay(folder, ReplayOptions()) == 0


async def test_requests_at_once_do_not_get_each_others_lines(
    model: ScriptedModel, program: TestProgram, tmp_path: Path
) -> None:
    folder = tmp_path / "fixtures"
    async with recording(model, folder, tmp_path / "home", program) as server:
        server.model.push(*(Reply([Message(f"Answer {number}.")], chunk=1) for number in range(6)))
        same, others = [QUESTION] * 3, [f"Question {number}?" for number in range(3)]
        async with asyncio.TaskGroup() as group:
            for question in same + others:
                group.create_task(server.ask("/v1/responses", RESPONSES | {"input": question}), name=question)
    assert len(kept(folder)) == 6
    assert await run_replay(folder, ReplayOptions()) == 0


async def test_nothing_private_is_written(model: ScriptedModel, program: TestProgram, tmp_path: Path) -> None:
    folder, key = tmp_path / "fixtures", "sk-" + "k3Y" * 9
    async with recording(model, folder, tmp_path / "home", program, keys=["mine-alone"]) as server:
        server.model.push(Reply([Message(f"Use {key} and mine-alone in /home/alice/x, ann@corp.org.")], chunk=2))
        body = {"model": "gpt-5.5", "input": f"Is {key} in /home/alice/x?", "user": "ann-17", "stream": True}
        await server.ask("/v1/responses", body)
    (case,) = kept(folder)
    written = case.name + "".join(path.read_text("utf-8") for path in case.iterdir())
    assert not [word for word in (key, "mine-alone", "alice", "ann@", "ann-17", str(tmp_path)) if word in written]
    assert "Use [key] and [key] in /home/user/x, user@example.com." in written
    assert await run_replay(folder, ReplayOptions()) == 0


async def test_what_continues_a_stored_response_needs_no_store_to_be_replayed(
    model: ScriptedModel, program: TestProgram, tmp_path: Path
) -> None:
    folder = tmp_path / "fixtures"
    async with recording(model, folder, tmp_path / "home", program) as server:
        server.model.push(Reply([Message(TEXT)]), Reply([Message("It says hello.")]))
        first = await server.ask("/v1/responses", RESPONSES)
        assert isinstance(first, FixtureBody)
        assert isinstance(first.body, dict)
        call = next(item for item in first.body["output"] if item["type"] == "function_call")
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "hello"}
        continued = {"previous_response_id": first.body["id"], "input": [result]}
        await server.ask("/v1/responses", RESPONSES | continued)
    asked = load_fixtures(folder)["002-what-is-in-a-md-after-read-note"].meta["ask"]
    assert asked == {"last_user": QUESTION, "after_tools": ["read_note"], "with_tools": True}
    assert await run_replay(folder, ReplayOptions()) == 0


async def test_messages_of_the_user_in_a_row_are_recorded_and_so_is_a_compaction(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures"
    said = [{"role": "user", "content": "It is Monday."}, {"role": "user", "content": QUESTION}]
    async with recording_memory(folder, MemoryBackend(["It is empty.", "The sum."])) as server:
        await server.ask("/v1/responses", {"model": "m", "input": said})
        await server.ask("/v1/responses", {"model": "m", "input": [*said, {"type": "compaction_trigger"}]})
    assert len(kept(folder)) == 2
    assert await run_replay(folder, ReplayOptions()) == 0


async def test_a_conversation_that_was_summed_up_on_the_way_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "It is Monday. " * 400
    said = [{"role": "user", "content": long}, {"role": "user", "content": QUESTION}]
    management = [{"type": "compaction", "compact_threshold": 1000}]
    async with recording_memory(tmp_path / "fixtures", MemoryBackend(["The sum.", "It is empty."])) as server:
        await server.ask("/v1/responses", {"model": "m", "input": said, "context_management": management})
    assert "leave 'context_management' out" in capsys.readouterr().err


async def test_what_cannot_be_asked_again_is_not_written(
    model: ScriptedModel, program: TestProgram, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "fixtures"
    async with recording(model, folder, tmp_path / "home", program) as server:
        conversation = await server.ask("/v1/conversations", {})
        assert isinstance(conversation, FixtureBody)
        assert isinstance(conversation.body, dict)
        await server.ask("/v1/responses", RESPONSES | {"conversation": conversation.body["id"]})
        await server.ask("/v1/responses", {"model": "m", "input": 1})
    assert not folder.exists()
    assert capsys.readouterr().err == (
        "not recorded: it is part of a stored 'conversation': ask with 'previous_response_id' instead.\n"
    )


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_tool_loop_is_replayed_whatever_the_profile(profile: str, tmp_path: Path) -> None:
    folder = tmp_path / "fixtures"
    call = {"type": "function_call", "call_id": "call_a", "name": "read_note", "arguments": '{"path": "a.md"}'}
    result = {"type": "function_call_output", "call_id": "call_a", "output": "Beans, and garlic in the north bed."}
    loop = [{"role": "user", "content": QUESTION}, call, result]
    async with recording_memory(folder, MemoryBackend(["There are beans and garlic."]), profile=profile) as server:
        await server.ask("/v1/responses", RESPONSES | {"input": loop})
    assert await run_replay(folder, ReplayOptions()) == 0


@pytest.mark.parametrize("habit", KeyHabit)
async def test_what_was_known_of_the_model_is_recorded_and_known_again(habit: KeyHabit, tmp_path: Path) -> None:
    """The same words are another answer by what is known."""
    folder = tmp_path / "fixtures"
    explained = 'You would write "<tool_call>{"name": "read_note", "arguments": {"path": "a.md"}}</tool_call>".'
    async with recording_memory(folder, MemoryBackend([explained] * 2), habit, call_key="auto") as server:
        answer = await server.ask("/v1/responses", RESPONSES)
    assert "You would write" in answer.encode().decode()
    (case,) = load_fixtures(folder).values()
    assert (case.key_habit, len(case.turns)) == (habit.value, 2 if habit is KeyHabit.UNKNOWN else 1)
    assert await run_replay(folder, ReplayOptions()) == 0


@pytest.mark.parametrize("program", installed_programs(), ids=lambda program: program.version)
async def test_every_form_of_an_answer_is_replayed_as_it_was(
    model: ScriptedModel, program: TestProgram, tmp_path: Path
) -> None:
    got: list[FixtureStream | FixtureBody] = []
    requests = [(path, body | {"stream": stream}) for path, body in
                (("/v1/responses", RESPONSES), ("/v1/chat/completions", CHAT)) for stream in (True, False)]  # fmt: skip
    async with recording(model, tmp_path / "fixtures", tmp_path / "home", program) as server:
        for path, body in requests:
            server.model.push(Reply([Reasoning(["A note."]), Message(TEXT)], chunk=3))
            got.append(await server.ask(path, body))
    cases = kept(tmp_path / "fixtures")
    assert [case.name for case in cases] == [f"{number:03}-what-is-in-a-md" for number in (1, 2, 3, 4)]
    for case, answer in zip(cases, got, strict=True):
        promised = load_answer(case)
        assert promised is not None
        assert promised.encode() == normal(answer, Names()).encode()
    assert await run_replay(tmp_path / "fixtures", ReplayOptions()) == 0


CUT = TurnEnded(USAGE, "max_output_tokens")
LATE = BackendError("Half of it is lost.", code="mine", param="input", retryable=False)
BUSY = BackendError("Come back later.", status=429, type="rate_limit_error", code="busy", retry_after=7.0)
TWO_CALLS = f"{TEXT} {TEXT} and so on, and on"
TURNS: dict[str, tuple[Script, dict[str, Any]]] = {
    "a message that is never ended": ([TextPiece("Hi."), TurnEnded(USAGE)], {}),
    "two messages and what was thought": (
        [ReasoningPiece(0, "Hm."), ReasoningPiece(1, "So."), ReasoningEnded(), TextPiece("One."), MessageEnded(),
         ReasoningEnded(), TextPiece("Two."), MessageEnded(), TurnEnded(USAGE)],
        {"reasoning": {"summary": "auto"}},
    ),
    "no word": ([TurnEnded(USAGE)], {}),
    "no count of tokens": ([TextPiece("Hi."), MessageEnded(), TurnEnded(None)], {}),
    "cut by the model's limit": ([TextPiece("And then"), MessageEnded(), CUT], {}),
    "cut in a call": ([TextPiece(TEXT[:-20]), CUT], {}),
    "an error at once": (BUSY, {}),
    "an error in the middle": ([TextPiece("Half of"), LATE], {}),
    "left after the first call": (TWO_CALLS, {"parallel_tool_calls": False}),
    "left with the first call as the last word": (TEXT, {"parallel_tool_calls": False}),
    "left at the limit": ("word " * 100, {"max_output_tokens": 16}),
    "left at a result that the model invents": (f"{TEXT}\n[tool:call_1] found\n" + "and on " * 20, {}),
}  # fmt: skip


@pytest.mark.parametrize("stream", [True, False])
async def test_whatever_a_backend_says_is_replayed_as_it_was(stream: bool, tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for turn, (script, members) in TURNS.items():
        async with recording_memory(tmp_path / turn, MemoryBackend([script], chunk=3)) as server:
            got = await server.ask("/v1/responses", RESPONSES | members | {"stream": stream})
        (case,) = kept(tmp_path / turn)
        promised = load_answer(case)
        assert promised is not None, turn
        assert promised.encode() == normal(with_headers(got, promised), Names()).encode(), turn
        case.rename(folder / turn)
    assert await run_replay(folder, ReplayOptions()) == 0


def with_headers(got: FixtureAnswer, promised: FixtureAnswer) -> FixtureAnswer:
    match got, promised:
        case FixtureBody(), FixtureBody(headers=headers):
            return replace(got, headers=headers)
        case _:
            return got


def all_text(folder: Path) -> str:
    return "\n".join(file.read_text("utf-8") for file in folder.rglob("*.*") if file.is_file())


@pytest.mark.parametrize("write", [str.upper, lambda key: "".join(rf"\u{ord(char):04x}" for char in key)])
async def test_no_spelling_of_the_call_key_is_in_a_fixture(write: Callable[[str], str], tmp_path: Path) -> None:
    told = list[str]()

    def answer(prompt: Prompt) -> str:
        key = key_of(prompt.developer) or ""
        told.append(write(key))
        return f"My key is {told[-1]}. " + write_call("read_note", f'{{"path": "{told[-1]}"}}', key=key)

    async with recording_memory(tmp_path / "fixtures", MemoryBackend([answer], chunk=3)) as server:
        await server.ask("/v1/responses", RESPONSES | {"stream": True})
    assert told[0] not in all_text(tmp_path / "fixtures")
    assert await run_replay(tmp_path / "fixtures", ReplayOptions()) == 0


@pytest.mark.parametrize("mode", ["auto", "required"])
async def test_a_fixture_has_a_placeholder_for_the_call_key(mode: str, tmp_path: Path) -> None:
    keys = list[str]()

    def answer(prompt: Prompt) -> str:
        key = key_of(prompt.developer) or ""
        keys.append(key)
        return f"My key is {key}. {write_call('read_note', ARGUMENTS, key=key)}"

    backend = MemoryBackend([answer, answer], chunk=3)
    async with recording_memory(tmp_path / "fixtures", backend, call_key=mode) as server:
        await server.ask("/v1/responses", RESPONSES | {"stream": True})
        call = {"type": "function_call", "call_id": "call_1", "name": "read_note", "arguments": ARGUMENTS}
        output = {"type": "function_call_output", "call_id": "call_1", "output": "It is empty."}
        history = [{"role": "user", "content": "What is in a.md?"}, call, output]
        await server.ask("/v1/responses", RESPONSES | {"input": history, "stream": False})
    assert len(set(keys)) == 1
    assert keys[0] not in all_text(tmp_path / "fixtures")
    one, other = kept(tmp_path / "fixtures")
    assert PLACEHOLDER in (other / "backend.jsonl").read_text("utf-8")
    assert "function_call" in (one / "response.sse").read_text("utf-8")
    assert await run_replay(tmp_path / "fixtures", ReplayOptions()) == 0


@pytest.mark.parametrize("holds", [True, False])
async def test_calls_that_were_held_are_replayed_as_they_were(holds: bool, tmp_path: Path) -> None:
    held = f'{{"calls": [{{"name": "read_note", "arguments": {ARGUMENTS}}}]}}'
    backend = MemoryBackend([held], chunk=3, holds_schemas=holds)
    async with recording_memory(tmp_path / "fixtures", backend) as server:
        await server.ask("/v1/responses", RESPONSES | {"stream": True, "tool_choice": "required"})
    (fixture,) = kept(tmp_path / "fixtures")
    assert '"function_call"' in (fixture / "response.sse").read_text("utf-8")
    assert await run_replay(tmp_path / "fixtures", ReplayOptions()) == 0


@pytest.mark.parametrize("stream", [True, False])
async def test_what_was_left_at_a_stop_string_is_replayed_as_it_was(stream: bool, tmp_path: Path) -> None:
    backend = MemoryBackend(["One. Two. END Three. " * 10], chunk=3)
    async with recording_memory(tmp_path / "fixtures", backend) as server:
        await server.ask("/v1/chat/completions", CHAT | {"stop": ["END"], "stream": stream})
    (fixture,) = load_fixtures(tmp_path / "fixtures").values()
    assert fixture.turns[0].interrupted
    assert "Three. One." not in (tmp_path / "fixtures" / fixture.name / "backend.jsonl").read_text("utf-8")
    assert await run_replay(tmp_path / "fixtures", ReplayOptions()) == 0


async def test_recorders_of_one_folder_take_no_number_twice(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures"
    one, other = MemoryBackend(["Hi."] * 2), MemoryBackend(["Ho."])
    async with recording_memory(folder, one) as first:
        await first.ask("/v1/responses", RESPONSES)
        async with recording_memory(folder, other) as second:
            await second.ask("/v1/responses", RESPONSES)
        await first.ask("/v1/responses", RESPONSES)
    assert [case.name[:3] for case in kept(folder)] == ["001", "002", "003"]


async def test_others_are_answered_while_a_long_answer_is_written_and_written_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()

    def compose_long(recording: Recording, scrubber: Scrubber) -> dict[str, bytes]:
        assert answered.wait(PATIENCE)
        return compose(recording, scrubber)

    monkeypatch.setattr("proxy.cli.record.recorder.compose", compose_long)
    async with recording_memory(tmp_path / "fixtures", MemoryBackend(["Long.", "Short."])) as server:
        await server.ask("/v1/responses", RESPONSES | {"input": "first"})
        await server.ask("/v1/responses", RESPONSES | {"input": "second"})
        answered.set()
    assert [case.name for case in kept(tmp_path / "fixtures")] == ["001-first", "002-second"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_background_response_is_no_fixture(
    stream: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with recording_memory(tmp_path / "fixtures", MemoryBackend(["Hi."])) as server:
        await server.ask("/v1/responses", RESPONSES | {"background": True, "stream": stream})
    assert not (tmp_path / "fixtures").exists()
    assert capsys.readouterr().err == "not recorded: it goes on in the 'background': leave that out.\n"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/messages", "not recorded: it was asked in Anthropic's Messages.\n"),
        ("/api/chat", "not recorded: it was asked in Ollama's API.\n"),
        ("/v1/messages/count_tokens", ""),
    ],
)
async def test_what_was_asked_in_another_api_is_no_fixture(
    path: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"model": "m", "max_tokens": 9, "stream": False, "messages": [{"role": "user", "content": "Hello"}]}
    async with recording_memory(tmp_path / "fixtures", MemoryBackend(["Hi."])) as server:
        await server.ask(path, body)
        await server.ask(path, {**body, "messages": 1})
    assert not (tmp_path / "fixtures").exists()
    assert capsys.readouterr().err == said


async def test_what_was_asked_in_another_dialect_is_no_fixture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with recording_memory(tmp_path / "fixtures", MemoryBackend(["Hi."]), dialect="tokligence") as server:
        await server.ask("/v1/responses", RESPONSES)
    assert not (tmp_path / "fixtures").exists()
    assert capsys.readouterr().err == "not recorded: it was asked in the dialect of tokligence-gateway.\n"


async def test_what_was_asked_by_websocket_is_no_fixture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with recording_memory(tmp_path / "fixtures", MemoryBackend(["Hi."])) as server:
        await server.ask_by_websocket({"type": "response.create", "model": "m", "input": "Hello"})
    assert not (tmp_path / "fixtures").exists()
    assert capsys.readouterr().err == "not recorded: what is asked by WebSocket.\n"


NO_MODEL = {
    "no login": BackendError("codex is not logged in.", status=502, code="backend_auth", retryable=False),
    "no server": BackendError("The model server does not answer.", status=503, code="backend_unavailable"),
}


@pytest.mark.parametrize("error", NO_MODEL.values(), ids=NO_MODEL)
async def test_that_there_was_no_model_to_ask_is_told_and_not_written(
    error: BackendError, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with recording_memory(tmp_path / "fixtures", MemoryBackend([error])) as server:
        await server.ask("/v1/responses", RESPONSES)
    assert not (tmp_path / "fixtures").exists()
    assert f"not recorded: {error.message}" in capsys.readouterr().err


class Stuck(MemoryBackend):
    """Says nothing until it is left, as a server is that stops, and fails its turn then."""

    def __init__(self) -> None:
        super().__init__([BackendError("The proxy is shutting down.")])
        self.asked, self.gone = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        self.asked.set()
        await self.gone.wait()
        async with super().stream(prompt) as batches:
            yield batches

    async def __aexit__(self, *exc: object) -> None:
        self.gone.set()


async def test_what_the_servers_end_cut_off_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("proxy.server.DRAIN", 0.0)
    async with asyncio.TaskGroup() as group, recording_memory(tmp_path / "fixtures", stuck := Stuck()) as client:
        group.create_task(client.ask("/v1/responses", RESPONSES), name="cut off")
        await stuck.asked.wait()
    assert not (tmp_path / "fixtures").exists()
    assert capsys.readouterr().err == "not recorded: the server was stopped before it was answered.\n"
