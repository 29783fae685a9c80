"""A stdio MCP server that floods its client as its argument says; it uses only the standard
library.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

KIND = sys.argv[1]
OVER = threading.Lock()
pages = 0


def out(message: dict[str, Any]) -> None:
    with OVER:
        print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def answer(number: object, **result: Any) -> None:
    out({"id": number, "result": result})


def note(method: str, **params: Any) -> None:
    out({"method": method, "params": params})


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "Does it.", "inputSchema": {"type": "object"}, **more}


def flood(send: Callable[[], None]) -> None:
    def run() -> None:
        while not threading.Event().wait(0.002):  # the lock must be free for an answer
            send()

    threading.Thread(target=run, daemon=True).start()


def begin() -> None:
    match KIND:
        case "changes":
            flood(lambda: note("notifications/tools/list_changed"))
        case "resources":
            flood(lambda: note("notifications/resources/list_changed"))
            flood(lambda: note("notifications/resources/updated", uri="note://a"))
        case "logs":
            flood(lambda: note("notifications/message", level="info", data="x" * 100))


def listed() -> dict[str, Any]:
    global pages
    pages += 1
    print(f"listed {pages}", file=sys.stderr, flush=True)
    match KIND:
        case "tools":
            return {"tools": [tool(f"t{n:05}") for n in range(20_000)]}
        case "pages":
            return {"tools": [tool(f"t{pages}")], "nextCursor": f"after {pages}"}
        case "empty pages":
            return {"tools": [], "nextCursor": f"after {pages}"}
        case "a description":
            return {"tools": [tool("large", description="d" * 10_000_000), tool("small")]}
        case "descriptions":
            return {"tools": [tool(f"t{n:03}", description="d" * 90_000) for n in range(50)]}
        case "a list with each change":
            note("notifications/tools/list_changed")
    return {"tools": [tool("echo")]}


def call(number: object, token: object) -> None:
    match KIND:
        case "progress":
            for n in range(2_000):
                note("notifications/progress", progressToken=token, progress=n, message="m" * 1_000)
        case "forms":
            asked = {"type": "object", "properties": {"a": {"type": "string"}}}
            params = {"message": "?", "requestedSchema": asked}
            for n in range(200):
                out({"id": f"form {n}", "method": "elicitation/create", "params": params})
            return
        case "questions":
            for n in range(50_000):
                out({"id": n, "method": "ping"})
        case "parts":
            answer(number, content=[{"type": "text", "text": "x"}] * 5_000)
            return
        case "a line":
            with OVER:
                while True:
                    sys.stdout.write("x" * 100_000)
    answer(number, content=[{"type": "text", "text": "done"}])


def main() -> None:
    replies = list[str]()
    asking: object = None
    for line in sys.stdin:
        match json.loads(line):
            case {"method": "initialize", "id": number}:
                answer(
                    number,
                    protocolVersion="2025-06-18",
                    capabilities={"tools": {"listChanged": True}},
                    serverInfo={"name": "flood", "version": "1"},
                )
            case {"method": "notifications/initialized"}:
                begin()
            case {"method": "tools/list", "id": number}:
                answer(number, **listed())
            case {"method": "tools/call", "id": number, "params": params}:
                asking = number
                call(number, params.get("_meta", {}).get("progressToken"))
            case {"method": _, "id": number}:
                out({"id": number, "error": {"code": -32601, "message": "no such method"}})
            case {"id": str()} as reply:
                replies.append("refused" if "error" in reply else "answered")
                if len(replies) == 200:
                    counted = (
                        f"answered {replies.count('answered')}, refused {replies.count('refused')}"
                    )
                    answer(asking, content=[{"type": "text", "text": counted}])


main()
