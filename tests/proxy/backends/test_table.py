"""The rows of the table, and what follows from one: a backend of one short file does all that the others do."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from openai.types.responses import ResponseFunctionToolCall

from proxy.backends import BACKENDS, Finding, backend_forms, backend_help, find_kind, make_backend
from proxy.cli.doctor import run_doctor
from proxy.cli.replay import ReplayOptions, run_replay
from proxy.errors import UsageError
from proxy.replay.fixture import load_fixtures
from proxy.server import running_server
from proxy.settings import SETTINGS, Settings
from proxy.sources import load
from tests.support import scripted_backend
from tests.support.patience import PATIENCE
from tests.support.scripted_backend import SCRIPTED

ROOT = Path(__file__).resolve().parents[3]
SCRIPTED_SETTINGS = Settings(port=0, backend="scripted:a.md", store="memory", call_key="off")

# `tagcall` with one row more, put in before anything has read the table.
TAGCALL = """
import sys
from proxy.backends.table import BACKENDS
from tests.support.scripted_backend import SCRIPTED
BACKENDS["scripted"] = SCRIPTED
from proxy.cli import main
sys.exit(main())
"""


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "scripted", SCRIPTED)


@asynccontextmanager
async def tagcall(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("TAGCALL_")}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", TAGCALL, *arguments,
        cwd=ROOT, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
            await child.communicate()


async def outcome(*arguments: str) -> tuple[int | None, str]:
    """Exit status and all that was printed, with every run of white space as one blank."""
    async with tagcall(*arguments) as child:
        printed = b"".join(await child.communicate()).decode()
    return child.returncode, " ".join(printed.split())


async def run_tool_loop(url: str) -> tuple[str, str]:
    """The call's arguments, and the answer to its result."""
    ask: list[Any] = [{"role": "user", "content": "What does the note say?"}]
    http_client = DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncOpenAI(base_url=url, api_key="any", max_retries=0, http_client=http_client) as client:
        tool: Any = {"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False}
        first = await client.responses.create(model="scripted", input=ask, tools=[tool])
        (call,) = (item for item in first.output if isinstance(item, ResponseFunctionToolCall))
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "hello"}
        ask += [call.model_dump(), result]
        second = await client.responses.create(model="scripted", input=ask, tools=[tool])
    return call.arguments, second.output_text


def test_a_backend_is_a_file_of_forty_lines() -> None:
    assert len(Path(scripted_backend.__file__).read_text("utf-8").splitlines()) <= 40


@pytest.mark.usefixtures("scripted")
async def test_it_serves_a_whole_tool_loop() -> None:
    async with running_server(SCRIPTED_SETTINGS) as url:
        assert await run_tool_loop(url) == ('{"note": "a.md"}', "I have read it.")


@pytest.mark.usefixtures("scripted")
async def test_doctor_shows_what_its_row_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert await run_doctor(SCRIPTED_SETTINGS) == 0
    lines = [line.split(maxsplit=2)[1:] for line in capsys.readouterr().out.splitlines() if line.startswith("  ok")]
    assert lines[4:-1] == [
        ["note", "scripted:a.md can be read"],
        ["backend", "answers and takes turns (1.0)"],
        ["models", "scripted"],
    ]
    assert lines[-1][0] == "turn"


