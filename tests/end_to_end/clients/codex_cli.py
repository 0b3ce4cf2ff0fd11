"""Codex itself as a client: `codex exec` with tagcall as its model provider and the vault as its MCP server."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.support.codex_programs import ROOT, child_environment
from tests.support.conversation import ToolCall
from tests.support.patience import PATIENCE

# A name that codex has no entry for. Of models that it knows it defers MCP tools behind a tool of its own.
MODEL = "some-model"

# A server that is not `required` has no tools in a turn that begins before it is up.
CONFIG = """
model = "{model}"
model_provider = "tagcall"
[model_providers.tagcall]
name = "tagcall"
base_url = "{url}"
wire_api = "responses"
supports_websockets = {websockets}
request_max_retries = 0
stream_max_retries = 0
[mcp_servers.vault]
command = {command}
args = ["-m", "tests.support.vault_mcp", {log}]
cwd = {root}
required = true
default_tools_approval_mode = "approve"
startup_timeout_sec = {patience}
tool_timeout_sec = {patience}
"""


async def run(program: Path, url: str, home: Path, prompt: str, *, websockets: bool) -> tuple[str, list[ToolCall]]:
    """What codex says in the end, and the calls that reached the MCP server."""
    log, work = home / "calls.jsonl", home / "work"
    work.mkdir(parents=True)
    config = CONFIG.format(
        model=MODEL,
        url=url,
        websockets=str(websockets).lower(),
        command=json.dumps(sys.executable),
        log=json.dumps(str(log)),
        root=json.dumps(str(ROOT)),
        patience=PATIENCE,
    )
    (home / "config.toml").write_text(config, "utf-8")
    process = await asyncio.create_subprocess_exec(
        str(program),
        *("exec", "--skip-git-repo-check", "--color", "never", prompt),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=work,
        env={**child_environment(home), "CODEX_HOME": str(home)},
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return out.decode().strip(), [ToolCall(**json.loads(line)) for line in lines]
