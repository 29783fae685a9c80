"""A language server that speaks the protocol over standard input and output, for Python-like files.

A line `name = …` defines a name; the word `bug` in a line is an error. It only knows texts that a
client has opened, and asks for no other features.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

_texts = dict[str, list[str]]()


def read() -> dict[str, Any] | None:
    """The next message; None at the end."""
    size = 0
    while line := sys.stdin.buffer.readline().strip():
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(size)) if size else {}
    return message or None


def send(message: dict[str, Any]) -> None:
    content = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
    sys.stdout.buffer.flush()


def spot(line: int, start: int, end: int) -> dict[str, Any]:
    return {
        "start": {"line": line, "character": start},
        "end": {"line": line, "character": end},
    }


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def uses(name: str) -> Iterator[dict[str, Any]]:
    for uri, lines in _texts.items():
        for row, line in enumerate(lines):
            for use in re.finditer(rf"\b{name}\b", line):
                start = units(line[: use.start()])
                yield {"uri": uri, "range": spot(row, start, start + units(name))}


def is_definition(place: dict[str, Any]) -> bool:
    line = _texts[place["uri"]][place["range"]["start"]["line"]]
    return place["range"]["start"]["character"] == 0 and " = " in line


def name_at(params: dict[str, Any]) -> str:
    """The name at a position, which counts UTF-16 units."""
    position = params["position"]
    line = _texts[params["textDocument"]["uri"]][position["line"]]
    before = line.encode("utf-16-le")[: 2 * position["character"]].decode("utf-16-le")
    name = re.match(r"\w*", line[len(before) :])
    return name[0] if name else ""


def check(uri: str) -> None:
    found = [
        {"range": spot(row, 0, 3), "severity": 1, "message": "this is a bug", "source": "fake"}
        for row, line in enumerate(_texts[uri])
        if "bug" in line
    ]
    send(
        {"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "diagnostics": found}}
    )


def reply(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "initialize":
            kinds = ("definition", "references", "workspaceSymbol")
            providers = {f"{kind}Provider": True for kind in kinds}
            return {"capabilities": {"textDocumentSync": 1, **providers}}
        case "textDocument/definition":
            return [place for place in uses(name_at(params)) if is_definition(place)]
        case "textDocument/references":
            return [*uses(name_at(params))]
        case "workspace/symbol" if params["query"] == "malformed":
            bad = [3, "x", None, {"location": 7}, {"location": {"uri": 4}}, {"location": {}}]
            return [*bad, {"location": {"uri": "file:///x", "range": 5}}]
        case "workspace/symbol":
            names = {
                line.split(" = ")[0] for lines in _texts.values() for line in lines if " = " in line
            }
            return [
                {"name": name, "kind": 13, "location": place}
                for name in sorted(names)
                if params["query"] in name
                for place in uses(name)
                if is_definition(place)
            ]
        case _:
            return None


def main() -> None:
    while (message := read()) is not None:
        params = message.get("params") or {}
        match message.get("method"):
            case "textDocument/didOpen":
                document = params["textDocument"]
                _texts[document["uri"]] = document["text"].split("\n")
                check(document["uri"])
            case "textDocument/didChange":
                uri = params["textDocument"]["uri"]
                _texts[uri] = params["contentChanges"][-1]["text"].split("\n")
                check(uri)
            case "textDocument/didClose":
                del _texts[params["textDocument"]["uri"]]
            case "exit":
                return
            case str(method) if "id" in message:
                send({"id": message["id"], "result": reply(method, params)})


if __name__ == "__main__":
    main()
