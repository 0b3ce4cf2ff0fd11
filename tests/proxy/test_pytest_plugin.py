"""The pytest plugin in somebody else's project."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.cli.commands import build_parser
from proxy.cli.replay import ReplayOptions, run_replay
from tests.support.one_cut import replay_at_one_cut
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.support.sample_project import SampleProject, answers
from tests.support.scripted_model import ScriptedModel

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"

TEST = """
import pytest
from openai import BadRequestError, OpenAI

TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}

def client_of(url):
    return OpenAI(base_url=url, api_key="any", max_retries=0)

def test_calls(tagcall_server):
    client = client_of(tagcall_server("fixtures"))
    answer = client.responses.create(model="gpt-5.5", input="Weather in Paris and Rome?", tools=[TOOL])
    assert [item.name for item in answer.output if item.type == "function_call"] == ["get_weather"] * 2

def test_the_server_is_shared_unless_a_fresh_one_is_wanted(tagcall_server):
    assert tagcall_server("fixtures") == tagcall_server("fixtures")
    assert tagcall_server("fixtures", fresh=True) != tagcall_server("fixtures")

def test_what_nothing_answers_is_told(tagcall_server):
    with pytest.raises(BadRequestError, match="The nearest is codex-0.169.0-two-calls"):
        client_of(tagcall_server("fixtures")).responses.create(model="gpt-5.5", input="Weather in Oslo and Rome?")

def test_damage(tagcall_server):
    tagcall_server("damaged")
"""


@pytest.fixture(autouse=True)
def _at_one_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_at_one_cut(monkeypatch)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "codex-0.169.0-two-calls").symlink_to(FIXTURES / "codex-0.169.0-two-calls")
    (tmp_path / "damaged" / "case").mkdir(parents=True)
    (tmp_path / "damaged" / "case" / "backend.jsonl").write_text("{", "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", "utf-8")
    (tmp_path / "test_agent.py").write_text(TEST, "utf-8")
    return tmp_path


def test_tests_get_recorded_answers_and_damage_is_one_sentence(project: Path) -> None:
    # Here it is found under its name in the project, as no wheel has been built; other plugins want their own settings.
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "proxy.pytest_plugin", "-q"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TAGCALL_PORT": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert f"tagcall: {project}/damaged/case/backend.jsonl: line 1 is not JSON" in done.stdout


@pytest.fixture
def sample(tmp_path: Path) -> SampleProject:
    command = [sys.executable, "-m", "pytest", "-p", "proxy.pytest_plugin"]
    return SampleProject.make(tmp_path, command, PYTHONPATH=str(ROOT), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")


@pytest.fixture(scope="module")
def recording() -> dict[str, bytes]:
    """The files of the project's recording, once a test has made it."""
    return {}


@pytest.fixture
async def recorded(sample: SampleProject, model: ScriptedModel, recording: dict[str, bytes]) -> None:
    """The project has its recording, as it is checked in."""
    answers(model)
    if not recording:
        await sample.test("--tagcall-record=once", model=model)
        recording |= sample.files()
    for name, data in recording.items():
        file = sample.recorded / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


async def test_a_project_records_once_and_replays_without_codex(sample: SampleProject, model: ScriptedModel) -> None:
    status, said = await sample.test()
    assert status == 1
    assert "There is no fixture in" in said
    assert "--tagcall-record=once" in said

    answers(model)
    status, said = await sample.test("--tagcall-record=once", model=model)
    assert status == 0, said
    assert "recorded: 3 recorded, 0 changed, 0 as before" in said
    asked = len(model.requests)

    at_home = sample.at_home()
    for flags in ([], ["--tagcall-record=once"], ["--tagcall-block-network"]):
        status, said = await sample.test(*flags)
        assert (status, "tagcall" in said) == (0, False), said
    assert len(model.requests) == asked
    assert sample.at_home() == at_home

    # Redacted, by the project's own hook and without being asked, also what the model wrote; and found all the same.
    text = b"".join(sample.files().values()).decode()
    assert not [secret for secret in ("Falcon", "hunter2", "swordfish") if secret in text]
    assert "What is planted for Project [redacted]? My password: [redacted]" in text
    # In one piece, though it came in several.
    (answer,) = sample.recorded.glob("002-*/transcript.txt")
    assert answer.read_text("utf-8").endswith("[assistant]\nThere is garlic in the north bed of the garden.\n")


