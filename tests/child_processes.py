"""Child processes in tests: whether they live, and waiting for their traces."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for `condition`; fail if it does not come true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether the process runs; zombies do not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(OSError):
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return not Path("/proc/self").exists()


def pids_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []
