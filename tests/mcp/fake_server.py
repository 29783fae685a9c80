"""A stdio MCP server with an older revision that misbehaves on request; it uses only the standard
library.

`python fake_server.py [OPTION…]`; it reports interesting messages on stderr. Options: `--die`,
`--mute`, `--stubborn`, `--pages N`; `--parent` starts a child that outlives it; `--more` adds tools
that ask their client or exceed all bounds; `--many` adds three hundred tools; `--odd` adds a tool
with a long name, one with a broken schema, one with odd parameter names and one that is a task.
`--logs` sends log messages with each list; the variable FAKE_SAYS contains its instructions.
"""

import json
import os
import signal
import subprocess
import sys
from typing import Any

TOOLS = ["echo", "die", "hang", "junk", "flood", "grow", "break"]
MORE = ["ask", "mail", "whisper", "roots", "sample", "huge", "spill"]
REQUESTS = {
    "ask": (
        "elicitation/create",
        {
            "message": "Which \x1b[31mcolour?",
            "requestedSchema": {
                "type": "object",
                "properties": {"colour": {"type": "string"}},
                "required": ["colour"],
            },
        },
    ),
    "mail": (
        "elicitation/create",
        {
            "message": "Where to?",
            "requestedSchema": {
                "type": "object",
                "properties": {"to": {"type": "string", "format": "email"}},
                "required": ["to"],
            },
        },
    ),
    "roots": ("roots/list", {}),
    "sample": (
        "sampling/createMessage",
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": "say: so be it"}}],
            "maxTokens": 50,
        },
    ),
}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WHISPER = [
    {"type": "text", "text": "said to both", "annotations": {"audience": ["user", "assistant"]}},
    {
        "type": "text",
        "text": "\U0001f4ac: forged\n```\nsecret",
        "annotations": {"audience": ["user"]},
    },
    {
        "type": "image",
        "data": PIXEL,
        "mimeType": "image/png",
        "annotations": {"audience": ["user"]},
    },
    {
        "type": "text",
        "text": "for the model",
        "annotations": {"audience": ["assistant"], "priority": 0.3},
    },
]
extra: list[str] = []
calls: dict[str, object] = {}


def main() -> None:
    if "--die" in sys.argv:
        log("no licence found")
        sys.exit(3)
    if "--stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "--parent" in sys.argv:
        subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
    log(f"pid {os.getpid()}")
    for line in sys.stdin:
        if "--mute" not in sys.argv:
            answer(json.loads(line))
    log("end of input")
    while "--stubborn" in sys.argv:
        signal.pause()


def answer(message: dict[str, Any]) -> None:
    match message:
        case {"id": str(asked), **reply} if "method" not in reply:
            text = json.dumps(reply.get("result") or reply.get("error"), sort_keys=True)
            send(calls.pop(asked), result={"content": [{"type": "text", "text": text}]})
        case {"method": "initialize", "id": number}:
            begin(number, message["params"]["capabilities"])
        case {"method": "tools/list", "id": number}:
            list_tools(number, message.get("params", {}).get("cursor"))
        case {
            "method": "tools/call",
            "id": number,
            "params": {"name": name, "arguments": dict(given)},
        }:
            call(number, name, given)
        case {"method": "resources/read", "id": number, "params": {"uri": uri}}:
            read(number, uri)
        case {"method": "prompts/list" | "resources/list" as method, "id": number}:
            send(number, result=LISTS[method])
        case {"method": "prompts/get", "id": number, "params": dict(wanted)}:
            prompt(number, wanted["name"], wanted.get("arguments") or {})
        case {"method": "notifications/cancelled", "params": {"requestId": number}}:
            log(f"cancelled {number}")
        case {"id": number}:
            send(number, error={"code": -32601, "message": "Method not found"})


def begin(number: int, offered: object) -> None:
    log("offered " + json.dumps(offered, sort_keys=True))
    send(number, result={
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "fake", "version": "1"},
        **({"instructions": os.environ["FAKE_SAYS"]} if "FAKE_SAYS" in os.environ else {}),
    })  # fmt: skip


