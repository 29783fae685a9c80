"""The program that forks; it uses only the standard library, except for the modules that it imports
for its forks.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import termios
import threading
import time
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, TextIO

CLI = (
    "answer",
    "approval_dialog",
    "arguments",
    "ask",
    "batch",
    "chat",
    "show",
    "pager",
    "respond",
    "servers",
)
PARTS = ("conversion.exports.html", "http.bodies", "mock_server", "nvim.plugin")
MODULES = (
    *(f"parley.cli.{name}" for name in CLI),
    *(f"parley.{name}" for name in (*PARTS, "runtime.app", "session", "storage.ledger")),
    *(
        "anthropic",
        "anthropic.types",
        "openai",
        "openai.types",
        "mcp.client.stdio",
        "mcp.server.mcpserver",
    ),
    *("anyio._backends._asyncio", "concurrent.futures.thread", "httpcore2", "truststore"),
    *("jsonschema", "yaml", "pynvim", "rich.logging", "rich.syntax"),
)


@dataclass(frozen=True)
class Request:
    """The process to run: its arguments after `python`, its folder and its standard streams."""

    arguments: list[str]
    environ: dict[str, str]
    folder: str
    mask: int
    handles: list[int]


def received(connection: socket.socket) -> Request | None:
    """The request from the other end; None if that end is gone."""
    head, handles, *_ = socket.recv_fds(connection, 8, 3)
    message = b""
    while head and len(message) < int.from_bytes(head):
        piece = connection.recv(int.from_bytes(head) - len(message))
        if not piece:
            return None
        message += piece
    if not head:
        return None
    arguments, environ, folder, mask = marshal.loads(message)
    return Request(arguments, environ, folder, mask, handles)


def signals(connection: socket.socket) -> Iterable[int]:
    """The signals that the client received for its fork; SIGKILL if the client was killed."""
    try:
        return connection.recv(64) or [signal.SIGKILL]
    except ConnectionError:  # killed before it read the answer
        return [signal.SIGKILL]


class Forks:
    """The running forks, each with its client's connection."""

    def __init__(self, listener: socket.socket, life: int) -> None:
        self._listener, self._life = listener, life
        self._running: dict[int, socket.socket] = {}
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker)

    def next(self) -> Request | None:
        """Return, in each fork, the process to run; None when no client is left."""
        while True:
            watched: list[Any] = [self._listener, self._life, self._wake, *self._running.values()]
            ready = select.select(watched, [], [])[0]
            if self._life in ready:
                return None
            if self._wake in ready:
                os.read(self._wake, 4096)
                self._tell_ends()
            for pid, connection in self._running.items():
                if connection in ready:
                    for number in signals(connection):
                        os.kill(pid, number)
            if self._listener in ready and (request := self._fork()):
                return request

    def _tell_ends(self) -> None:
        with suppress(ChildProcessError):
            while (end := os.waitpid(-1, os.WNOHANG))[0]:
                with self._running.pop(end[0]) as connection, suppress(OSError):
                    connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(end[1]))

    def _fork(self) -> Request | None:
        connection = self._listener.accept()[0]
        request = None
        with suppress(ConnectionError):
            request = received(connection)
        if request is None:
            connection.close()
            return None
        child = os.fork()
        if child == 0:
            self._leave(connection)
            return request
        for handle in request.handles:
            os.close(handle)
        self._running[child] = connection
        with suppress(OSError):
            connection.sendall(b"%d\n" % child)
        return None

    def _leave(self, connection: socket.socket) -> None:
        """Release everything that belongs to the server, in a fork."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (self._listener, connection, *self._running.values()):
            each.close()
        for handle in (self._life, self._wake, self._waker):
            os.close(handle)


def begin(request: Request) -> None:
    """Turn this process into the requested one."""
    for number, handle in enumerate(request.handles):
        os.dup2(handle, number)
        os.close(handle)
    os.setsid()
    if os.isatty(0):
        with suppress(OSError):  # the terminal belongs to another session
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request.folder)
    os.umask(request.mask)
    os.environ.clear()
    os.environ.update(request.environ)
    time.tzset()
    sys.stdin, sys.stdout, sys.stderr = stream(0, "r"), stream(1, "w"), stream(2, "w")


def stream(number: int, mode: Literal["r", "w"]) -> TextIO:
    """A stream like Python's own at its start, in the locale C.UTF-8."""
    errors = "backslashreplace" if number == 2 else "surrogateescape"
    by_lines = 1 if number == 2 or os.isatty(number) else -1
    return open(number, mode, by_lines, encoding="utf-8", errors=errors, closefd=False)


def run(arguments: list[str]) -> None:
    """Do the work of `python ARGUMENTS`; the only options are -I, -P and -W."""
    (first, *rest), is_safe = arguments, False
    while first.startswith("-") and first not in ("-m", "-c"):
        if first == "-W":
            warnings.simplefilter(rest.pop(0))  # type: ignore[arg-type]
        is_safe = is_safe or first in ("-I", "-P")
        first = rest.pop(0)
    if first == "-m":
        if not is_safe:
            sys.path.insert(0, os.getcwd())  # noqa: PTH109 - a text, as Python has it
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        module = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(module))
    else:
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


def result(arguments: list[str]) -> int:
    """Run it and return its exit code."""
    try:
        run(arguments)
    except SystemExit as leave:
        if leave.code is None or isinstance(leave.code, int):
            return leave.code or 0
        print(leave.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return -signal.SIGINT
    except BaseException:  # noqa: BLE001 - nothing is left above us to report it
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def end(code: int) -> None:
    """Exit like Python, but without the cleanup of imported modules, which takes as long as a
    command.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = code or 120
    with suppress(OSError):
        sys.stderr.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def main(listener: int, life: int) -> None:
    """Fork until no client is left."""
    gc.disable()  # imports leave no garbage worth looking for
    for name in MODULES:
        import_module(name)
    gc.freeze()
    gc.enable()
    request = Forks(socket.socket(fileno=listener), life).next()
    if request is not None:
        begin(request)
        end(result(request.arguments))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
