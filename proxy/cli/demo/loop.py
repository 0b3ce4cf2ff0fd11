"""The client of the demo: asks, executes the calls, sends the results, until the answer is there."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFailedEvent,
    ResponseFunctionToolCall,
    ResponseIncompleteEvent,
)

from ...advice import command
from ...backends import replay_backend
from ...errors import TagcallError
from ...logs import configure
from ...replay.server import MODEL
from ...server import running_server
from ...settings import Settings
from ..shaping import habit_as_recorded
from .recording import ModelTurn, RecordingBackend
from .vault import TOOLS, Vault, samples_folder
from .view import View, runs

# What the client asks; the recordings answer exactly this.
INSTRUCTIONS = "You help with the notes of an Obsidian vault. Answer from the notes, in one or two sentences."
QUESTION = "What did I plant in the north bed, and when is it due?"
# What a right answer says, and how often the loop goes round for it.
FACTS = ("Charlotte potatoes", "10 July", "Aquadulce broad beans", "28 June")
HOPS = 3

# Seconds for the whole demo, which takes one or two; this is for a machine where something hangs.
_DEMO_TIMEOUT = 50.0


class DemoError(TagcallError):
    """The loop did not end as it should; the message says where."""


async def show_loop() -> int:
    """Run the loop and show it. Returns the exit status."""
    view = View()
    begin = time.monotonic()
    try:
        async with asyncio.timeout(_DEMO_TIMEOUT):
            folder = samples_folder()
            settings = Settings(port=0, backend=f"replay:{folder}", store="memory", log_level="error")
            configure(settings.log_level, settings.log_format)
            backend = RecordingBackend(replay_backend(folder, speed="recorded"))
            # What is played teaches nothing of a model, as in `tagcall serve`.
            habits = habit_as_recorded(settings)
            async with running_server(settings, backend=backend, habits=habits) as base_url:
                _show_beginning(view, base_url)
                await _run_loop(base_url, Vault(folder / "vault"), backend, view)
    except TimeoutError:
        return _show_failure(view, f"It was not done after {_DEMO_TIMEOUT:.0f} seconds.")
    except (TagcallError, OpenAIError) as error:
        return _show_failure(view, str(error))
    _show_end(view, time.monotonic() - begin)
    return 0


async def _run_loop(base_url: str, vault: Vault, backend: RecordingBackend, view: View) -> None:
    # The loopback connection must not take the way over a proxy that the environment names.
    http_client = DefaultAsyncHttpxClient(trust_env=False)
    # The SDK's own input type has no room for a dumped output item, which its documentation sends all the same.
    conversation: list[Any] = [{"role": "user", "content": QUESTION}]
    before: ModelTurn | None = None
    async with AsyncOpenAI(base_url=base_url, api_key="any", max_retries=0, http_client=http_client) as client:
        for hop in range(1, HOPS + 1):
            _show_request(view, hop, conversation)
            try:
                names, response = await _ask(client, conversation)
            finally:
                for turn in backend.take():
                    _show_turn(view, turn, before)
                    before = turn
            view.step("client", "receives", ", ".join(runs(names)))
            conversation += [item.model_dump(exclude_none=True) for item in response.output]
            calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
            if not calls:
                break
            for call in calls:
                result = vault.call(call.name, json.loads(call.arguments))
                conversation.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
                view.step("client", "runs", f"{call.name}({call.arguments})")
                view.excerpt(result, head=6)
        else:
            raise DemoError(f"There is no answer after {HOPS} requests.")
    view.heading("The answer")
    view.paragraph(response.output_text, "answer")
    missing = [fact for fact in FACTS if fact not in response.output_text]
    if hop != HOPS or missing:
        raise DemoError(f"That is not the answer that was expected after {HOPS} requests; missing: {missing}.")


async def _ask(client: AsyncOpenAI, conversation: list[Any]) -> tuple[list[str], Response]:
    """One request: the types of its events in order, and the finished response."""
    names: list[str] = []
    stream = await client.responses.create(
        model=MODEL, instructions=INSTRUCTIONS, input=conversation, tools=TOOLS, stream=True
    )
    async with stream:
        async for event in stream:
            names.append(event.type)
            match event:
                case ResponseCompletedEvent(response=response):
                    return names, response
                case ResponseFailedEvent(response=response) | ResponseIncompleteEvent(response=response):
                    reason = response.error.message if response.error else response.status
                    raise DemoError(f"The response did not complete: {reason}")
                case _:
                    pass
    raise DemoError(f"The stream ended early, after {', '.join(runs(names)) or 'nothing'}.")


def _show_beginning(view: View, base_url: str) -> None:
    view.paragraph("An OpenAI client gets tool calls from a model that only reads and writes text.")
    view.paragraph(f"The server is on {base_url}; the model is a recording.")


def _show_request(view: View, hop: int, conversation: Sequence[dict[str, Any]]) -> None:
    view.heading(f"Request {hop} of {HOPS}")
    items = ", ".join(runs([item.get("type", "message") for item in conversation]))
    view.step("client", "sends", f"POST /v1/responses, stream=true, {len(TOOLS)} tools, input: {items}")
    if hop == 1:
        view.quote(QUESTION)


def _show_turn(view: View, turn: ModelTurn, before: ModelTurn | None) -> None:
    developer = turn.prompt.head or ""
    if before is None or developer != before.prompt.head:
        view.step("model", "is shown", "the tools, as text")
        view.excerpt(developer, head=8)
        view.step("model", "is shown", "the conversation, as messages")
    else:
        view.step("model", "is shown", "the same tools, and the conversation, as messages")
    view.excerpt(turn.conversation, head=6, tail=8, known=before.conversation if before else "")
    view.step("model", "writes", f"{len(turn.pieces)} pieces of text")
    view.quote("".join(turn.pieces))


def _show_failure(view: View, reason: str) -> int:
    view.heading("The tool loop broke off")
    view.paragraph(reason, "failure")
    return 1


def _show_end(view: View, seconds: float) -> None:
    view.heading("Done")
    view.paragraph(f"The tool loop is done. ({HOPS} requests, {seconds:.1f} seconds)", "bold")
    view.paragraph("With a real model:")
    view.command(command("setup").strip("`"))
    view.paragraph("      logs in, tries everything, and shows what to enter in a plugin")
    view.command(command("serve").strip("`"))
    view.paragraph("      starts the server, and shows how to configure a client")
