"""A stdio MCP server that sends one hostile text in every place.

It uses only the standard library, so it starts at once. The variable HOSTILE contains the text as
JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

TEXT = json.loads(os.environ["HOSTILE"])
SCHEMA = {"type": "object", "properties": {TEXT or "x": {"type": "string", "description": TEXT}}}
TOOL = {"name": "note", "title": TEXT, "description": TEXT, "inputSchema": SCHEMA}
NAMED = {"name": f"n{TEXT}", "description": TEXT, "inputSchema": SCHEMA}


def answer(message: dict[str, Any]) -> None:
    match message:
        case {"method": "initialize", "id": number}:
            info = {"name": TEXT, "version": TEXT, "title": TEXT}
            about = {"capabilities": {"tools": {}, "logging": {}}, "instructions": TEXT}
            reply(number, {"protocolVersion": "2025-06-18", "serverInfo": info, **about})
        case {"method": "tools/list", "id": number}:
            reply(number, {"tools": [TOOL, NAMED]})
        case {"method": "tools/call", "id": number, "params": params}:
            sys.stderr.write(f"{TEXT}\n")
            token = params.get("_meta", {}).get("progressToken")
            note("notifications/progress", {"progressToken": token, "progress": 1, "message": TEXT})
            note("notifications/message", {"level": "error", "data": TEXT})
            reply(
                number,
                {"content": [{"type": "text", "text": TEXT}], "isError": "fail" in str(params)},
            )
        case {"id": number}:
            error = {"code": -32601, "message": TEXT}
            send({"jsonrpc": "2.0", "id": number, "error": error})


def reply(number: int, result: dict[str, Any]) -> None:
    send({"jsonrpc": "2.0", "id": number, "result": result})


def note(method: str, params: dict[str, Any]) -> None:
    send({"jsonrpc": "2.0", "method": method, "params": params})


def send(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    for line in sys.stdin:
        answer(json.loads(line))
