"""Realtime through openai-python, a real server and the real codex program: what is cancelled, and what comes after."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE
from tests.support.scripted_model import Message, Reply, ScriptedModel
from tests.support.tagcall_server import tagcall_server

from .clients.openai_realtime import DELTAS, answered, ask, connected


@pytest.mark.parametrize("version", ["ga", "beta"])
async def test_cancelling_in_mid_text_ends_the_models_stream_and_leaves_a_working_session(
    model: ScriptedModel, version: str, tmp_path: Path
) -> None:
    async with tagcall_server(model, tmp_path / "home", store="none") as url:
        model.push(Reply([Message("word " * 10_000)], chunk=5, hold_after=5, gate=asyncio.Event()))
        model.push(Reply([Message("Still here.")]))
        async with connected(url, version) as connection, asyncio.timeout(PATIENCE):
            await ask(connection, "Tell me a story.")
            while (await connection.recv()).type not in DELTAS:
                pass
            await connection.response.cancel()
            cancelled, _ = await answered(connection)
            assert cancelled.status == "cancelled"
            assert cancelled.status_details.reason == "client_cancelled"
            assert cancelled.output[0].status == "incomplete"
            assert cancelled.output[0].content[0].text.startswith("word ")
            async with asyncio.timeout(PATIENCE):
                await model.stream_closed.wait()
            await ask(connection, "Are you there?")
            response, text = await answered(connection)
            assert (response.status, text) == ("completed", "Still here.")