async def test_record_writes_what_it_said_and_replay_accepts_it(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures"
    arguments = ("record", str(folder), "--backend", "scripted:a.md", "--port", "0", "--store", "none")
    async with asyncio.timeout(PATIENCE), tagcall(*arguments) as child:
        assert child.stdout is not None
        url = (await child.stdout.readline()).decode().strip().removeprefix("tagcall is ready on ")
        await run_tool_loop(url)
        child.send_signal(signal.SIGTERM)
        await child.communicate()
    fixtures = load_fixtures(folder)
    assert [fixture.meta["note"] for fixture in fixtures.values()] == [
        "Recorded with --backend scripted, version 1.0."
    ] * 2
    assert await run_replay(folder, ReplayOptions()) == 0


async def test_help_and_errors_name_it() -> None:
    status, printed = await outcome("serve", "--help")
    assert status == 0
    assert "|scripted:NOTE" in printed
    assert "`scripted:NOTE`: a script that reads a note." in printed
    status, printed = await outcome("serve", "--backend", "magic")
    assert status == 2
    assert printed.endswith(" or scripted:NOTE.")


@pytest.mark.parametrize("broken", ["magic", "codex:x", "auto:", "replay", "replay:", "ws", "ws://", "unix:/"])
def test_what_names_no_backend_is_told_what_does(broken: str) -> None:
    with pytest.raises(UsageError) as refused:
        make_backend(Settings(backend=broken))
    assert str(refused.value).startswith(f"--backend {broken} is unknown: use auto, codex, replay:DIR, ws://HOST:PORT")


@pytest.mark.parametrize(
    "broken",
    [
        "http://[bad/v1", "http://h:99999/v1", "https://h:abc", "http://a b/v1", "http://:80/v1", "ws://[bad",
        "wss://h:99999", f"http://{'a' * 64}/v1",
    ],
)  # fmt: skip
def test_an_address_that_can_be_none_is_told(broken: str) -> None:
    scheme = broken.partition(":")[0]
    with pytest.raises(UsageError, match=rf"^--backend .* is not an address: write {scheme}://HOST:PORT"):
        make_backend(Settings(backend=broken))


@pytest.mark.parametrize("backend", ["ollama", "http://127.0.0.1:8080/v1", "replay:fixtures"])
def test_results_go_out_as_outputs_to_codex_alone(backend: str) -> None:
    with pytest.raises(UsageError) as refused:
        make_backend(Settings(backend=backend, results_as="tool"))
    assert str(refused.value) == f"--results-as tool is for codex: leave it out with --backend {backend}."


@pytest.mark.parametrize("name", ["backend_key", "backend_key_file"])
@pytest.mark.parametrize("backend", ["auto", "codex", "ws://127.0.0.1:1", "unix:/run/codex.sock"])
def test_a_key_of_the_backend_is_refused_by_codex(backend: str, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        make_backend(load({"backend": backend, name: "key"}, {}))
    flag = f"--{name.replace('_', '-')}"
    assert str(refused.value) == f"{flag} is for a Chat Completions server: name that with --backend, or give no key."


@pytest.mark.parametrize(
    "address", ["http://[::1]:8080/v1", "https://m\u00fcnchen.example", "http://h", "ws://10.0.0.1:1"]
)
def test_an_address_may_be_any_host_with_and_without_a_port(address: str) -> None:
    assert find_kind(address).address


@pytest.mark.parametrize(
    ("backend", "name"), [("auto", "codex"), ("ws://h:1", "ws"), ("wss://h:1", "ws"), ("unix:/s", "unix")]
)
def test_what_stands_before_the_colon_is_the_kind(backend: str, name: str) -> None:
    assert find_kind(backend) is BACKENDS[name]


def test_every_kind_is_in_the_flags_help_once() -> None:
    (row,) = (row for row in SETTINGS if row.name == "backend")
    assert row.metavar == "|".join(backend_forms())
    assert row.help.endswith(backend_help())
    assert re.findall(r"`([^`]+)`", row.help) == backend_forms()


async def test_a_red_finding_of_the_row_ends_the_examination(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def find_nothing(_: object) -> list[Finding]:
        return [Finding("note", False, "is not there", "Write it.")]

    monkeypatch.setitem(BACKENDS, "scripted", replace(SCRIPTED, check_before=find_nothing))
    assert await run_doctor(SCRIPTED_SETTINGS) == 1
    printed = capsys.readouterr().out
    assert re.search(r"no +note +is not there\n +Write it\.", printed)
    assert "takes turns" not in printed