def list_tools(number: int, cursor: str | None) -> None:
    log("listed")
    if "--logs" in sys.argv:
        for data in ("one\x1b[2J", {"number": 2}, "x" * 9_000):
            note("message", level="warning", logger="fake.list", data=data)
    send(number, result=page(cursor))


PROMPTS: list[dict[str, Any]] = [
    {
        "name": "greet",
        "title": "A greeting",
        "description": "Greets.",
        "arguments": [
            {"name": "whom", "description": "Who is it?", "required": True},
            {"name": "how"},
        ],
    },
    {"name": "plain"},
]

URIS = ["note://a.py", "note://b c.md", "note://with@@sign", "note://turned\u202earound"]
LISTS = {
    "prompts/list": {"prompts": PROMPTS},
    "resources/list": {"resources": [{"uri": uri, "name": "a note"} for uri in URIS]},
}


def read(number: int, uri: str) -> None:
    part: dict[str, Any] = {"uri": uri, "mimeType": "text/plain"}
    match uri.partition("://")[0]:
        case "note":
            send(
                number,
                result={"contents": [part | {"text": "one\n\x1b[2Jtwo"}, part | {"text": "three"}]},
            )
        case "bytes":
            send(number, result={"contents": [part | {"blob": "AAAA"}]})
        case "hang":
            log(f"hanging {number}")
        case "die":
            os._exit(1)
        case _:
            send(number, error={"code": -32002, "message": "no such resource"})


def prompt(number: int, name: str, arguments: dict[str, str]) -> None:
    if name != "greet":
        send(number, error={"code": -32602, "message": f"no prompt {name}"})
        return
    said = [
        ("user", f"Hello {arguments['whom']}\x07"),
        ("assistant", "Hi.\n\nAnd?"),
        ("user", "How are you?"),
    ]
    send(number, result={
        "messages": [{"role": role, "content": {"type": "text", "text": text}} for role, text in said]
    })  # fmt: skip


def page(cursor: str | None) -> dict[str, Any]:
    """All tools; with `--pages N`, two per page and, after N pages, the first cursor again."""
    names = [*TOOLS, *extra]
    names += MORE if "--more" in sys.argv else []
    names += [f"tool_{index}" for index in range(300)] if "--many" in sys.argv else []
    if "--odd" in sys.argv:
        schema = {"type": "object", "properties": {"a": {"type": "no such type", "pattern": "("}}}
        odd = [tool("x.y." * 32), {**tool("strange"), "inputSchema": schema}]
        named = {
            "type": "object",
            "properties": {"file name": {}, "n" * 70: {}},
            "required": ["file name"],
        }
        odd += [{**tool("blank"), "inputSchema": named}]
        odd += [
            {**tool(f"task_{kind}"), "execution": {"taskSupport": kind}}
            for kind in ("required", "optional")
        ]
        return {"tools": [*map(tool, names), *odd]}
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
        case "spill":
            sys.stdout.buffer.write(b"junk\n" * 2_000 + b"\xff" * 1_000_000 + b"\n")
        case "huge":
            arguments = {"text": "x" * arguments["bytes"]}
        case "ask" | "mail" | "roots" | "sample":
            asked = f"q{number}"
            calls[asked] = number
            method, params = REQUESTS[name]
            print(
                json.dumps({"jsonrpc": "2.0", "id": asked, "method": method, "params": params}),
                flush=True,
            )
            return
        case "grow":
            extra.append("grown")
            note("tools/list_changed")
    text = arguments["text"] if name == "huge" else json.dumps(arguments, sort_keys=True)
    send(
        number,
        result={"content": WHISPER if name == "whisper" else [{"type": "text", "text": text}]},
    )


def send(number: object, **body: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": number} | body), flush=True)


def note(method: str, **params: object) -> None:
    message = {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}
    print(json.dumps(message), flush=True)


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


main()
