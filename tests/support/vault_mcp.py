"""The vault as an MCP server on standard input and output: `python -m tests.support.vault_mcp LOG`.

Each call of a tool becomes a line of JSON in the file LOG.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .tool_call import ToolCall
from .vault import DESCRIPTIONS, execute, schema


def answer(method: str, params: dict[str, Any], log: Path) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "vault", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            described = DESCRIPTIONS.items()
            tools = [{"name": name, "description": text, "inputSchema": schema(name)} for name, text in described]
            return {"tools": tools}
        case "tools/call":
            call = ToolCall(params["name"], params.get("arguments") or {})
            with log.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"name": call.name, "arguments": call.arguments}) + "\n")
            return {"content": [{"type": "text", "text": execute(call)}]}
        case _:
            return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {}, Path(sys.argv[1]))
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
