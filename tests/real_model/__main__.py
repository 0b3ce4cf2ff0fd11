"""What a real model makes of tagcall's prompt: `make real-model MODEL=PATH`. By hand; figures, not tests.

    question  --run_turn-->  prompt  --GgufBackend-->  llama.cpp in this process

copies   "show me this note", over notes that hold a call: who copies it, with which key, and what of it runs
calls    questions that need calls, and second calls after a result: made, and right
turn     one turn, and what the model wrote in it
table    what was counted

Answers are greedy, and cut. docs/contributing.md says where to get a model, and how to read the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from parser import ToolRegistry
from prompts import PROFILES, Transcript
from proxy.turn import CallKeys, KeyMode, TurnOptions
from tests.support.gguf_backend import GgufBackend

from . import calls, copies
from .table import Table
from .turn import Played, play

# What call keys are made from: always the same, so that the same questions get the same answers.
SECRET = bytes(32)


class Case(Protocol):
    """One question, and what its answer counts for in each column."""

    @property
    def labels(self) -> Sequence[str]: ...

    @property
    def tools(self) -> ToolRegistry: ...

    @property
    def transcript(self) -> Transcript: ...

    def counts(self, played: Played) -> Mapping[str, int]: ...


PARTS: Mapping[str, Callable[[], Iterator[Case]]] = {"copies": copies.cases, "calls": calls.questions}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.real_model", description="measure tagcall on a real model")
    parser.add_argument("model", type=Path, help="a GGUF file with a chat template in it")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all of them by default")
    parser.add_argument("--call-key", choices=[mode.value for mode in KeyMode], default=KeyMode.AUTO.value)
    parser.add_argument("--profile", choices=PROFILES, default="frontier")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--most-tokens", type=int, default=200, help="of one answer")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth question")
    parser.add_argument("--flat", action="store_true", help="show the conversation as one text instead of messages")
    parser.add_argument(
        "--tag-tokens", action="store_true", help="leave <tool_call> to a vocabulary that has it as a token"
    )
    parser.add_argument("--answers", type=Path, help="a file that gets a JSON line for each turn")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    return arguments


def _log(path: Path | None, case: Case, played: Played) -> None:
    if path:
        told = {"labels": case.labels, **played.as_json(), "counted": case.counts(played)}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told, ensure_ascii=False) + "\n")


async def main() -> None:
    chosen = _arguments()
    keys = CallKeys(KeyMode(chosen.call_key), SECRET)
    options = TurnOptions(profile=PROFILES[chosen.profile], call_keys=keys)
    async with GgufBackend(
        chosen.model,
        threads=chosen.threads,
        most_tokens=chosen.most_tokens,
        flat=chosen.flat,
        tag_tokens=chosen.tag_tokens,
    ) as backend:
        for part in chosen.parts or PARTS:
            table = Table()
            for case in islice(PARTS[part](), 0, None, chosen.every):
                played = await play(backend, case.transcript, case.tools, options)
                table.add(case.labels, case.counts(played), played.seconds)
                _log(chosen.answers, case, played)
            shown = "as one text" if chosen.flat else "as messages"
            tags = "the vocabulary's" if chosen.tag_tokens else "spelled"
            sys.stdout.write(f"{part} of {chosen.model.stem}: call key {chosen.call_key}, ")
            sys.stdout.write(f"profile {chosen.profile}, {shown}, tags {tags}\n{table}\n\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
