"""`tagcall log`: the turns of a running server, a line each; with `--full` what the model was shown and wrote."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from typing import Any

import aiohttp
from msgspec import Struct

from ..advice import command
from ..errors import UsageError
from ..server import base_url, read_keys
from ..settings import Settings

# Bytes that a line of the stream may have: a summary is names and numbers.
LINE = 1 << 20


class LogOptions(Struct, frozen=True):
    """`full`: with the words. `as_json`: an object a line."""

    full: bool = False
    as_json: bool = False


def add_log_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--full", action="store_true", help="show what the model read and wrote, too; needs serve --inspect"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a turn")


def log_options(arguments: Mapping[str, Any]) -> LogOptions:
    return LogOptions(arguments["full"], arguments["json"])


async def run_log(settings: Settings, options: LogOptions) -> int:
    """Until the server ends. Raises `UsageError`."""
    if settings.port == 0:
        raise UsageError("--port 0 names no server", "give the port that the server printed")
    root = base_url(settings.host, settings.port, settings.base_path).removesuffix("/v1")
    key = _key(settings)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=None)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout, read_bufsize=LINE) as session:
        try:
            if options.full and not (await _json(session, f"{root}/inspect/state"))["inspect"]:
                raise UsageError(f"This server keeps no words: start it with {command('serve --inspect')}.")
            async for turn in _turns(session, root):
                told = await _json(session, f"{root}/inspect/turns/{turn['id']}") if options.full else turn
                text = json.dumps(told) if options.as_json else "\n".join(_lines(told))
                print(text, flush=True)
        except aiohttp.ClientError:
            raise UsageError(
                f"No tagcall answers on {root}: start it with {command('serve')}, or give --port."
            ) from None
    print("The server has stopped.", file=sys.stderr)
    return 0


def _key(settings: Settings) -> str | None:
    """The one that sees all, or the first that a server of these settings takes. Raises `UsageError`."""
    if settings.inspect_key is not None:
        return settings.inspect_key
    return read_keys(settings)[0] if settings.api_key or settings.api_key_file else None


async def _json(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    async with session.get(url) as response:
        return await _answered(response)


async def _answered(response: aiohttp.ClientResponse) -> dict[str, Any]:
    body = await response.json() if response.content_type == "application/json" else {}
    if response.status == 401:
        raise UsageError("This server wants its key: give --inspect-key, --api-key or --api-key-file.")
    if response.status != 200 or not isinstance(body, dict):
        raise UsageError(
            f"{response.url.origin()} is no tagcall that can be followed", "name another by --host and --port"
        )
    return body


async def _turns(session: aiohttp.ClientSession, root: str) -> AsyncIterator[dict[str, Any]]:
    """Each turn once, when it is over."""
    told: dict[str, None] = {}
    async with session.get(f"{root}/inspect/events") as response:
        if response.content_type != "text/event-stream":
            await _answered(response)
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            turn = json.loads(line[6:])
            if turn["state"] != "running" and turn["id"] not in told:
                told[turn["id"]] = None
                if len(told) > 10_000:
                    del told[next(iter(told))]
                yield turn


def printable(text: object) -> str:
    """`text` without what a terminal would obey."""
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in str(text))


def _line(turn: Mapping[str, Any]) -> str:
    """The turn on one line."""
    tokens = turn["input_tokens"]
    parts = [
        datetime.fromtimestamp(turn["at"]).astimezone().strftime("%H:%M:%S"),
        turn["state"] + (f": {turn['error']}" if turn["error"] else ""),
        turn["model"],
        f"{turn['seconds']:.2f} s",
        "" if tokens is None else f"{tokens} -> {turn['output_tokens']} tokens",
        turn["said"],
        turn.get("key"),
        turn["client"],
    ]
    return "  ".join(printable(part).replace("\n", " ") for part in parts if part)


def _lines(turn: Mapping[str, Any]) -> Iterator[str]:
    yield _line(turn)
    for answer in turn.get("answers", ()):
        for message in answer["prompt"]:
            yield f"--- {message['role']}"
            yield printable(message["text"])
        yield "--- the model wrote"
        yield printable(answer["wrote"])
    if turn.get("dropped"):
        yield "--- its words are gone: newer ones needed the place (--inspect-bytes)"
