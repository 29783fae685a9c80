"""An agent for tests: speaks the Agent Client Protocol over stdin and stdout as its script says.

    python scripted_agent.py SCRIPT LOG [login]

The script is JSON: `prompts` is a list of prompts, each a list of steps; the last prompt repeats.
Other keys replace results: `initialize`, `session/new`, and so on. With `login`, sessions need a
login, which the word `login` on the command line or the request `authenticate` makes. Requests in
`silent` get no response. Each message that arrives is appended to the log. Knows nothing about
Parley.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


class ScriptedAgent:
    """Handles messages one by one, so a step may wait for an answer."""

    def __init__(self, script: dict[str, Any], log: Path) -> None:
        self.script = script
        self.login = log.with_suffix(".login")
        self.log = log
        self.prompts = 0
        self.number = 1000
        self.session = ""
        self.is_cancelled = False
        self.answers: dict[int, Any] = {}

    def send(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def read(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(line)
        message: dict[str, Any] = json.loads(line)
        return message

    def serve(self) -> None:
        while True:
            self.handle(self.read())

    def handle(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": "session/cancel"}:
                self.is_cancelled = True
            case {"method": "session/prompt", "id": number}:
                self.prompt(number)
            case {"method": str(method), "id": number}:
                self.reply(method, number, message.get("params") or {})
            case {"id": int(number)}:
                self.answers[number] = message.get("result", message.get("error"))

    def reply(self, method: str, number: object, params: dict[str, Any]) -> None:
        usual: dict[str, Any] = {
            "initialize": {
                "protocolVersion": 1,
                "agentInfo": {"name": "scripted", "version": "1"},
                "agentCapabilities": {"promptCapabilities": {"image": True}},
            },
            "session/new": {"sessionId": f"s{time.monotonic_ns()}"},
        }
        result = self.script.get(method, usual.get(method))
        if method == "session/new" and self.script.get("login") and not self.login.exists():
            result = {"error": {"code": -32000, "message": "Authentication required"}}
        if method in ("authenticate", "logout") and result is not None:
            self.login.touch() if method == "authenticate" else self.login.unlink(missing_ok=True)
        if method in ("session/load", "session/resume"):
            self.update(
                {"sessionUpdate": "agent_message_chunk", "content": text("replayed")}, params
            )
        if method in self.script.get("silent", ()):
            return
        if result is None:
            self.send({"id": number, "error": {"code": -32601, "message": "not found"}})
        elif isinstance(result, dict) and "error" in result:
            self.send({"id": number, "error": result["error"]})
        else:
            self.session = result.get("sessionId") or params.get("sessionId") or self.session
            self.send({"id": number, "result": result})

    def update(self, update: dict[str, Any], params: dict[str, Any] | None = None) -> None:
        session = (params or {}).get("sessionId") or self.session
        self.send({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def prompt(self, number: object) -> None:
        prompts = self.script["prompts"]
        steps = prompts[min(self.prompts, len(prompts) - 1)]
        self.prompts += 1
        self.is_cancelled = False
        stop = "end_turn"
        for step in steps:
            if self.is_cancelled:
                break
            stop = self.step(step) or stop
        reason = "cancelled" if self.is_cancelled else stop
        self.send({"id": number, "result": {"stopReason": reason}})

    def step(self, step: dict[str, Any]) -> str | None:  # noqa: C901  one case for each step
        """Take a step; returns a stop reason if the step names one."""
        match step:
            case {"say": words}:
                self.update({"sessionUpdate": "agent_message_chunk", "content": text(words)})
            case {"say_variable": name}:
                words = os.environ.get(name, "(unset)")
                self.update({"sessionUpdate": "agent_message_chunk", "content": text(words)})
            case {"think": words}:
                self.update({"sessionUpdate": "agent_thought_chunk", "content": text(words)})
            case {"update": update, **rest}:
                for _ in range(rest.get("times", 1)):
                    self.update(update)
            case {"ask": calls, **rest}:
                self.ask(calls if isinstance(calls, list) else [calls], rest)
            case {"request": method, "params": params}:
                self.wait([self.request(method, {"sessionId": self.session, **params})])
            case {"terminal": params, **rest}:
                self.terminal(params, rest.get("then", ()))
            case {"show_terminal": command}:
                self.show_terminal(command)
            case {"requests": requests}:
                self.wait(
                    [
                        self.request(r["request"], {"sessionId": self.session, **r["params"]})
                        for r in requests
                    ]
                )
            case {"raw": line, **rest}:
                sys.stdout.write((line + "\n") * rest.get("times", 1))
                sys.stdout.flush()
            case {"stderr": words, **rest}:
                sys.stderr.write(words * rest.get("times", 1))
                sys.stderr.flush()
            case {"sleep": seconds}:
                time.sleep(seconds)
            case {"wait": "cancel"}:
                while not self.is_cancelled:
                    self.handle(self.read())
            case {"write": path, "text": words}:
                Path(path).write_text(words, encoding="utf-8")
            case {"complain": words}:
                sys.stderr.write(f"{words}\n")
                sys.stderr.flush()
            case {"exit": code}:
                sys.exit(code)
            case {"stop": reason}:
                return str(reason)
        return None

    def request(self, method: str, params: dict[str, Any]) -> int:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.number

    def terminal(self, params: dict[str, Any], steps: list[Any]) -> None:
        """Create a terminal, then send requests for it; a number waits for so many seconds."""
        session = {"sessionId": self.session}
        (made,) = self.wait([self.request("terminal/create", {**session, **params})])
        for step in steps if "terminalId" in made else ():
            if isinstance(step, dict):
                self.step(step)
            elif isinstance(step, str):
                about = {**session, "terminalId": made["terminalId"]}
                self.wait([self.request(f"terminal/{step}", about)])
            else:
                time.sleep(step)

    def show_terminal(self, command: str) -> None:
        """Run a command in a terminal that a call of the agent shows, after its release."""
        about = {"sessionId": self.session}
        (made,) = self.wait([self.request("terminal/create", {**about, "command": command})])
        about["terminalId"] = made["terminalId"]
        for method in ("terminal/wait_for_exit", "terminal/release"):
            self.wait([self.request(method, about)])
        content = [{"type": "terminal", "terminalId": made["terminalId"]}]
        self.update(
            {"sessionUpdate": "tool_call", "toolCallId": "shown", "title": command,
             "kind": "execute", "status": "completed", "content": content}
        )  # fmt: skip

    def ask(self, calls: list[dict[str, Any]], rest: dict[str, Any]) -> None:
        """Ask about calls together; then write the text of those that are allowed, and report."""
        options = rest.get("options", OPTIONS)
        numbers = [
            self.request(
                "session/request_permission",
                {"sessionId": self.session, "toolCall": call, "options": options},
            )
            for call in calls
        ]
        answers = self.wait(numbers)
        for call, answer in zip(calls, answers, strict=True):
            outcome = answer.get("outcome", {})
            if outcome.get("optionId") in ("yes", "always"):
                for step in rest.get("then", ()):
                    self.step(step)
                self.update(
                    {
                        "sessionUpdate": "tool_call_update",
                        "toolCallId": call["toolCallId"],
                        "status": "completed",
                        "content": [{"type": "content", "content": text("done")}],
                    }
                )

    def wait(self, numbers: list[int]) -> list[Any]:
        while not all(number in self.answers for number in numbers):
            self.handle(self.read())
        return [self.answers[number] for number in numbers]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]

if __name__ == "__main__":
    agent = ScriptedAgent(
        json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])
    )
    if sys.argv[3:] == ["login"]:
        print("Signed in here, with", os.environ.get("WAY"))
        agent.login.touch()
    elif sys.argv[3:]:
        sys.exit(3)
    else:
        agent.serve()
