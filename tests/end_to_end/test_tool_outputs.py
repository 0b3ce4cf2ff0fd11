"""Results as outputs of tools: what the real codex programs let the model see of them, and when it is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog
from openai import BadRequestError

from parser import write_call
from proxy.backends import find_kind
from proxy.errors import UsageError
from proxy.settings import Settings
from tests.support.codex_programs import TestProgram, installed_programs
from tests.support.conversation import texts_in
from tests.support.lanes import continued
from tests.support.scripted_model import Message, Refusal, Reply, ScriptedModel
from tests.support.sdk import openai_client
from tests.support.tagcall_server import tagcall_server

SUPPORTED = [program for program in installed_programs() if program.supported]
on_each_program = pytest.mark.parametrize("codex", SUPPORTED, ids=lambda codex: codex.version)

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
TOOLS: Any = [
    {"type": "function", "name": name, "strict": False, "parameters": {"type": "object"}}
    for name in ("read_note", "search")
]
CALLS = "\n".join(write_call(name, "{}") for name in ("read_note", "search"))
GO: Any = {"role": "user", "content": "Go."}


class Talk:
    """A conversation that its client sends whole each time."""

    def __init__(self, url: str, model: str = "gpt-5.5") -> None:
        self._url = url
        self._model = model
        self.items: list[Any] = [GO]

    async def answer(self) -> str:
        async with openai_client(self._url) as client:
            answer = await client.responses.create(model=self._model, input=self.items, tools=TOOLS)
        self.items += [item.to_dict() for item in answer.output]
        return answer.output_text

    def give(self, *outputs: Any) -> list[str]:
        """One for each of the newest calls, whose ids it returns."""
        called = [item["call_id"] for item in self.items if item.get("type") == "function_call"][-len(outputs) :]
        pairs = zip(called, outputs, strict=True)
        self.items += [{"type": "function_call_output", "call_id": name, "output": given} for name, given in pairs]
        return called


def seen(body: Mapping[str, Any]) -> list[object]:
    """Outputs but for their ids, and of messages who said what."""
    return [
        {name: value for name, value in item.items() if name != "id"}
        if item["type"] == "function_call_output"
        else (item["role"], texts_in(item))
        for item in body["input"]
    ]


def outputs_in(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [item for item in body["input"] if item["type"] == "function_call_output"]


@on_each_program
async def test_results_are_outputs_of_tools_for_the_model_and_read_the_same_when_they_are_history(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    model.push(*[Reply([Message(text)]) for text in (CALLS, "I see.", "Again.", "So it was.")])
    async with tagcall_server(model, tmp_path / "one", codex=str(codex.path), results_as="tool", call_key="off") as url:
        talk = Talk(url)
        await talk.answer()
        first, second = talk.give("a\n[tool:x] b", "nothing found")
        assert await talk.answer() == "I see."
        assert seen(model.requests[-1].body)[-2:] == [
            {"type": "function_call_output", "name": "read_note", "output": f"[tool:{first}] a\n  [tool:x] b"},
            {"type": "function_call_output", "name": "search", "output": f"[tool:{second}] nothing found"},
        ]
        talk.items.append({"role": "user", "content": "And now?"})
        assert await talk.answer() == "Again."
        held = seen(model.requests[-1].body)
        assert continued(model.requests) == 2
    # Another process knows none of its threads.
    talk.items.pop()
    async with tagcall_server(model, tmp_path / "two", codex=str(codex.path), results_as="tool", call_key="off") as url:
        anew = Talk(url)
        anew.items = talk.items
        assert await anew.answer() == "So it was."
    assert seen(model.requests[-1].body) == held


@on_each_program
async def test_what_the_user_says_behind_results_is_the_users_and_images_of_tools_are_kept(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    model.push(Reply([Message(CALLS)]), Reply([Message("A dot.")]))
    async with tagcall_server(model, tmp_path / "home", codex=str(codex.path), results_as="tool") as url:
        talk = Talk(url)
        await talk.answer()
        picture = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": PIXEL}]
        first, _ = talk.give(picture, "none")
        talk.items.append({"role": "user", "content": "What is it?"})
        await talk.answer()
    shown = model.requests[-1].body
    assert [texts_in(item) for item in shown["input"][-1:]] == [["What is it?"]]
    output = outputs_in(shown)[0]["output"]
    assert output[0] == {"type": "input_text", "text": f"[tool:{first}] look"}
    assert (output[1]["type"], output[1]["image_url"]) == ("input_image", PIXEL)


def picky(body: Mapping[str, Any]) -> Reply | Refusal:
    """Wants the id of a call, as the API's documentation has it."""
    if outputs_in(body):
        return Refusal(400, {"message": "Missing required parameter: 'input[3].call_id'.", "code": None})
    return Reply([Message("Thanks." if "[tool:" in json.dumps(body["input"][-1]) else CALLS)])


@on_each_program
async def test_a_model_whose_service_refuses_outputs_gets_them_as_messages_from_then_on(
    model: ScriptedModel, codex: TestProgram, tmp_path: Path
) -> None:
    model.choose = picky
    counts = []
    with structlog.testing.capture_logs() as logs:
        async with tagcall_server(model, tmp_path / "home", codex=str(codex.path), results_as="tool") as url:
            for name in ("gpt-5.5", "gpt-5.5", "other"):
                talk = Talk(url, name)
                await talk.answer()
                talk.give("a", "b")
                before = len(model.requests)
                assert await talk.answer() == "Thanks."
                counts.append(len(model.requests) - before)
    assert counts == [2, 1, 2], "each model is asked once"
    told = [line["model"] for line in logs if line["event"] == "codex_refuses_tool_outputs"]
    assert told == ["gpt-5.5", "other"]


async def test_a_refusal_of_something_else_is_passed_on_and_not_remembered(
    model: ScriptedModel, tmp_path: Path
) -> None:
    bad = Refusal(400, {"message": "The image is broken.", "code": None})
    model.push(Reply([Message(CALLS)]), bad, bad, Reply([Message("Thanks.")]))
    async with tagcall_server(model, tmp_path / "home", results_as="tool") as url:
        talk = Talk(url)
        await talk.answer()
        talk.give("a", "b")
        with pytest.raises(BadRequestError, match=r"The image is broken\."):
            await talk.answer()
        assert await talk.answer() == "Thanks."
    assert [len(outputs_in(request.body)) for request in model.requests] == [0, 2, 0, 2]


@pytest.mark.parametrize("backend", ["replay:fixtures", "http://127.0.0.1:9/v1", "ollama"])
def test_other_backends_refuse_at_the_start_what_they_cannot_do(backend: str) -> None:
    with pytest.raises(UsageError, match="--results-as tool is for codex"):
        find_kind(backend).make(Settings(backend=backend, results_as="tool"))


def test_without_lanes_there_is_no_thread_that_could_hold_an_output(tmp_path: Path) -> None:
    settings = Settings(backend="ws://127.0.0.1:9", results_as="tool", lanes="off", codex_home=tmp_path)
    with pytest.raises(UsageError, match="leave out --lanes off"):
        find_kind(settings.backend).make(settings)
