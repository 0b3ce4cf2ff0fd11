"""The kinds of items that codex reports, and which of them may stand in an answer.

    read              what an answer is made of
    harmless          skipped: they do nothing, and they tell a client nothing
    acting            codex does something on this machine or elsewhere, or to the conversation that was sent: the
                      turn is ended, whatever its owner says
    any other         of a newer codex, and so unknown: the turn is ended, unless its owner allows the kind

Those of codex 0.89 to 0.171 are known, from the schemas that these programs write themselves.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import orjson

from ...advice import command
from ...errors import UsageError
from .program import printed_by

READ = frozenset({"agentMessage", "reasoning", "userMessage"})
HARMLESS = frozenset({"enteredReviewMode", "exitedReviewMode", "hookPrompt"})
ACTING = frozenset({
    "collabAgentToolCall", "commandExecution", "contextCompaction", "dynamicToolCall", "fileChange",
    "functionCallOutput", "imageGeneration", "imageView", "mcpToolCall", "plan", "sleep", "subAgentActivity",
    "webSearch",
})  # fmt: skip


def allowed_items(setting: Iterable[str]) -> frozenset[str]:
    """The kinds that are passed over, those of `--allow-item` included. Raises `UsageError`."""
    kinds = frozenset(setting)
    if refused := sorted(kinds & (ACTING | READ)):
        raise UsageError(
            f"--allow-item {refused[0]} is refused, because codex acts or answers with such items",
            f"leave it out; it is for the unknown kinds that {command('doctor')} names",
        )
    return HARMLESS | kinds


def unknown_kinds(program: Path, allowed: Iterable[str] = ()) -> list[str] | None:
    """Kinds of the program's items by which a turn would be ended although nobody knows what they are.

    None when it does not say which it has. Blocks while it runs.
    """
    told = _kinds_of(program)
    return None if told is None else sorted(told - READ - HARMLESS - ACTING - frozenset(allowed))


def _kinds_of(program: Path) -> frozenset[str] | None:
    """All that the program may tell of, by the schema that it writes of its own protocol."""
    with tempfile.TemporaryDirectory(prefix="tagcall-") as folder:
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "CODEX_HOME": folder}
        try:
            printed_by([program, "app-server", "generate-json-schema", "--out", f"{folder}/schema"], environment)
            written = orjson.loads((Path(folder) / "schema" / "v2" / "ItemStartedNotification.json").read_bytes())
            kinds = written["definitions"]["ThreadItem"]["oneOf"]
            return frozenset(str(kind) for item in kinds for kind in item["properties"]["type"]["enum"])
        except (OSError, subprocess.TimeoutExpired, ValueError, LookupError, TypeError):
            return None