@pytest.mark.parametrize("returned", ["'ACME'", "re.compile('ACME')", "[re.compile('ACME')]"])
async def test_what_is_no_list_of_texts_hides_nothing_and_is_told_before_anything_is_recorded(
    returned: str, sample: SampleProject, model: ScriptedModel
) -> None:
    (sample.folder / "conftest.py").write_text(
        f"import re\n\ndef pytest_tagcall_redact():\n    return {returned}\n", "utf-8"
    )
    status, said = await sample.test("--tagcall-record=once", "-k", "small_talk", model=model)
    assert status == 1
    assert f"pytest_tagcall_redact returned {returned}: let it return a list of texts, each a regular" in said
    assert not sample.recorded.exists()


@pytest.mark.usefixtures("recorded")
async def test_what_is_recorded_anew_shows_what_has_changed_and_nothing_else(
    sample: SampleProject, model: ScriptedModel
) -> None:
    (sample.recorded / "002-what-is-planted-for-project-after-read-note").rename(sample.recorded / "garden")
    before = sample.files()

    status, said = await sample.test("--tagcall-record=all", model=model)
    assert "recorded: 0 recorded, 0 changed, 3 as before" in said, said
    assert sample.files() == before

    answers(model, "onion")
    status, said = await sample.test("--tagcall-record=all", model=model)
    assert status == 1  # the test wants garlic
    assert "recorded: 0 recorded, 1 changed, 2 as before\n  changed garden\n" in said
    after = sample.files()
    assert {name.partition("/")[0] for name, data in after.items() if data != before[name]} == {"garden"}
    one, other = (files["garden/transcript.txt"].decode().splitlines() for files in (before, after))
    assert [line for line in difflib.ndiff(one, other) if line[0] in "+-"] == [
        "- There is garlic in the north bed of the garden.",
        "+ There is onion in the north bed of the garden.",
    ]
    assert await run_replay(sample.recorded, ReplayOptions()) == 0


@pytest.mark.usefixtures("recorded")
async def test_a_backend_that_is_not_there_is_told_and_takes_the_place_of_nothing(sample: SampleProject) -> None:
    before = sample.files()
    address = f"127.0.0.1:{free_port()}"
    status, said = await sample.test("--tagcall-record=all", f"--tagcall-backend=http://{address}/v1")
    assert status == 1
    assert f"The model server at {address} does not answer: start the model server" in said
    assert sample.files() == before


@pytest.mark.usefixtures("recorded")
async def test_a_changed_word_is_told_once(sample: SampleProject, capsys: pytest.CaptureFixture[str]) -> None:
    (hello,) = sample.recorded.glob("*-hello")
    for file in hello.glob("response.*"):
        file.write_bytes(file.read_bytes().replace(b"Hello to you.", b"Hello to me."))
    (hello / "transcript.txt").write_text("mine", "utf-8")
    assert await run_replay(sample.recorded, ReplayOptions()) == 1
    said = capsys.readouterr().out
    assert said.count("Hello to me.") == 1
    assert "transcript.txt is not what backend.jsonl says (--update writes it)" in said
    assert await run_replay(sample.recorded, ReplayOptions(update=True)) == 0
    assert (hello / "transcript.txt").read_text("utf-8") == "[user]\nHello\n\n[assistant]\nHello to you.\n"
    assert await run_replay(sample.recorded, ReplayOptions()) == 0


SWALLOWED = """
from test_agent import ask

def test_new(tagcall_server):
    try:
        ask(tagcall_server, input="Hello there")
    except Exception:
        assert False, "Sorry."
"""


@pytest.mark.usefixtures("recorded")
async def test_what_no_fixture_answers_is_told_with_what_to_do_and_recorded_so(
    sample: SampleProject, model: ScriptedModel
) -> None:
    (sample.folder / "test_new.py").write_text(SWALLOWED, "utf-8")
    before = sample.files()
    for flags in ([], ["-p", "xdist", "-n", "1"]):
        status, said = await sample.test("-p", "cacheprovider", *flags)
        assert status == 1
        assert said.count("recorded: No fixture answers this turn. The nearest is 003-hello: at character 7") == 1
        assert (
            "recorded: --tagcall-record=all records it; with --lf, only the requests of the tests that failed." in said
        )

    answers(model)
    _, said = await sample.test("--lf", "--tagcall-record=all", model=model)
    assert "recorded: 1 recorded, 0 changed, 0 as before\n  recorded 004-hello-there\n" in said
    assert before.items() <= sample.files().items()
    status, said = await sample.test()
    assert (status, "tagcall" in said) == (0, False), said


