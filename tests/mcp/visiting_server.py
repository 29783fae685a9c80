"""A stdio MCP server with revision 2025-11-25 that wants pages opened; it uses only the standard
library.

`python visiting_server.py URL [FILE]`: the tool `visit` asks for the page and returns the answer;
`locked`, and every resource, is refused with the required page until FILE exists; then the server
reports the end.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

URL, FILE = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "/nowhere/at/all")
PAGE = {"mode": "url", "message": "Sign in, \x1b[31mplease", "url": URL, "elicitationId": "page-1"}
visits: list[Any] = []
lock = threading.Lock()


def send(**message: Any) -> None:
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def returned(number: Any, text: str) -> None:
    send(id=number, result={"content": [{"type": "text", "text": text}]})


def watch() -> None:
    while not FILE.exists():
        time.sleep(0.02)
    send(method="notifications/elicitation/complete", params={"elicitationId": "page-1"})


def answer(message: dict[str, Any]) -> None:
    match message:
        case {"method": "initialize", "id": number}:
            print(
                "offered",
                json.dumps(message["params"]["capabilities"]),
                file=sys.stderr,
                flush=True,
            )
            info = {"name": "visiting", "version": "1"}
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
            send(id=number, result=result)
        case {"method": "tools/list", "id": number}:
            schema = {"type": "object"}
            tools = [{"name": name, "inputSchema": schema} for name in ("visit", "locked")]
            send(id=number, result={"tools": tools})
        case {"method": "tools/call", "id": number, "params": {"name": "visit"}}:
            visits.append(number)
            send(id="ask", method="elicitation/create", params=PAGE)
        case {"id": "ask", **reply}:
            returned(
                visits.pop(), json.dumps(reply.get("result") or reply.get("error"), sort_keys=True)
            )
        case {"method": "tools/call", "id": number} if FILE.exists():
            returned(number, "unlocked")
        case {"method": "resources/read", "id": number, "params": {"uri": uri}} if FILE.exists():
            send(id=number, result={"contents": [{"uri": uri, "text": "unlocked"}]})
        case {"method": "tools/call" | "resources/read", "id": number}:
            threading.Thread(target=watch, daemon=True).start()
            data = {"elicitations": [PAGE]}
            send(id=number, error={"code": -32042, "message": "sign in first", "data": data})
        case {"id": number, "method": _}:
            send(id=number, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    for line in sys.stdin:
        answer(json.loads(line))
