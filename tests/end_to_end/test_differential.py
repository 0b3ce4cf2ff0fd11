"""Random conversations on the real codex programs, with lanes and without: what the model is shown is what was said.

The scripted model's answers depend on all that it is shown, so that a client gets the same answers in both modes only
where each request shows the whole conversation, and nothing else. The core tries some, and `make test-properties` the
others. `TAGCALL_TEST_CONVERSATIONS` says how many there are in all for each program (500 for a thorough run),
`TAGCALL_TEST_FIRST` the number of the first, to look at one of them again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proxy.home import habits_file, write_habits
from proxy.server import running_server
from proxy.settings import Settings
from proxy.turn import KeyHabit, Known
from tests.end_to_end.differential.client import MODEL, Client
from tests.end_to_end.differential.model import Upstream
from tests.end_to_end.differential.wire import Server
from tests.support.codex_homes import informed_home
from tests.support.codex_programs import TestProgram, installed_programs
from tests.support.scripted_model import ScriptedModel

LANED = [program for program in installed_programs() if program.supported]
# For each program, by their numbers: those of the core, and the others.
CONVERSATIONS = int(os.environ.get("TAGCALL_TEST_CONVERSATIONS") or 20)
FIRST = int(os.environ.get("TAGCALL_TEST_FIRST") or 0)
SOME = range(FIRST, FIRST + min(CONVERSATIONS, 4))
OTHERS = range(SOME.stop, FIRST + CONVERSATIONS)
CASES = [SOME, *([pytest.param(OTHERS, marks=pytest.mark.whole)] if OTHERS else [])]
# Idle lanes: so few that conversations push each other's out.
LANE_LIMIT = 12


def owned_by(key: str) -> str:
    """Whose turns are those that come with this key."""
    return sha256(key.encode()).hexdigest()


@asynccontextmanager
async def serving(model: ScriptedModel, codex: TestProgram, folder: Path, *, lanes: bool) -> AsyncIterator[Server]:
    assert codex.path is not None, "openai-codex-cli-bin is not installed"
    upstream = Upstream(lanes=lanes)
    folder.mkdir()
    secret = folder / "secret"
    # Both modes have the same keys, for their digits count as tokens, and think the same of the model.
    secret.write_text("no secret at all, for all to know")
    write_habits(
        habits_file(secret), [(owner, MODEL, Known(KeyHabit.WRITES)) for owner in map(owned_by, ("one", "other"))]
    )
    model.choose = upstream.choose
    settings = Settings(
        port=0, codex=str(codex.path), codex_home=informed_home(folder / "home", codex.path), upstream=model.url,
        base_instructions="none", store="memory", call_key_secret=secret, lanes="on" if lanes else "off",
        lane_limit=LANE_LIMIT,
        # A lane holds nothing where a client has a sentence of ours, so the two modes would show different things.
        empty_answers="empty",
    )  # fmt: skip
    async with running_server(settings) as url, aiohttp.ClientSession() as session:
        yield Server(url, session, upstream)


async def converse(
    model: ScriptedModel, codex: TestProgram, folder: Path, *, conversations: range, lanes: bool
) -> tuple[list[list[Any]], Counter[str]]:
    """The logs of all conversations."""
    logs: list[list[Any]] = []
    async with serving(model, codex, folder, lanes=lanes) as server:
        for seed in conversations:
            client = Client(seed, server)
            await client.converse()
            logs.append(client.log)
    return logs, server.upstream.counts


@pytest.mark.parametrize("codex", LANED, ids=lambda codex: codex.version)
@pytest.mark.parametrize("conversations", CASES, ids=lambda numbers: f"{numbers[0]} to {numbers[-1]}")
@pytest.mark.timeout(0 if CONVERSATIONS > 50 else 600)
async def test_the_model_is_shown_what_was_said_and_answers_the_same_with_lanes_and_without(
    model: ScriptedModel, codex: TestProgram, conversations: range, tmp_path: Path
) -> None:
    with_lanes, counts = await converse(model, codex, tmp_path / "on", conversations=conversations, lanes=True)
    without, _ = await converse(model, codex, tmp_path / "off", conversations=conversations, lanes=False)
    for number, (one, other) in enumerate(zip(with_lanes, without, strict=True), start=conversations.start):
        assert one == other, f"conversation {number}"
    assert counts["continued"] > counts["requests"] / 4
