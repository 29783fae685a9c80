"""A stdio MCP server of an older revision, of the standard library alone, that goes wrong when told to.

`python fake_server.py [--die | --mute | --stubborn | --pages N]`; what it hears of interest goes to stderr.
"""

import json
import os
import signal
import sys
from typing import Any

TOOLS = ["echo", "die", "hang", "junk", "flood", "grow", "break"]
extra: list[str] = []


def main() -> None:
    if "--die" in sys.argv:
        log("no licence found")
        sys.exit(3)
    if "--stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log(f"pid {os.getpid()}")
    for line in sys.stdin:
        if "--mute" not in sys.argv:
            answer(json.loads(line))
    log("end of input")
    while "--stubborn" in sys.argv:
        signal.pause()


def answer(message: dict[str, Any]) -> None:
    match message:
        case {"method": "initialize", "id": number}:
            send(number, result={
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "fake", "version": "1"},
            })  # fmt: skip
        case {"method": "tools/list", "id": number}:
            send(number, result=page(message.get("params", {}).get("cursor")))
        case {"method": "tools/call", "id": number, "params": {"name": name, "arguments": dict(given)}}:
            call(number, name, given)
        case {"method": "notifications/cancelled", "params": {"requestId": number}}:
            log(f"cancelled {number}")
        case {"id": number}:
            send(number, error={"code": -32601, "message": "Method not found"})


def page(cursor: str | None) -> dict[str, Any]:
    """All tools; with `--pages N` two to a page and, after N pages, the first cursor again."""
    names = [*TOOLS, *extra]
    if "--pages" not in sys.argv:
        return {"tools": [tool(name) for name in names]}
    pages, number = int(sys.argv[-1]), int(cursor or 0)
    shown = names[number * 2 : number * 2 + 2]
    return {"tools": [tool(name) for name in shown], "nextCursor": str((number + 1) % pages or 1)}


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"To {name}.", "inputSchema": {"type": "object"}}


def call(number: int, name: str, arguments: dict[str, Any]) -> None:
    match name:
        case "die":
            log("about to die")
            os._exit(1)
        case "hang":
            log(f"hanging {number}")
            return
        case "break":
            send(number, error={"code": -32603, "message": "broken inside"})
            return
        case "junk":
            print('this is not JSON\n{"neither": "is this"}', flush=True)
        case "flood":
            sys.stderr.write("".join(f"noise {line}\n" for line in range(50_000)))
        case "grow":
            extra.append("grown")
            note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            print(json.dumps(note), flush=True)
    text = json.dumps(arguments, sort_keys=True)
    send(number, result={"content": [{"type": "text", "text": text}]})


def send(number: object, **body: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": number} | body), flush=True)


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


main()