@pytest.mark.usefixtures("recorded")
async def test_fixtures_that_nobody_asked_for_are_told_after_a_whole_run(sample: SampleProject) -> None:
    shutil.copytree(FIXTURES / "codex-0.169.0-two-calls", sample.recorded / "weather")
    _, said = await sample.test()
    assert "recorded: nobody asked for weather\n" in said
    _, said = await sample.test("-p", "xdist", "-n", "2")
    assert "recorded: nobody asked for weather\n" in said
    _, said = await sample.test("-k", "small_talk", "--tagcall-record=prune")
    assert "nobody asked" not in said
    assert (sample.recorded / "weather").is_dir(), "a choice of tests says nothing of the others"
    kept = sorted(path.name for path in sample.recorded.iterdir() if path.name != "weather")
    _, said = await sample.test("-p", "xdist", "-n", "2", "--tagcall-record=prune")
    assert "recorded: removed weather, for which nobody asked\n" in said
    assert sorted(path.name for path in sample.recorded.iterdir()) == kept
    (sample.folder / "some").mkdir()
    (sample.folder / "some" / "test_some.py").write_text("from test_agent import test_small_talk", "utf-8")
    (sample.folder / "test_skipped.py").write_text("import pytest\npytest.skip(allow_module_level=True)", "utf-8")
    for choice in (["test_agent.py::test_small_talk"], ["some"], ["--rootdir=.", "."]):
        _, said = await sample.test(*choice)
        assert "nobody asked" not in said, choice
    status, said = await sample.test("-p", "xdist", "-n", "2", "--tagcall-record=all")
    assert status == 4
    assert "run it with -n0" in said


NETWORK = """
import asyncio, os, socket, urllib.request
import aiohttp, pytest
from openai import AsyncOpenAI, OpenAI

URL = "http://192.0.2.1/"  # no machine has this address
WITHOUT_URL = {"base_url": "https://api.openai.com/v1", "api_key": "any", "max_retries": 0}

async def ask_aiohttp():
    async with aiohttp.ClientSession() as http:
        await http.get(URL)

async def ask_openai():
    async with AsyncOpenAI(**WITHOUT_URL) as client:
        await client.models.list()

def test_clients_do_not_get_out():
    with pytest.raises(RuntimeError, match="Network is disabled: this test wanted 192.0.2.1"):
        urllib.request.urlopen(URL)
    with pytest.raises(RuntimeError, match="Network is disabled: this test wanted 192.0.2.1"):
        asyncio.run(ask_aiohttp())
    with pytest.raises(RuntimeError, match="Network is disabled: this test wanted api.openai.com"):
        OpenAI(**WITHOUT_URL).models.list()
    with pytest.raises(RuntimeError, match="Network is disabled: this test wanted api.openai.com"):
        asyncio.run(ask_openai())

@pytest.mark.tagcall_block_network(allowed_hosts=["192.0.2.1"])
def test_but_to_this_machine_and_the_hosts_that_are_named(unused_port):
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, unused_port))
    with socket.socket() as it:
        it.setblocking(False)
        it.connect_ex(("192.0.2.1", 80))
    assert "HTTPS_PROXY" not in os.environ

@pytest.fixture
def unused_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        yield it.getsockname()[1]  # nobody listens there, and nobody else can
"""


async def test_the_network_is_closed_where_that_is_asked_for(sample: SampleProject) -> None:
    (sample.folder / "test_agent.py").write_text(NETWORK, "utf-8")
    status, said = await sample.test("--tagcall-block-network")
    assert status == 0, said


def test_the_docs_show_what_the_plugin_and_the_commands_have() -> None:
    page = (ROOT / "docs" / "howto" / "replay-in-ci.md").read_text("utf-8")
    assert "def test_the_agent_looks_into_the_notes(tagcall_server):" in page
    (commands,) = (action for action in build_parser()._actions if action.dest == "command")
    for command in ("record", "replay", "serve"):
        assert command in (commands.choices or ())
        assert f"tagcall {command} " in page
