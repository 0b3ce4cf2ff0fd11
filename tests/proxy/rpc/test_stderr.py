from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import structlog
from structlog.testing import capture_logs

from proxy.rpc.stderr import KEPT, LINES_PER_SECOND, READ_SIZE, StderrTail, redact
from tests.support.clock import settle
from tests.support.no_unix import take_unix_away
from tests.support.patience import NEVER, PATIENCE

SECRETS = {
    "Authorization: Bearer abc.def-ghi": "Authorization: Bearer ***",
    "authorization: Basic dXNlcjpwYXNz": "authorization: Basic ***",
    "key sk-proj-1234567890 refused": "key sk-*** refused",
    '{"access_token": "abc123", "n": 1}': '{"access_token": "***", "n": 1}',
    "OPENAI_API_KEY=hunter2": "OPENAI_API_KEY=***",
    "http://user:word@proxy:3128/": "http://***@proxy:3128/",
    "token: eyJhbGciOi.eyJzdWIi.c2ln end": "token: *** end",
    "id eyJhbGciOi.eyJzdWIi.c2ln end": "id eyJ*** end",
}


@pytest.mark.parametrize("line", SECRETS)
def test_a_secret_does_not_show(line: str) -> None:
    assert redact(line) == SECRETS[line]


@pytest.mark.parametrize("line", ["no such file: /etc/tokens", "stream error: unexpected EOF", "ask for a password"])
def test_other_words_stay(line: str) -> None:
    assert redact(line) == line


@asynccontextmanager
async def open_tail() -> AsyncIterator[StderrTail]:
    tail = StderrTail()
    try:
        yield tail
    finally:
        tail.close_write_end()
        tail.close()


async def test_a_loop_that_watches_no_pipes_is_told_by_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        take_unix_away(patch)
        tail = StderrTail()
        flood = b"noise\n" * 500_000 + b"  refused sk-12345678 \n"
        with os.fdopen(tail.write_end, "wb") as child:
            await asyncio.to_thread(child.write, flood)
        async with asyncio.timeout(PATIENCE):
            while not tail.last_line().startswith("refused"):  # noqa: ASYNC110 -- nobody reports it
                await asyncio.sleep(0)
        assert tail.last_line() == "refused sk-***"
        tail.close()


async def write(tail: StderrTail, data: bytes) -> None:
    """In pieces that fit the pipe, each drained before the next."""
    for start in range(0, len(data), 4096):
        os.write(tail.write_end, data[start : start + 4096])
        for _ in range(3):
            await asyncio.sleep(0)


async def test_the_last_line_is_told_without_its_secrets() -> None:
    async with open_tail() as tail:
        await write(tail, b"first\n  refused sk-12345678 \n\n")
        assert tail.last_line() == "refused sk-***"


async def test_of_a_flood_the_end_is_kept() -> None:
    async with open_tail() as tail:
        await write(tail, b"x" * 10 * KEPT + b"\nthe end")
        assert tail.last_line() == "the end"


async def test_a_secret_does_not_show_in_a_log_however_it_is_cut() -> None:
    async with open_tail() as tail:
        with capture_logs() as logs:
            for byte in b"key sk-proj-1234567890 refused\n":
                await write(tail, bytes([byte]))
    assert [entry["text"] for entry in logs if entry["event"] == "child_stderr"] == ["key sk-*** refused"]
    assert {entry["log_level"] for entry in logs} == {"debug"}


async def test_few_lines_of_a_flood_are_logged() -> None:
    async with open_tail() as tail:
        with capture_logs() as logs:
            await write(tail, b"noise\n" * 50_000)
    assert len([entry for entry in logs if entry["event"] == "child_stderr"]) <= 3 * LINES_PER_SECOND


async def test_nothing_is_read_that_is_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    told = structlog.wrap_logger(None, wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    monkeypatch.setattr("proxy.rpc.stderr.log", told)
    monkeypatch.setattr("proxy.rpc.stderr.redact", pytest.fail)
    async with open_tail() as tail:
        await write(tail, b"token_" * 700 + b"\n")


@pytest.mark.parametrize("pause", [0.0, NEVER])
async def test_who_floods_waits_now_and_then_and_loses_nothing(pause: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there at each look is a step of the loop, and others want theirs."""
    monkeypatch.setattr("proxy.rpc.stderr.FLOOD_PAUSE", pause)
    async with open_tail() as tail:
        os.set_blocking(tail.write_end, False)
        written = 0
        for _ in range(5):
            with suppress(BlockingIOError):
                written += os.write(tail.write_end, b"noise\n" * (READ_SIZE // 6) + b"last")
            await settle()
        assert (written == 5 * READ_SIZE) == (pause == 0)
        assert tail.last_line() == "last"
