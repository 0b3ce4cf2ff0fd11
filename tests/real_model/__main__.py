"""What a real model makes of tagcall's prompt, by hand; figures, not tests.

    question  --run_turn-->  prompt  --GgufBackend-->  llama.cpp in this process

`make eval-model MODEL=PATH`: `tagcall eval` with such a backend. `make real-model MODEL=PATH`: "show me this note",
over notes that hold a call: who copies it, with which key, and what of it runs.

copies   these requests, and what is counted of their answers
table    what was counted
base     the instructions that codex puts in front of everything

Answers are greedy, and cut. docs/contributing.md says where to get a model, and how to read the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from prompts import PROFILES
from proxy.cli.eval import add_eval_flags, eval_options, run_eval
from proxy.cli.eval.play import PlayedTurn, play
from proxy.cli.record.turns import RecordedBackend
from proxy.contracts import TurnEnded
from proxy.logs import configure
from proxy.server import turn_options
from proxy.settings import Settings
from proxy.turn import Habits, KeyMode
from tests.support.gguf_backend import GgufBackend

from . import copies
from .base import base_instructions
from .table import Table

# What call keys are made from: always the same, so that the same questions get the same answers.
SECRET = "0" * 64


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.real_model", description="measure tagcall on a real model")
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("eval", "copies"):
        one = commands.add_parser(command)
        one.add_argument("gguf", type=Path, metavar="MODEL", help="a GGUF file with a chat template in it")
        one.add_argument("--profile", choices=PROFILES, default="frontier")
        one.add_argument("--call-key", choices=[mode.value for mode in KeyMode], default=KeyMode.AUTO.value)
        one.add_argument("--threads", type=int, default=1)
        one.add_argument("--most-tokens", type=int, default=200, help="of one answer")
        one.add_argument("--base", action="store_true", help="put codex's own base instructions in front")
        one.add_argument("--flat", action="store_true", help="show the conversation as one text instead of messages")
        one.add_argument(
            "--tag-tokens", action="store_true", help="leave <tool_call> to a vocabulary that has it as a token"
        )
    add_eval_flags(commands.choices["eval"])
    commands.choices["copies"].add_argument("--every", type=int, default=1, metavar="N", help="only every Nth request")
    commands.choices["copies"].add_argument("--answers", type=Path, help="a file that gets a JSON line for each turn")
    return parser.parse_args()


async def main() -> int:
    chosen = _arguments()
    configure("error", "console")
    backend = GgufBackend(
        chosen.gguf,
        threads=chosen.threads,
        most_tokens=chosen.most_tokens,
        flat=chosen.flat,
        tag_tokens=chosen.tag_tokens,
        base=await base_instructions() if chosen.base else None,
    )
    shown = "as one text" if chosen.flat else "as messages"
    tags = "the vocabulary's" if chosen.tag_tokens else "spelled"
    base = "codex's" if chosen.base else "none"
    print(f"{chosen.gguf.stem}, greedy: {shown}, tags {tags}, base instructions {base}\n", flush=True)
    with TemporaryDirectory() as folder:
        secret = Path(folder) / "call-key"
        secret.write_text(SECRET, encoding="ascii")
        settings = Settings(
            backend="gguf",
            model=(chosen.gguf.stem,),
            profile=chosen.profile,
            call_key=chosen.call_key,
            call_key_secret=secret,
            base_instructions=None if chosen.base else "none",
        )
        if chosen.command == "eval":
            return await run_eval(settings, eval_options(vars(chosen)), backend)
        await _copies(settings, backend, chosen.every, chosen.answers)
        return 0


async def _copies(settings: Settings, gguf: GgufBackend, every: int, answers: Path | None) -> None:
    options, table = turn_options(settings, Habits()), Table()
    async with RecordedBackend(gguf) as backend:
        # What is known of a model counts, and mostly something is.
        for request in copies.greetings():
            await play(backend, settings.model[0], request, options)
        for case in islice(copies.cases(), 0, None, every):
            played = await play(backend, settings.model[0], case.request, options)
            table.add(case.labels, case.counts(played), played.seconds)
            if answers:
                with answers.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(_told(case, played), ensure_ascii=False) + "\n")
    print(f"copies: call key {settings.call_key}, profile {settings.profile}\n{table}")


def _told(case: copies.CopyCase, played: PlayedTurn) -> dict[str, object]:
    ends = [event for turn in played.heard for _, event in turn.told if isinstance(event, TurnEnded)]
    return {
        "labels": case.labels,
        "written": played.written,
        "cut": any(end.incomplete for end in ends),
        "text": played.text,
        "calls": [(call.name, call.arguments) for call in played.calls],
        "failed": played.failed,
        "again": played.report.again,
        "refused": played.report.counts["refused"],
        "warnings": played.report.warnings,
        "key": played.key,
        "seconds": round(played.seconds, 1),
        "counted": case.counts(played),
    }


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
