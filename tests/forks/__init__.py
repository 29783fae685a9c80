"""Pythons that start without the seconds of imports at the beginning of Parley's processes.

A program (`server.py`) imports the modules that a command, a Neovim host and a tool server need,
once, and forks for each process. A fork is its own process with the given arguments, environment,
folder, descriptors and terminal, and then runs like `python ARGUMENTS`. It skips Python's earlier
startup, such as creating streams for closed descriptors or another encoding, the effects of
imports, and the cleanup of modules at the end. Tests of these start a new process.

A test requests a fork with `ForkServer.start`. Programs that start Python, such as Neovim, get
`ForkServer.python` instead of Python (`client.py`). This client lives as long as its fork, passes
on each signal, and ends in the same way; if it is killed, its fork is killed too.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
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
FOLDER = "PARLEY_TEST_FORKS"
"""The variable with the folder of the test run's server."""


class Command:
    """A process that runs in a fork."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._channel = connection.makefile("r", encoding="utf-8")
        self.pid = int(self._channel.readline())
        self._code: int | None = None

    def kill(self) -> None:
        """Kill the process if it still runs."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Its exit code, or the negative number of the signal that ended it."""
        if self._code is None:
            self._connection.settimeout(timeout)
            self._code = int(self._channel.readline())
            self._channel.close()
            self._connection.close()
        return self._code


class ForkServer:
    """The server whose socket is in a folder."""

    def __init__(self, folder: Path) -> None:
        self._address = str(folder / "socket")
        self.python = str(folder / "python")

    def start(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        handles: tuple[int, int, int],
    ) -> Command:
        """A Python with these descriptors as standard input, output and error; the first may be its
        terminal.
        """
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(START_S)
        connection.connect(self._address)
        ask(connection, list(arguments), dict(environ), str(folder), handles)
        return Command(connection)


@cache
def forks() -> ForkServer:
    """The server of this test run, started at first use. Processes that this one starts later use it
    too.
    """
    if FOLDER not in os.environ:
        os.environ[FOLDER] = _serve()
    return ForkServer(Path(os.environ[FOLDER]))


def _serve() -> str:
    """Start a server for as long as this process lives; return its folder. Its forks live on."""
    folder = tempfile.mkdtemp(prefix="parley-forks-")
    address, program = Path(folder, "socket"), Path(folder, "python")
    words = ("exec", sys.executable, "-ISE", str(HERE / "client.py"), str(address))
    program.write_text(f'#!/bin/sh\n{shlex.join(words)} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    life, mine = os.pipe()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        handles = (listener.fileno(), life)
        process = subprocess.Popen(
            [sys.executable, "-P", str(HERE / "server.py"), *map(str, handles)],
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            pass_fds=handles,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    os.close(life)
    atexit.register(shutil.rmtree, folder)
    atexit.register(process.wait)
    atexit.register(os.close, mine)  # first
    return folder
