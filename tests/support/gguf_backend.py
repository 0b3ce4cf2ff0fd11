"""A text backend over a GGUF file: llama.cpp's own server in this process. Needs the extra `model`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp
import orjson

from parser import CLOSE_TAG, OPEN_TAG
from proxy.backends.chat.requests import said
from proxy.contracts import BackendEvent, Health, Load, Model, Prompt, TextPiece, TurnEnded, Usage
from proxy.errors import BackendError

from .parts import text_of_parts

# Characters of a tag behind which it is cut to be more than one token: `<tool` and `_call>`.
CUT = -len("_call>")
# MiB for the prompts of before: with them another set of tools, or a turn without any, costs no other its prefix.
KEPT_PROMPTS = 512
# Tokens of a prompt and its answer.
CONTEXT = 8192


class GgufBackend:
    """Answers greedily, one turn after the other, with `most_tokens` an answer.

    It is shown the conversation as messages, or with `flat` as one text, behind the text `base` if there is one.

    Some vocabularies have each of our tags as one token, which not every model with that vocabulary has learnt to use.
    Such tags are shown in ordinary tokens and the one token is forbidden, as if there were none; `tag_tokens` leaves
    them to the vocabulary.
    """

    def __init__(
        self,
        path: Path,
        *,
        threads: int,
        most_tokens: int,
        flat: bool,
        tag_tokens: bool,
        base: str | None,
    ) -> None:
        self._path = path
        self._threads = threads
        self._most_tokens = most_tokens
        self._flat = flat
        self._tag_tokens = tag_tokens
        self._base = base
        self._split: list[str] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.to_thread(self._start)
        self._client = aiohttp.ClientSession(
            self._server.listening_address,
            # The server closes an idle connection whenever it likes, also while the next request is on its way.
            connector=aiohttp.TCPConnector(force_close=True),
            timeout=aiohttp.ClientTimeout(),
        )
        if not self._tag_tokens:
            self._split = [tag for tag in (OPEN_TAG, CLOSE_TAG) if len(await self._tokens(tag)) == 1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.close()
        del self._server

    def _start(self) -> Any:
        import xllamacpp  # noqa: PLC0415 -- an extra that only this backend needs

        wanted = xllamacpp.CommonParams()
        wanted.model.path = str(self._path)
        wanted.hostnames = ["127.0.0.1"]
        wanted.port = 0
        wanted.n_ctx = CONTEXT
        wanted.n_parallel = 1
        wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = self._threads
        wanted.cache_ram_mib = KEPT_PROMPTS
        wanted.warmup = False
        wanted.verbosity = -1
        return xllamacpp.Server(wanted)

    async def _ask(self, path: str, **body: Any) -> Any:
        async with self._client.post(path, json=body) as response:
            if response.status != 200:
                raise BackendError(f"llama.cpp says {response.status}: {await response.text()}")
            return await response.json()

    async def _tokens(self, text: str) -> list[int]:
        answer = await self._ask("/tokenize", content=text, parse_special=True)
        return list(answer["tokens"])

    async def _input(self, prompt: Prompt) -> list[int | str]:
        """The prompt in the model's own template: tokens, then texts that no token reaches across."""
        shown = prompt.developer if self._flat else prompt.head
        shown_as = [("user", prompt.parts)] if self._flat else said(prompt.items)
        messages = [{"role": "system", "content": text} for text in (self._base, shown) if text]
        messages += [{"role": role, "content": text_of_parts(parts)} for role, parts in shown_as]
        templated: str = (await self._ask("/apply-template", messages=messages))["prompt"]
        if self._split:
            tags = "|".join(f"(?<={re.escape(tag[:CUT])})(?={re.escape(tag[CUT:])})" for tag in self._split)
            first, *others = re.split(tags, templated)
        else:
            first, others = templated, []
        # A list of texts alone would be taken for many prompts.
        return [*await self._tokens(first), *others]

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        body = {
            "prompt": await self._input(prompt),
            "stream": True,
            "temperature": 0,
            "n_predict": self._most_tokens,
            "logit_bias": [[tag, False] for tag in self._split],
        }
        # Leaving this closes the connection, which ends the turn at the server.
        async with self._client.post("/completion", json=body) as response:
            if response.status != 200:
                raise BackendError(f"llama.cpp says {response.status}: {await response.text()}")
            yield _batches(response)

    def heeds(self, model: str) -> frozenset[str]:
        return frozenset()

    takes_items: bool = True
    keeps_conversations: bool = False

    def holds(self, schema: str) -> bool:
        return False

    async def models(self) -> Sequence[Model]:
        return [Model(self._path.stem, 0, "local")]

    async def health(self) -> Health:
        return Health(None)

    def load(self) -> Load:
        return Load()


async def _batches(response: aiohttp.ClientResponse) -> AsyncIterator[Sequence[BackendEvent]]:
    async for line in response.content:
        if not line.startswith(b"data: "):
            continue
        event = orjson.loads(line.removeprefix(b"data: "))
        if text := event["content"]:
            yield [TextPiece(text)]
        if event["stop"]:
            timings = event["timings"]
            cached = timings["cache_n"]
            usage = Usage(cached + timings["prompt_n"], cached, timings["predicted_n"])
            yield [TurnEnded(usage, "max_output_tokens" if event["stop_type"] == "limit" else None)]
