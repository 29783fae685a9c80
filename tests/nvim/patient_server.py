"""A stdio MCP server with one tool, `look_up`, which answers when the file named by GO exists.

It uses only the standard library, to start fast. A test creates the file to let the tool end. With
PROGRESS, the tool reports progress in these words, ten times a second for the query `beat`. The
tool `fail` fails.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    match message["method"]:
        case "initialize":
            info = {"name": "patient", "version": "1"}
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        case "tools/list":
            return {
                "tools": [{"name": "look_up", "description": "Looks it up.", "inputSchema": SCHEMA}]
            }
        case "tools/call":
            query, step = message["params"]["arguments"]["query"], 2
            if "PROGRESS" in os.environ:
                report(message, step, 5)
            while not Path(os.environ["GO"]).exists():
                time.sleep(0.1 if query == "beat" else 0.01)
                if query == "beat":
                    report(message, step := step + 1, None)
            return {"content": [{"type": "text", "text": "found"}], "isError": query == "fail"}
        case _:
            return None


def report(call: dict[str, Any], step: int, total: int | None) -> None:
    token, words = call["params"]["_meta"]["progressToken"], os.environ["PROGRESS"]
    progress = {"progressToken": token, "progress": step, "message": words} | (
        {"total": total} if total else {}
    )
    print(
        json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}),
        flush=True,
    )


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result, error = answer(request), {"code": -32601, "message": "Method not found"}
            reply = {"jsonrpc": "2.0", "id": request["id"]}
            print(
                json.dumps(reply | ({"result": result} if result else {"error": error})), flush=True
            )
