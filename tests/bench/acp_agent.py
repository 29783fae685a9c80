"""An agent of another program for measurements. A prompt's last words choose the reply:

    N tokens                 this many updates, at once
    N tokens in S seconds    this many, evenly spaced

Each token is the time at which it was sent (nanoseconds of CLOCK_MONOTONIC), as `t123 `.
"""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def prompt(session: str, text: str) -> None:
    tokens, seconds = re.findall(r"(\d+) tokens(?: in (\d+) seconds)?", text)[-1]
    pause, due = float(seconds or 0) / int(tokens), time.monotonic()
    for _ in range(int(tokens)):
        content = {"type": "text", "text": f"t{time.monotonic_ns()} "}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        send({"method": "session/update", "params": {"sessionId": session, "update": update}})
        if pause:
            sys.stdout.flush()
            due += pause
            time.sleep(max(0.0, due - time.monotonic()))


def main() -> None:
    count = 0
    for line in sys.stdin:
        message = json.loads(line)
        params, result = message.get("params") or {}, {}
        match message.get("method"):
            case "initialize":
                result = {"protocolVersion": 1, "agentInfo": {"name": "bench", "version": "1"}}
            case "session/new":
                count += 1
                result = {"sessionId": f"s{count}"}
            case "session/prompt":
                prompt(params["sessionId"], params["prompt"][-1]["text"])
                result = {"stopReason": "end_turn"}
        if "id" in message:
            send({"id": message["id"], "result": result})
        sys.stdout.flush()


if __name__ == "__main__":
    main()
