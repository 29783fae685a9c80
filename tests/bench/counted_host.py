"""Parley's host, which also counts, on request: its tasks, threads, descriptors, statements and
transactions, the lines that it has parsed, and its looks at files.

Neovim starts this program as its Python. Each connection to the socket PARLEY_COUNTS receives the
counts as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import shlex
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

LOOPS = list[asyncio.BaseEventLoop]()
DONE = {"statements": 0, "steps": 0, "transactions": 0, "parsed lines": 0, "looks": 0}
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
        database.set_trace_callback(count_statement)
        database.set_progress_handler(lambda: count("steps"), STEP)
        return database

    sqlite3.connect = counted  # type: ignore[assignment]


def count_statement(text: str) -> None:
    count("statements")
    if text.startswith("BEGIN"):
        count("transactions")


def count_parsed_lines() -> None:
    """Count the lines of each text that Parley parses."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
    from parley.chat import reader

    parse: Callable[..., Any] = reader.parse_lines

    def counted(lines: Sequence[str]) -> Any:
        count("parsed lines", len(lines))
        return parse(lines)

    reader.parse_lines = counted


def count_looks() -> None:
    """Count the calls of `stat` and `lstat`, with which Parley looks for changed files."""
    for name in ("stat", "lstat"):
        look: Callable[..., os.stat_result] = getattr(os, name)

        def counted(*arguments: Any, look: Any = look, **more: Any) -> os.stat_result:
            count("looks")
            result: os.stat_result = look(*arguments, **more)
            return result

        setattr(os, name, counted)


def count(what: str, by: int = 1) -> None:
    DONE[what] += by


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


def program(folder: Path) -> Path:
    """A program in a folder, for `vim.g.parley_python`, that runs this file."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, __file__])} "$@"\n')
    path.chmod(0o700)
    return path


def counts_of(path: Path) -> dict[str, int]:
    """The counts of the host that listens at a path, which it received in PARLEY_COUNTS."""
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.connect(str(path))
        counted: dict[str, int] = json.loads(connection.makefile("r").read())
        return counted


def main() -> None:
    """Run Python's arguments: `-I`, a program and its arguments."""
    sys.argv = [argument for argument in sys.argv[1:] if argument != "-I"]
    record_loops()
    count_statements()
    count_parsed_lines()
    count_looks()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ["PARLEY_COUNTS"])
    listener.listen()
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
