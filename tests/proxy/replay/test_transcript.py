"""What people read of a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.replay.fixture import load_messages
from proxy.replay.transcript import transcript
from tests.proxy.replay.child import Message, answered, asked, injected, item, said

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def told(*lines: Message) -> str:
    return transcript(line["msg"] for line in lines)


def test_it_has_whole_sentences_however_they_came() -> None:
    one, other = (
        told(asked("What did I plant?"), *answered(pieces))
        for pieces in (["Gar", "lic, on", " 12."], ["Garlic, on 12."])
    )
    assert one == other == "[user]\nWhat did I plant?\n\n[assistant]\nGarlic, on 12.\n"


def test_a_message_may_come_at_once() -> None:
    whole = {"type": "agentMessage", "id": "I", "text": "Garlic."}
    assert told(asked("What?"), said(0.0, "item/completed", turnId="U", item=whole)) == (
        "[user]\nWhat?\n\n[assistant]\nGarlic.\n"
    )


def test_what_the_thread_held_stands_in_front() -> None:
    held = injected(item("user", "What?", "Well?"), item("assistant", "Nothing."))
    assert told(held, asked("Really?")) == "[user]\nWhat?\nWell?\n\n[assistant]\nNothing.\n\n[user]\nReally?\n"


def test_ids_are_numbers() -> None:
    ids = [f"call_{digit * 32}" for digit in "7a7"]
    assert told(asked("\n".join(f"[tool:{it}] x" for it in ids))) == (
        "[user]\n[tool:call_1] x\n[tool:call_2] x\n[tool:call_1] x\n"
    )


@pytest.mark.parametrize(
    ("turn", "ending"),
    [
        ({"status": "failed", "error": {"message": "No."}}, "\n[failed]\nNo.\n"),
        ({"status": "interrupted", "error": None}, "\n[interrupted]\n\n"),
        ({"status": "completed", "error": None}, ""),
    ],
)
def test_a_message_that_was_not_ended_is_there_all_the_same(turn: Message, ending: str) -> None:
    *begun, _, _ = answered(["Gar", "lic"])
    assert told(*begun, said(0.0, "turn/completed", turn={"id": "U", **turn})) == f"[broken off]\nGarlic\n{ending}"


def test_every_fixture_has_one() -> None:
    cases = [file.parent for file in FIXTURES.glob("*/backend.jsonl")]
    assert cases
    for case in cases:
        assert transcript(load_messages(case)).startswith("["), case
