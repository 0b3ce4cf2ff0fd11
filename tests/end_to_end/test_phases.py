"""The phase of a message, there and back: the real codex program, and the official client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openai import BadRequestError

from proxy.backends.codex import release_of
from tests.support.backends import TestBackend
from tests.support.codex_programs import TestProgram, installed_programs
from tests.support.endpoint import serving
from tests.support.scripted_model import Message, Reply, ScriptedModel

# The release whose app-server tells phases.
PHASES_SINCE = (0, 163)

TOLD = [program for program in installed_programs() if release_of(program.version) >= PHASES_SINCE]

pytestmark = pytest.mark.parametrize("codex", TOLD, ids=lambda codex: codex.version)

SAID = [("commentary", "I look."), ("final_answer", "Done.")]
GO: Any = {"role": "user", "content": "Go."}
MORE: Any = {"role": "user", "content": "And more?"}


def answer(*, late: bool = False) -> Reply:
    return Reply([Message(text, phase=phase, late=late) for phase, text in SAID])


def phases(items: Any) -> list[tuple[str | None, str]]:
    """Of the assistant's messages, be they objects of the SDK or what the model was shown."""
    plain = [item if isinstance(item, dict) else item.to_dict() for item in items]
    return [(item.get("phase"), item["content"][0]["text"]) for item in plain if item.get("role") == "assistant"]


@pytest.mark.parametrize("late", [False, True])
async def test_each_message_of_an_answer_has_its_phase(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path, late: bool
) -> None:
    """`late`: the service tells it when the message is whole."""
    model.default = answer(late=late)
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        create = endpoint.client.responses.create
        events = [event async for event in await create(model="gpt-5.5", input=[GO], stream=True)]
        last = events[-1]
        assert last.type == "response.completed"
        stored = await endpoint.client.responses.retrieve(last.response.id)
        await create(model="gpt-5.5", input=[MORE], previous_response_id=stored.id)
    added = [getattr(e.item, "phase", None) for e in events if e.type == "response.output_item.added"]
    assert added == ([None, None] if late else ["commentary", "final_answer"])
    assert phases(e.item for e in events if e.type == "response.output_item.done") == SAID
    assert phases(last.response.output) == phases(stored.output) == SAID
    assert phases(model.requests[-1].body["input"]) == SAID


async def test_the_model_is_shown_the_phases_that_come_back(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    """On the thread that holds them, and on one that gets them with the history."""
    model.default = answer()
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        first = await endpoint.client.responses.create(model="gpt-5.5", input=[GO], store=False)
        back: list[Any] = [item.to_dict() for item in first.output]
        await endpoint.client.responses.create(model="gpt-5.5", input=[GO, *back, MORE])
        edited: Any = {**GO, "content": "Go now."}
        moved = await endpoint.client.responses.create(model="gpt-5.5", input=[edited, *back, MORE])
        kept = await endpoint.client.responses.input_items.list(moved.id, order="asc")
    assert [phases(request.body["input"]) for request in model.requests] == [[], SAID, SAID]
    assert phases(kept.data) == SAID
    *same, other = (request.body["prompt_cache_key"] for request in model.requests)
    assert len({*same}) == 1
    assert other not in same


async def test_without_lanes_a_client_is_told_that_no_phase_is_passed_on(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    model.default = answer()
    conversation: Any = [GO, {"role": "assistant", "content": "I look.", "phase": "commentary"}, MORE]
    async with serving(model, TestBackend(codex), tmp_path / "home", lanes="off") as endpoint:
        raw = endpoint.client.responses.with_raw_response
        answered = await raw.create(model="gpt-5.5", input=conversation)
    assert answered.headers["x-tagcall-warning"] == "Without effect here: phase."


async def test_a_chat_client_has_one_text_and_keeps_its_conversation(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    model.default = answer()
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        complete = endpoint.client.chat.completions.create
        first = await complete(model="gpt-5.5", messages=[GO])
        said = first.choices[0].message.content
        await complete(model="gpt-5.5", messages=[GO, {"role": "assistant", "content": said}, MORE])
    assert said == "I look.\n\nDone."
    assert phases(model.requests[-1].body["input"]) == SAID
    assert len({request.body["prompt_cache_key"] for request in model.requests}) == 1


async def test_what_is_no_phase_is_refused(model: ScriptedModel, codex: TestProgram, tmp_path: Path) -> None:
    """codex would lose the message."""
    odd: Any = {"role": "assistant", "content": "Hm.", "phase": "analysis"}
    async with serving(model, TestBackend(codex), tmp_path / "home") as endpoint:
        with pytest.raises(BadRequestError, match="Supported values are: 'commentary', 'final_answer'") as no:
            await endpoint.client.responses.create(model="gpt-5.5", input=[GO, odd, MORE])
    assert (no.value.code, no.value.param) == ("invalid_value", "input[1].phase")
