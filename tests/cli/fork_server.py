"""Commands of `parley` without the seconds of imports that each begins with.

A program that imports what a turn needs, once, and forks for each command. The fork is a process of its own
with the arguments, environment, folder, descriptors and terminal that it is given, and from there on runs and
ends as `python -m parley` does. What Python does before that, such as streams for closed descriptors or for
another encoding, is left out: tests of that start a new process.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TextIO

MODULES = (
    *(f"parley.{name}" for name in ("cli.arguments", "cli.inspect", "cli.respond", "cli.servers")),
    *(f"parley.{name}" for name in ("demo.server", "runtime.app", "storage.ledger", "mock_server")),
    *("openai", "openai.types", "mcp.client.stdio", "mcp.server.mcpserver"),
    *("anyio._backends._asyncio", "httpcore2", "truststore", "uvicorn.protocols.http.h11_impl"),
    *("jsonschema", "parley.export.html", "yaml"),
)
START_S = 45.0


class Command:
    """A command that runs in a fork."""

    def __init__(self, connection: socket.socket, channel: TextIO) -> None:
        self._connection, self._channel = connection, channel
        self.pid = int(channel.readline())
        self._code: int | None = None

    def kill(self) -> None:
        """End it at once, if it has not ended."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Its exit code, or the number of the signal that ended it below zero."""
        if self._code is None:
            self._connection.settimeout(timeout)
            self._code = int(self._channel.readline())
        return self._code


class ForkServer:
    """Runs commands, one after the other."""

    def __enter__(self) -> ForkServer:
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                env={**os.environ, "LC_ALL": "C.UTF-8"},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self._channel = self._connection.makefile("r", encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()
        self._connection.close()
        self._process.wait()

    def start(
        self,
        arguments: tuple[str, ...],
        environ: Mapping[str, str],
        folder: Path,
        handles: tuple[int, int, int],
    ) -> Command:
        """A command with these as its standard input, output and error."""
        self._connection.settimeout(START_S)
        socket.send_fds(self._connection, [b"."], handles)
        asked = {"arguments": arguments, "environ": dict(environ), "folder": str(folder)}
        self._connection.sendall(json.dumps(asked).encode() + b"\n")
        return Command(self._connection, self._channel)


def forked(connection: socket.socket) -> dict[str, Any] | None:
    """In each fork what is asked of it, with its descriptors in place; None when no more is asked."""
    channel = connection.makefile("r", encoding="utf-8")
    while True:
        handles = socket.recv_fds(connection, 1, 3)[1]
        if not handles:
            return None
        asked: dict[str, Any] = json.loads(channel.readline())
        child = os.fork()
        if child == 0:
            for number, handle in enumerate(handles):
                os.dup2(handle, number)
        for handle in handles:
            os.close(handle)
        if child == 0:
            channel.close()
            connection.close()
            return asked
        connection.sendall(f"{child}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(f"{code}\n".encode())


def begin(request: dict[str, Any]) -> None:
    """Make this process what a shell would have started."""
    if os.isatty(0):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = ["parley", *request["arguments"]]
    sys.stdin, sys.stdout, sys.stderr = stream(0, "r"), stream(1, "w"), stream(2, "w")


def stream(number: int, mode: Literal["r", "w"]) -> TextIO:
    """A stream as Python makes them at its start, in the locale C.UTF-8."""
    errors = "backslashreplace" if number == 2 else "surrogateescape"
    by_lines = 1 if number == 2 or os.isatty(number) else -1
    return open(number, mode, by_lines, encoding="utf-8", errors=errors, closefd=False)


def main(handle: int) -> int:
    for name in MODULES:
        import_module(name)
    gc.freeze()
    asked = forked(socket.socket(fileno=handle))
    if asked is None:
        return 0
    begin(asked)
    from parley.cli import main as parley

    return parley()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
