"""Parley's host, which also counts: its tasks, threads, descriptors and statements, on request.

Neovim starts this program as its Python. Each connection to the socket PARLEY_COUNTS receives the
counts as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any

LOOPS = list[asyncio.BaseEventLoop]()
DONE = {"statements": 0, "steps": 0}
STEP = 100
"""The instructions of SQLite's machine that count as one step."""


def record_loops() -> None:
    """Remember each event loop that is created."""
    create: Callable[..., None] = asyncio.BaseEventLoop.__init__

    def recorded(self: asyncio.BaseEventLoop) -> None:
        create(self)
        LOOPS.append(self)

    asyncio.BaseEventLoop.__init__ = recorded  # type: ignore[method-assign,assignment]


def count_statements() -> None:
    """Count the statements, and the work for them, of each database that is opened."""
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def counted(*arguments: Any, **more: Any) -> sqlite3.Connection:
        database = connect(*arguments, **more)
        database.set_trace_callback(lambda _: count("statements"))
        database.set_progress_handler(lambda: count("steps"), STEP)
        return database

    sqlite3.connect = counted  # type: ignore[assignment]


def count(what: str) -> None:
    DONE[what] += 1


def counts() -> dict[str, int]:
    """The counts now."""
    tasks = sum(len(asyncio.all_tasks(loop)) for loop in LOOPS if not loop.is_closed())
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - without a Path for each
    return {
        "tasks": tasks,
        "threads": threading.active_count(),
        "descriptors": descriptors,
        **DONE,
    }


def serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(json.dumps(counts()).encode())


def main() -> None:
    """Run Python's arguments: `-I`, a program and its arguments."""
    sys.argv = [argument for argument in sys.argv[1:] if argument != "-I"]
    record_loops()
    count_statements()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ["PARLEY_COUNTS"])
    listener.listen()
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
