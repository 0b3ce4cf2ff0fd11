"""Codex itself as a client: `codex exec` with tagcall as its provider and the vault as its MCP server."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from proxy.rpc import ChildTransport, Launch, RpcClient, RpcObject
from tests.support.codex_programs import ROOT, child_environment
from tests.support.patience import PATIENCE
from tests.support.processes import said_by
from tests.support.tool_call import ToolCall

# Of a model without an entry codex lists the tools of MCP servers; of others it hides them behind a search, or in code.
UNKNOWN_MODEL = "some-model"
SEARCHING_MODEL = "gpt-5.5"
CODING_MODEL = "gpt-6.1-sol"

# What a person changes to come here: the one line, which means a WebSocket, or a provider.
BASE_URL = 'openai_base_url = "{url}"\n'
PROVIDER = """
model_provider = "tagcall"
[model_providers.tagcall]
name = "{name}"
base_url = "{url}"
wire_api = "responses"
supports_websockets = {websockets}
request_max_retries = {retries}
stream_max_retries = {retries}
"""

# A server that is not `required` has no tools in a turn that begins before it is up.
MCP_SERVER = """
[mcp_servers.vault]
command = {command}
args = ["-m", "tests.support.vault_mcp", {log}]
cwd = {root}
required = true
default_tools_approval_mode = "approve"
startup_timeout_sec = {patience}
tool_timeout_sec = {patience}
"""


def provider(url: str, *, websockets: bool, name: str = "tagcall", retries: int = 0) -> str:
    """Codex compacts at its provider only where the provider's name is OpenAI."""
    return PROVIDER.format(name=name, url=url, websockets=str(websockets).lower(), retries=retries)


@dataclass(frozen=True, slots=True)
class CodexClient:
    """An installation of codex whose sessions are kept in `home`."""

    program: Path
    home: Path

    def configure(self, provider: str, *, model: str = UNKNOWN_MODEL, compact_at: int | None = None) -> None:
        """`compact_at`: tokens of a conversation that is compacted."""
        limit = "" if compact_at is None else f"model_auto_compact_token_limit = {compact_at}\n"
        server = MCP_SERVER.format(
            command=json.dumps(sys.executable),
            log=json.dumps(str(self._log)),
            root=json.dumps(str(ROOT)),
            patience=PATIENCE,
        )
        (self.home / "work").mkdir(parents=True)
        (self.home / "config.toml").write_text(f'model = "{model}"\n{limit}{provider}{server}', "utf-8")

    @property
    def _environment(self) -> Mapping[str, str]:
        return {**child_environment(self.home), "CODEX_HOME": str(self.home), "CODEX_API_KEY": "any"}

    @property
    def _log(self) -> Path:
        return self.home / "calls.jsonl"

    @property
    def calls(self) -> list[ToolCall]:
        """Those that reached the MCP server, in all sessions."""
        lines = self._log.read_text("utf-8").splitlines() if self._log.exists() else []
        return [ToolCall(**json.loads(line)) for line in lines]

    async def ask(self, prompt: str, *, resume: bool = False) -> str:
        """What codex says in the end. `resume`: in its last session."""
        out, err, status = await self._run(prompt, resume=resume)
        assert status == 0, err
        return out.strip()

    async def fail(self, prompt: str) -> list[str]:
        """The errors that codex shows of a turn that fails, each once."""
        _, err, status = await self._run(prompt)
        assert status == 1, err
        return list(dict.fromkeys(re.findall(r"^ERROR: (.*)$", err, re.MULTILINE)))

    def log_in(self) -> None:
        """With a ChatGPT account, as far as codex itself looks at one."""
        claims = {"email": "a@b.example", "https://api.openai.com/auth": {"chatgpt_account_id": "a"}, "exp": 4 * 10**9}
        parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims)]
        token = ".".join([*parts, "c2ln"])
        tokens = {"id_token": token, "access_token": token, "refresh_token": "r", "account_id": "a"}
        login = {"OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": datetime.now(UTC).isoformat()}
        (self.home / "auth.json").write_text(json.dumps(login), "utf-8")

    async def limits(self) -> RpcObject:
        """Those that `/status` shows."""
        env = {name: value for name, value in self._environment.items() if name != "CODEX_API_KEY"}
        launch = Launch([str(self.program), "app-server"], env, self.home / "work")
        client = RpcClient(await ChildTransport.start(launch), on_notification=lambda method, params: None)
        async with asyncio.timeout(PATIENCE), client.running():
            await client.request("initialize", {"clientInfo": {"name": "test", "version": "0"}}, deadline=PATIENCE)
            client.notify("initialized")
            limits: RpcObject = (await client.request("account/rateLimits/read", deadline=PATIENCE))["rateLimits"]
            return limits

    async def turn(self, tool_output: Mapping[str, str]) -> str:
        """The status of a turn of its app-server behind what a tool gave."""
        status = asyncio.get_running_loop().create_future()

        def heard(method: str, params: RpcObject) -> None:
            if method == "turn/completed" and not status.done():
                status.set_result(params["turn"]["status"])

        launch = Launch([str(self.program), "app-server"], self._environment, self.home / "work")
        client = RpcClient(await ChildTransport.start(launch), on_notification=heard)
        async with asyncio.timeout(PATIENCE), client.running():
            capabilities = {"clientInfo": {"name": "test", "version": "0"}, "capabilities": {"experimentalApi": True}}
            await client.request("initialize", capabilities, deadline=PATIENCE)
            client.notify("initialized")
            thread = (await client.request("thread/start", {"ephemeral": True}, deadline=PATIENCE))["thread"]["id"]
            # Beside an input it is refused.
            given = {"threadId": thread, "input": [], "toolOutput": tool_output}
            await client.request("turn/start", given, deadline=PATIENCE)
            return str(await status)

    async def _run(self, prompt: str, *, resume: bool = False) -> tuple[str, str, int | None]:
        process = await asyncio.create_subprocess_exec(
            str(self.program),
            *("exec", "--skip-git-repo-check", "--color", "never"),
            *(("resume", "--last") if resume else ()),
            prompt,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.home / "work",
            env=self._environment,
        )
        return *await said_by(process), process.returncode
