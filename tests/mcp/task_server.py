"""An MCP server whose calls run as tasks; it uses only the standard library.

`python task_server.py [--newest] [--http PORT_FILE]`: over stdio, or over HTTP on a port that it
writes into a file; in the form of revision 2025-11-25, or of the extension of 2026-07-28. It logs
its requests' methods in the file that LOG names. While the file that HOLD names exists, it cancels
nothing.

`dig` and `web_search` must run as tasks, `sift` may, `look` does not. The argument `polls` says
after how many polls a task is over (0: never), unless the variable GO names a file whose existence
ends it. `end` is its status then, or a kind of error; `id` is its id. `ask` makes it ask for a
colour, or "junk"; `locked` lists the poll numbers at which it does not report its state.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SUPPORT = {"dig": "required", "web_search": "required", "sift": "optional", "look": "forbidden"}
FORM = {
    "message": "Which colour?",
    "requestedSchema": {
        "type": "object",
        "properties": {"colour": {"type": "string"}},
        "required": ["colour"],
    },
}
SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "say: so be it"}}],
    "maxTokens": 50,
}
INFO = {"name": "tasks", "version": "1"}
TASKS: dict[str, Any] = {"requests": {"tools": {"call": {}}}, "cancel": {}}


class RefusedError(Exception):
    """A protocol error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class TaskServer:
    """A server's tasks, and its requests' methods."""

    def __init__(
        self, *, newest: bool = False, runs_tasks: bool = True, log: Path | None = None
    ) -> None:
        self.newest = newest
        self.runs_tasks = runs_tasks
        self.methods = list[str]()
        self.tasks = dict[str, dict[str, Any]]()
        self.pause_ms = 50
        self.session = ""
        """The id of the only session over HTTP that it knows; "" for none."""
        self.sessions: dict[str, TaskServer] | None = None
        """Each session's own tasks, as in the reference server; None if all sessions share them."""
        self.ended = list[str]()
        """The sessions that clients have ended."""
        self._log = log

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """The reply to a message; None if it needs none."""
        if "id" not in message or "method" not in message:
            return None
        method, parameters = message["method"], message.get("params") or {}
        self.methods.append(method)
        if self._log:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(f"{method}\n")
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            return {**reply, "result": self.result(method, parameters)}
        except RefusedError as error:
            return {**reply, "error": {"code": error.code, "message": str(error)}}

    def result(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize" if not self.newest:
                capabilities = {"tools": {}, **({"tasks": TASKS} if self.runs_tasks else {})}
                return {
                    "protocolVersion": "2025-11-25",
                    "capabilities": capabilities,
                    "serverInfo": INFO,
                }
            case "server/discover" if self.newest:
                capabilities = {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
                return {
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": capabilities,
                    "serverInfo": INFO,
                }
            case "tools/list":
                schema = {"type": "object"}
                tools = [
                    {"name": n, "description": f"To {n}.", "inputSchema": schema} for n in SUPPORT
                ]
                kinds = [
                    {} if self.newest else {"execution": {"taskSupport": k}}
                    for k in SUPPORT.values()
                ]
                return {"tools": [tool | kind for tool, kind in zip(tools, kinds, strict=True)]}
            case "tools/call":
                return self.call(parameters)
            case "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update":
                task = self.tasks.get(parameters["taskId"])
                if task is None:
                    raise RefusedError(-32602, f"Task not found: {parameters['taskId']}")
                return self.of_task(method, task, parameters)
            case _:
                raise RefusedError(-32601, "Method not found")

    def call(self, parameters: dict[str, Any]) -> dict[str, Any]:
        arguments = parameters.get("arguments") or {}
        can_wait = "extensions" in json.dumps(parameters) if self.newest else "task" in parameters
        if not can_wait:
            if SUPPORT[parameters["name"]] == "required" and not self.newest:
                raise RefusedError(-32601, "only as a task")
            return {"content": [{"type": "text", "text": "at once"}]}
        if self.newest and parameters["name"] == "look":
            return {"resultType": "complete", "content": [{"type": "text", "text": "at once"}]}
        task = {
            "polls": 2,
            "end": "completed",
            "asked": 0,
            "id": f"task-{len(self.tasks) + 1}",
            **arguments,
        }
        task |= {"go": os.environ["GO"]} if "GO" in os.environ else {}
        task["status"] = "working"
        self.tasks[task["id"]] = task
        about = self.about(task)
        return {"resultType": "task", **about} if self.newest else {"task": about}

    def about(self, task: dict[str, Any]) -> dict[str, Any]:
        now = "2026-11-23T12:00:00Z"
        facts = {
            "taskId": task["id"],
            "status": task["status"],
            "createdAt": now,
            "lastUpdatedAt": now,
            "statusMessage": task.get("says", f"step {task['asked']}"),
        }
        ttl, pause = ("ttlMs", "pollIntervalMs") if self.newest else ("ttl", "pollInterval")
        return {**facts, ttl: 60_000, pause: self.pause_ms}

    def of_task(
        self, method: str, task: dict[str, Any], parameters: dict[str, Any]
    ) -> dict[str, Any]:
        match method:
            case "tasks/get" if task["asked"] + 1 in task.get("locked", ()):
                task["asked"] += 1
                raise RefusedError(-32603, "database is locked")
            case "tasks/get":
                return self.poll(task)
            case "tasks/update":
                task["answer"] = parameters["inputResponses"]
                return {}
            case "tasks/cancel":
                while Path(os.environ.get("HOLD", "/nowhere")).exists():
                    time.sleep(0.01)
                task["status"] = "cancelled"
                return {} if self.newest else self.about(task)
            case _ if task["end"] == "failed":
                raise RefusedError(-32603, "the shovel broke")
            case _:
                return self.outcome(task)

    def poll(self, task: dict[str, Any]) -> dict[str, Any]:
        task["asked"] += 1
        is_over = Path(task["go"]).exists() if "go" in task else task["asked"] == task["polls"]
        if task["end"] == "gone" and task["asked"] > 1:
            raise RefusedError(-32602, "Task has expired")
        if task.get("ask") and "answer" not in task:
            task["status"] = "input_required"
        elif is_over or task["status"] in ("completed", "failed"):
            task["status"] = "paused" if task["end"] == "paused" else task["end"]
            if task["end"] in ("other", "picture"):
                task["status"] = "completed"
        elif task["status"] == "input_required":
            task["status"] = "working"
        about = self.about(task)
        if task["end"] == "stranger":
            about["taskId"] = "another"
        if self.newest and task["status"] == "completed":
            about["result"] = self.outcome(task)
        if self.newest and task["status"] == "failed":
            about["error"] = {"code": -32603, "message": "the shovel broke"}
        if self.newest and task["status"] == "input_required":
            questions = {
                "sample": {"method": "sampling/createMessage", "params": SAMPLE},
                "junk": {"method": "no"},
            }
            form = {"method": "elicitation/create", "params": FORM}
            about["inputRequests"] = {"colour": questions.get(task["ask"], form)}
        return about

    def outcome(self, task: dict[str, Any]) -> dict[str, Any]:
        text = f"dug {json.dumps(task['answer'], sort_keys=True)}" if "answer" in task else "dug"
        content: list[Any] = [{"type": "text", "text": text}]
        if task["end"] == "picture":
            content += [{"type": "image", "data": PIXEL, "mimeType": "image/png"}, {"type": "odd"}]
            content += ["no part", 7, ["nor this"], None]
        other = "another" if task["end"] == "other" else task["id"]
        return {
            "content": content,
            "_meta": {"io.modelcontextprotocol/related-task": {"taskId": other}},
        }


class Handler(BaseHTTPRequestHandler):
    tasks: TaskServer
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.tasks.sessions is not None:
            self.answer_in_session(message, self.tasks.sessions)
            return
        if self.headers.get("mcp-session-id", self.tasks.session) != self.tasks.session:
            self.send_error(404)
            return
        self.reply(self.tasks.answer(message), self.tasks.session)

    def answer_in_session(self, message: dict[str, Any], sessions: dict[str, TaskServer]) -> None:
        session = self.headers.get("mcp-session-id", "")
        if not session and message["method"] == "initialize":
            session = f"session-{len(sessions) + 1}"
            sessions[session] = TaskServer()
            sessions[session].pause_ms = self.tasks.pause_ms
        if session not in sessions:
            self.send_error(404 if session else 400)
            return
        self.tasks.methods.append(f"{session} {message['method']}")
        self.reply(sessions[session].answer(message), session)

    def do_DELETE(self) -> None:
        session = self.headers.get("mcp-session-id", "")
        self.tasks.ended.append(session)
        (self.tasks.sessions or {}).pop(session, None)
        self.send_response(204)
        self.end_headers()

    def reply(self, reply: dict[str, Any] | None, session: str) -> None:
        body = b"" if reply is None else json.dumps(reply).encode()
        self.send_response(202 if reply is None else 200)
        if reply is not None:
            self.send_header("content-type", "application/json")
        if session:
            self.send_header("mcp-session-id", session)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has there
        pass


def http_server(tasks: TaskServer) -> ThreadingHTTPServer:
    """A server over HTTP, on its own port, with sessions according to `tasks`."""
    return ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"tasks": tasks}))


