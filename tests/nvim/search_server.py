"""A stdio MCP server whose tools answer, fail, or take time and can be cancelled.

It uses only the standard library, to start fast, because a Neovim restarts it when settings change.
"""

from __future__ import annotations

import json
import sys
from threading import Event, Lock, Thread
from typing import Any

STEP_S = 0.05
SCHEMAS: dict[str, dict[str, str]] = {
    "web_search": {"query": "string"},
    "fail": {},
    "slow": {"seconds": "number"},
    "silent": {"seconds": "number"},
    "write_note": {"text": "string"},
    "write_file": {"path": "string", "content": "string"},
}
_one_at_a_time = Lock()
_running = dict[int, Event]()
"""The running slow calls; the event cancels a call."""


def tool(name: str) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in SCHEMAS[name].items()}
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return {
        "name": name,
        "title": name.capitalize(),
        "description": f"Does {name}.",
        "inputSchema": schema,
    }


def send(message: dict[str, Any]) -> None:
    with _one_at_a_time:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def reply(number: int, text: str, is_error: bool = False) -> None:
    send(
        {"id": number, "result": {"content": [{"type": "text", "text": text}], "isError": is_error}}
    )


def slow(number: int, seconds: float, token: Any) -> None:
    """Take some seconds, with progress if the request has a token; a cancelled call gets no answer."""
    steps = max(1, round(seconds / STEP_S))
    for step in range(steps):
        if token is not None:
            told = {
                "progressToken": token,
                "progress": step,
                "total": steps,
                "message": f"step {step}",
            }
            send({"method": "notifications/progress", "params": told})
        if _running[number].wait(seconds / steps):
            print("slow: cancelled", file=sys.stderr, flush=True)
            return
    reply(number, f"waited {seconds:g} s")


def call(number: int, name: str, params: dict[str, Any]) -> None:
    match name:
        case "web_search":
            reply(number, f"{params['arguments']['query']} stock GOOGL price is $911 as of today")
        case "slow" | "silent":
            _running[number] = Event()
            token = params.get("_meta", {}).get("progressToken") if name == "slow" else None
            Thread(
                target=slow, args=(number, params["arguments"]["seconds"], token), daemon=True
            ).start()
        case "fail":
            reply(number, "it did not work", is_error=True)
        case _:
            reply(number, "noted")


def answer(message: dict[str, Any]) -> None:
    match message:
        case {"method": "initialize", "id": number}:
            info = {"name": "search", "version": "1"}
            version = "2025-06-18"
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            send({"id": number, "result": result})
        case {"method": "tools/list", "id": number}:
            send({"id": number, "result": {"tools": [tool(name) for name in SCHEMAS]}})
        case {"method": "tools/call", "id": number, "params": params}:
            call(number, params["name"], params)
        case {"method": "notifications/cancelled", "params": {"requestId": number}} if (
            number in _running
        ):
            _running[number].set()
        case {"id": number}:
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


if __name__ == "__main__":
    for line in sys.stdin:
        answer(json.loads(line))
