"""A stdio MCP server that changes files without a word to Neovim, with the argument shapes of the
protocol's own file server. It uses only the standard library, to start fast.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PATH = {"path": {"type": "string"}}
EDITS = {
    "edits": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
            "required": ["oldText", "newText"],
        },
    },
    "dryRun": {"type": "boolean"},
}
TOOLS: dict[str, dict[str, Any]] = {
    "edit_file": PATH | EDITS,
    "remove_file": PATH,
    "read_text_file": PATH,
}


def tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": TOOLS[name], "required": ["path"]}
    hints = {"readOnlyHint": name == "read_text_file"}
    return {"name": name, "description": name, "inputSchema": schema, "annotations": hints}


def call(name: str, arguments: dict[str, Any]) -> str:
    path = Path(arguments["path"])
    if name == "remove_file":
        path.unlink()
    elif name == "edit_file":
        text = path.read_text(encoding="utf-8")
        for edit in arguments["edits"]:
            text = text.replace(edit["oldText"], edit["newText"])
        path.write_text(text, encoding="utf-8")
    else:
        return path.read_text(encoding="utf-8")
    return "done"


def reply(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            info = {"name": "files", "version": "1"}
            capabilities: dict[str, Any] = {"tools": {}}
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": capabilities,
                "serverInfo": info,
            }
        case "tools/list":
            return {"tools": [tool(name) for name in TOOLS]}
        case "tools/call":
            text = call(params["name"], params["arguments"])
            return {"content": [{"type": "text", "text": text}]}
        case _:
            return None


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = reply(message["method"], message.get("params", {}))
            end = (
                {"error": {"code": -32601, "message": "?"}}
                if result is None
                else {"result": result}
            )
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **end}), flush=True)