def converse(tasks: TaskServer) -> None:
    """Serve over stdio; a task's requests come with the request for its result."""
    lock = threading.Lock()

    def send(message: dict[str, Any]) -> None:
        with lock:
            print(json.dumps(message), flush=True)

    def collect(message: dict[str, Any]) -> None:
        task = tasks.tasks[message["params"]["taskId"]]
        while task["status"] not in ("completed", "failed"):
            time.sleep(0.02)
        send(tasks.answer(message) or {})

    for line in sys.stdin:
        message = json.loads(line)
        task = tasks.tasks.get((message.get("params") or {}).get("taskId", ""))
        if message.get("method") == "tasks/result" and task and task["status"] == "input_required":
            send(
                {"jsonrpc": "2.0", "id": task["id"], "method": "elicitation/create", "params": FORM}
            )
            threading.Thread(target=collect, args=[message], daemon=True).start()
        elif "method" not in message:
            tasks.tasks[message["id"]]["answer"] = message.get("result") or message.get("error")
        elif reply := tasks.answer(message):
            send(reply)


def main() -> None:
    log = Path(os.environ["LOG"]) if "LOG" in os.environ else None
    tasks = TaskServer(newest="--newest" in sys.argv, log=log)
    if "--http" not in sys.argv:
        converse(tasks)
        return
    server = http_server(tasks)
    place = Path(sys.argv[sys.argv.index("--http") + 1])
    place.with_suffix(".new").write_text(str(server.server_port), encoding="utf-8")
    place.with_suffix(".new").replace(place)
    server.serve_forever()


if __name__ == "__main__":
    main()
