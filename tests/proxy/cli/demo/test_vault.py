"""The client's tools of the demo, and the fixtures and the vault that come with the package."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from parser import CLOSE_TAG, OPEN_TAG
from proxy.cli.demo import vault as vault_module
from proxy.cli.demo.loop import INSTRUCTIONS, QUESTION
from proxy.cli.demo.vault import TOOLS, Vault, samples_folder
from proxy.errors import UsageError
from proxy.replay.fixture import REQUEST_FILE, Fixture, load_fixtures
from proxy.replay.server import MODEL


@pytest.fixture(scope="module")
def vault() -> Vault:
    return Vault(samples_folder() / "vault")


def test_a_search_gives_paths_and_lines(vault: Vault) -> None:
    assert vault.call("search_notes", {"query": "CHARLOTTE north"}).splitlines() == [
        "Garden/North bed.md: # North bed",
        "Garden/Sowing calendar.md: | North bed  | Charlotte potatoes    | 12 April | 10 July   |",
    ]


@pytest.mark.parametrize("query", ["submarine", ""])
def test_a_search_without_a_hit_says_so(vault: Vault, query: str) -> None:
    assert vault.call("search_notes", {"query": query}) == "No note has all of these words."


def test_a_note_is_read_whole(vault: Vault) -> None:
    assert vault.call("read_note", {"path": "Books/Walden.md"}).startswith("---\nauthor: Henry David Thoreau\n")


@pytest.mark.parametrize(
    ("name", "arguments"), [("read_note", {"path": "../README.md"}), ("read_note", {}), ("delete_note", {"path": "x"})]
)
def test_mistakes_are_results_too(vault: Vault, name: str, arguments: object) -> None:
    assert vault.call(name, arguments).startswith("There is no ")


@pytest.mark.parametrize("case", ["demo-1-search", "demo-2-read", "demo-3-answer"])
def test_the_recorded_requests_are_those_of_the_demo(case: str) -> None:
    request = json.loads((samples_folder() / case / REQUEST_FILE).read_bytes())
    assert request["tools"] == TOOLS
    assert (request["model"], request["instructions"]) == (MODEL, INSTRUCTIONS)
    assert request["input"][0] == {"role": "user", "content": QUESTION}


def test_the_recorded_results_are_those_of_the_vault(vault: Vault) -> None:
    request = json.loads((samples_folder() / "demo-3-answer" / REQUEST_FILE).read_bytes())
    calls = {item["call_id"]: item for item in request["input"] if item.get("type") == "function_call"}
    results = [item for item in request["input"] if item.get("type") == "function_call_output"]
    assert len(results) == len(calls) == 3
    for result in results:
        call = calls[result["call_id"]]
        assert vault.call(call["name"], json.loads(call["arguments"])) == result["output"]


def demo_fixtures() -> list[Fixture]:
    return [fixture for name, fixture in load_fixtures(samples_folder()).items() if name.startswith("demo-")]


def text_pieces(fixture: Fixture) -> list[str]:
    pieces = []
    for step in fixture.turns[0].steps:
        match step.message:
            case {"method": "item/agentMessage/delta", "params": {"delta": str(delta)}}:
                pieces.append(delta)
            case _:
                pass
    return pieces


def test_the_demo_fixtures_call_three_tools_and_then_answer() -> None:
    calls = ["".join(text_pieces(fixture)).count(OPEN_TAG) for fixture in demo_fixtures()]
    assert calls == [1, 2, 0]


def test_no_tag_arrives_in_one_piece() -> None:
    for fixture in demo_fixtures():
        pieces = text_pieces(fixture)
        assert not [piece for piece in pieces if OPEN_TAG in piece or CLOSE_TAG in piece]
        # The key comes in one piece with what stands round it, for a replay puts it in there.
        assert {len(piece) for piece in pieces[:-1] if "[call key]" not in piece} <= {3, 4, 5, 6, 7}


def test_the_requests_of_the_demo_are_one_conversation() -> None:
    folder = samples_folder()
    inputs = [json.loads((folder / case.name / REQUEST_FILE).read_bytes())["input"] for case in demo_fixtures()]
    assert inputs[0] == inputs[1][:1]
    assert inputs[1] == inputs[2][: len(inputs[1])]


def test_the_links_of_the_vault_lead_somewhere() -> None:
    notes = {path.stem: path.read_text(encoding="utf-8") for path in (samples_folder() / "vault").rglob("*.md")}
    links = {link for text in notes.values() for link in re.findall(r"\[\[(.+?)\]\]", text)}
    assert links
    assert links <= notes.keys()


def test_missing_samples_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault_module, "_SAMPLES", tmp_path)
    with pytest.raises(UsageError, match="install tagcall again"):
        samples_folder()
