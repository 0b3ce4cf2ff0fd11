"""The fixtures and the vault that come with the package."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from parser import CLOSE_TAG, OPEN_TAG
from proxy.errors import UsageError
from proxy.replay import samples
from proxy.replay.fixture import REQUEST_FILE, Fixture, load_fixtures
from proxy.replay.samples import samples_folder


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
        assert {len(piece) for piece in pieces[:-1]} <= {3, 4, 5, 6, 7}


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


def test_an_installed_package_finds_its_own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_fixtures" / "vault").mkdir(parents=True)
    monkeypatch.setattr(samples, "_PLACES", (tmp_path / "_fixtures", tmp_path / "fixtures"))
    assert samples_folder() == tmp_path / "_fixtures"


def test_missing_samples_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "_PLACES", (tmp_path,))
    with pytest.raises(UsageError, match="install tagcall anew"):
        samples_folder()
