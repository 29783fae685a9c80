"""A stdio MCP server whose every text is HOSTILE: its name, its tool's names, progress, question,
suggested answer, and error. It uses only the standard library.

The tool `t` reports progress until the file named by GO exists, then asks, then fails.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

TEXT = os.environ["HOSTILE"]
SCHEMA = {"type": "object", "properties": {"query": {"type": "string", "description": TEXT}}}
FORM = {
    "type": "object",
    "properties": {
        "one": {"type": "string", "title": TEXT, "description": TEXT, "enum": [TEXT, "other"]},
        "two": {"type": "string", "title": TEXT, "default": "\x12=" + TEXT},
    },
    "required": ["one", "two"],
}
TOOL = {
    "name": "t",
    "title": TEXT,
    "description": TEXT,
    "inputSchema": SCHEMA,
    "annotations": {"title": TEXT},
}
PROMPT = {
    "name": TEXT,
    "title": TEXT,
    "description": TEXT,
    "arguments": [{"name": TEXT, "required": True}],
}
ANSWERS: dict[str, dict[str, Any]] = {
    "tools/list": {"tools": [TOOL]},
    "prompts/list": {"prompts": [PROMPT, PROMPT | {"name": "my plain"}]},
}


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def initialized(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "prompts": {}},
        "serverInfo": {"name": TEXT, "version": TEXT},
    }


def outcome(message: dict[str, Any]) -> dict[str, Any]:
    token = message["params"].get("_meta", {}).get("progressToken")
    step = 0
    while not Path(os.environ["GO"]).exists():
        step += 1
        told = {"progressToken": token, "progress": step, "message": TEXT}
        send({"method": "notifications/progress", "params": told})
        time.sleep(0.05)
    send(
        {
            "id": "form",
            "method": "elicitation/create",
            "params": {"message": TEXT, "requestedSchema": FORM},
        }
    )
    next(line for line in sys.stdin if '"form"' in line)
    return {"content": [{"type": "text", "text": TEXT}], "isError": True}


if __name__ == "__main__":
    print(TEXT, file=sys.stderr, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        known = {"initialize": initialized, "tools/call": outcome}.get(request["method"])
        result = known(request) if known else ANSWERS.get(request["method"])
        error = {"code": -32601, "message": TEXT}
        send({"id": request["id"]} | ({"result": result} if result else {"error": error}))
