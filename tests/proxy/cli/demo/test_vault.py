"""The client's tools of the demo."""

from __future__ import annotations

import json

import pytest

from proxy.cli.demo.loop import INSTRUCTIONS, MODEL, QUESTION
from proxy.cli.demo.vault import TOOLS, Vault
from proxy.replay.fixture import REQUEST_FILE
from proxy.replay.samples import samples_folder


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
