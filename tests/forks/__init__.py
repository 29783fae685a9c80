"""Pythons without the seconds of imports that Parley's processes begin with.

A program (`server.py`) imports what a command, a host of Neovim and a server of tools need, once,
and forks for each process that is wanted. A fork is a process of its own with the arguments,
environment, folder, descriptors and terminal that it is given, and from there on runs as `python
ARGUMENTS` does. What Python does before that, such as streams for closed descriptors or for another
encoding, is left out, and what imports do, and the taking down of modules at the end: tests of that
start a new process.

A test asks for a fork with `ForkServer.start`. What starts a program, as Neovim does, is given
`ForkServer.python` in the place of Python (`client.py`): it stays as long as its fork, hands it
each signal, and ends as it does; where it is killed, its fork is.
"""

from __future__ import annotations

import atexit
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.forks.client import ask

HERE = Path(__file__).parent
START_S = 45.0


class Command:
    """A process that runs in a fork."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._channel = connection.makefile("r", encoding="utf-8")
        self.pid = int(self._channel.readline())
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
            self._channel.close()
            self._connection.close()
        return self._code


class ForkServer:
    """The server, as long as this process needs it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="parley-forks-")
        self._address = str(Path(self._folder.name, "socket"))
        program = Path(self._folder.name, "python")
        self.python = str(program)
        words = ("exec", sys.executable, "-ISE", str(HERE / "client.py"), self._address)
        program.write_text(f'#!/bin/sh\n{shlex.join(words)} "$@"\n', encoding="utf-8")
        program.chmod(0o700)
        life, self._life = os.pipe()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen()
            handles = (listener.fileno(), life)
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(HERE / "server.py"), *map(str, handles)],
                env={**os.environ, "LC_ALL": "C.UTF-8"},
                pass_fds=handles,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        os.close(life)

    def close(self) -> None:
        """End the server; what was forked lives on."""
        os.close(self._life)
        self._process.wait()
        self._folder.cleanup()

    def start(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        handles: tuple[int, int, int],
    ) -> Command:
        """A Python with these as its standard input, output and error; the first may be its
        terminal.
        """
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(START_S)
        connection.connect(self._address)
        ask(connection, list(arguments), dict(environ), str(folder), handles)
        return Command(connection)


@cache
def forks() -> ForkServer:
    """The server of this process, started when it is first needed."""
    server = ForkServer()
    atexit.register(server.close)
    return server
