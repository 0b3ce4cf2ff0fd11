from __future__ import annotations

from typing import Any

import pytest

from parser import ToolRegistry, write_call
from prompts import FRONTIER, AssistantText, Entry, Image, PastCall, Text, ToolChoice, Transcript, UserTurn, render_turn
from proxy.backends.codex.requests import ANSWERS, answer_request, inject_params, thread_params, turn_params
from proxy.contracts import Prompt
from proxy.rpc import UnknownMethodError

GRANTS = {"accept", "approved", "acceptForSession", "approved_for_session"}


@pytest.mark.parametrize("method", ANSWERS)
def test_nothing_is_granted(method: str) -> None:
    assert not GRANTS & {str(value) for value in ANSWERS[method]().values()}


def test_a_request_nobody_knows_is_unknown() -> None:
    with pytest.raises(UnknownMethodError):
        answer_request("account/chatgptAuthTokens/refresh", {})


def test_a_tier_goes_with_the_turn_and_a_verbosity_with_its_thread() -> None:
    plain, asked = Prompt("m", None, ()), Prompt("m", None, (), tier="flex", verbosity="high")
    assert "config" not in thread_params(plain, None, None)
    assert "serviceTier" not in turn_params("t", plain, ())
    assert thread_params(asked, None, None)["config"] == {"model_verbosity": "high"}
    assert turn_params("t", asked, ())["serviceTier"] == "flex"
    assert turn_params("t", asked, (), tiered=True)["serviceTier"] == "flex"
    assert turn_params("t", plain, (), tiered=True)["serviceTier"] is None


def test_what_is_set_for_a_thread_is_told_and_what_is_not_is_left_to_codex() -> None:
    plain = thread_params(Prompt("m", None, ()), None, None)
    assert plain.keys() == {"model", "approvalPolicy", "sandbox", "ephemeral"}
    told = thread_params(Prompt("m", "Be brief.", ()), "/work", "You are Codex.")
    assert told == {
        **plain, "developerInstructions": "Be brief.", "cwd": "/work", "baseInstructions": "You are Codex.",
    }  # fmt: skip


def injected(*entries: Entry) -> Any:
    """What a thread is given of a conversation, without lines of ours."""
    rendered = render_turn(Transcript(entries), ToolRegistry(), ToolChoice(), parallel=True, profile=FRONTIER)
    return inject_params("t", [item for item in rendered.items if item.ours is None])["items"]


@pytest.mark.parametrize(("asked", "told"), [(None, "high"), ("low", "high"), ("original", "original")])
def test_an_image_that_is_injected_has_the_detail_that_it_has_in_a_turn(asked: str | None, told: str) -> None:
    (message,) = injected(UserTurn((Image("data:image/png;base64,AA==", asked),)))
    assert message["content"] == [{"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": told}]


def test_an_answer_is_injected_as_the_messages_that_had_a_phase() -> None:
    entries = (
        UserTurn((Text("go"),)),
        AssistantText("I look.", "commentary"),
        PastCall("call_1", "read", "{}"),
        AssistantText("Done.", "final_answer"),
        AssistantText("And more.", "final_answer"),
    )
    messages = injected(*entries)
    assert [(message["role"], message.get("phase"), message["content"][0]["text"]) for message in messages] == [
        ("user", None, "go"),
        ("assistant", "commentary", f"I look.\n{write_call('read', '{}')}"),
        ("assistant", "final_answer", "Done.\n\nAnd more."),
    ]


def test_an_answer_without_phases_is_one_message() -> None:
    entries = AssistantText("I look."), PastCall("call_1", "read", "{}"), AssistantText("Done.")
    [message] = injected(*entries)
    assert "phase" not in message
