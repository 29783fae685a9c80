"""A stdio MCP server that answers each method from a table, its argument; standard library only.

`{"tools/list": {...}}` is a result, `"exit"` ends the process, `"silence"` means no answer now and
later, `"error"` a refusal, `"error -32000"` a refusal with this code. Methods without an entry are
refused, except for the older handshake; a method after a revision (`"2026-07-28 tools/list"`) is
for this revision. It writes the messages that it receives to stderr.
"""

import json
import sys
from typing import Any

TABLE = json.loads(sys.argv[1])
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
OLDER = {"capabilities": {"tools": {}}, "serverInfo": {"name": "table", "version": "1"}}


def main() -> None:
    version, is_silent = "", False
    for line in sys.stdin:
        match json.loads(line):
            case {"method": method, "id": number, **rest}:
                params: Any = rest.get("params") or {}
                version = params.get("_meta", {}).get(VERSION_KEY, version)
                if method == "initialize":
                    version = params["protocolVersion"]
                print(f"{version} {method}", file=sys.stderr, flush=True)
                answer = TABLE.get(f"{version} {method}", TABLE.get(method))
                if answer is None and method == "initialize":
                    answer = {"protocolVersion": version, **OLDER}
                is_silent = is_silent or answer == "silence"
                if answer == "exit":
                    sys.exit("I do not know this")
                if not is_silent:
                    send(number, answer)


def send(number: object, answer: Any) -> None:
    code = int(str(answer).removeprefix("error ")) if str(answer).startswith("error ") else -32601
    refused = {"error": {"code": code, "message": "no such thing"}}
    body = {"result": answer} if isinstance(answer, dict) else refused
    print(json.dumps({"jsonrpc": "2.0", "id": number, **body}), flush=True)


main()
