"""Codex as a client of tagcall: it completes a task with a tool of an MCP server, over HTTP and over WebSocket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from parser import write_call
from tests.support.codex_programs import TestProgram, installed_programs
from tests.support.conversation import results_shown
from tests.support.lanes import continued
from tests.support.scripted_model import Message, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_server
from tests.support.vault import ANSWER, CALLS

from .clients import codex_cli

# Older programs have no WebSocket transport.
NEW = [program for program in installed_programs() if program.release >= (0, 160)]


def librarian(body: Mapping[str, Any]) -> Reply:
    """Makes the calls, one an answer, then answers."""
    made = len(results_shown(body))
    if made == len(CALLS):
        return Reply([Message(ANSWER)], chunk=3)
    call = write_call(f"mcp__vault__{CALLS[made].name}", json.dumps(CALLS[made].arguments))
    return Reply([Message(f"I will look.\n{call}")], chunk=3)


@pytest.mark.parametrize("websockets", [False, True], ids=["http", "websocket"])
@pytest.mark.parametrize("program", NEW, ids=lambda program: program.version)
async def test_codex_completes_a_task_with_a_tool_of_an_mcp_server(
    model: ScriptedModel, program: TestProgram, websockets: bool, tmp_path: Path
) -> None:
    assert program.path is not None, "openai-codex-cli-bin is not installed"
    with structlog.testing.capture_logs() as logs:
        async with tagcall_server(model, tmp_path / "home", store="memory") as url:
            model.choose = librarian
            said, calls = await codex_cli.run(
                program.path, url, tmp_path / "client", "When does Alpha start?", websockets=websockets
            )
    assert said == ANSWER
    assert calls == list(CALLS)
    turns = [line["method"] for line in logs if line["event"] == "request" and line.get("model")]
    assert set(turns) == {"WS" if websockets else "POST"}
    assert len(model.requests) == len(CALLS) + 1, "a warm-up asks for no answer"
    assert continued(model.requests) == len(CALLS)
