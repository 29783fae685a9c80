"""The machine during a measurement: whether it is quiet, and the resources that processes use."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
QUIET = 0.03
"""The share of the machine that other processes may use during a measurement."""
PATIENCE_S = 300.0


def name() -> str:
    """A description of the machine."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = next(
        (line.split(":")[1].strip() for line in info.splitlines() if "model name" in line), "?"
    )
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {model}"


def busy_s() -> float:
    """CPU seconds used on all cores since the machine started."""
    user, nice, system, _, _, irq, soft, *_ = map(
        int, Path("/proc/stat").read_text(encoding="utf-8").split("\n")[0].split()[1:]
    )
    return (user + nice + system + irq + soft) * TICK_S


def tree(root: int) -> set[int]:
    """A process and all processes that it started."""
    children = dict[int, list[int]]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _fields(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = set[int](), [root]
    while left:
        pid = left.pop()
        found.add(pid)
        left += children.get(pid, [])
    return found


def cpu_s(root: int) -> float:
    """CPU seconds that a process and its descendants have used, including ended ones."""
    fields = filter(None, (_fields(pid) for pid in tree(root)))
    return sum(sum(map(int, each[11:15])) for each in fields) * TICK_S


def precise_cpu_s(root: int, without: str = "") -> float:
    """CPU seconds that a process and its descendants have used, including ended ones; more precise
    than a tick of the system's clock for those that run. `without` names a program that is not
    counted.
    """
    total = 0.0
    for pid in tree(root):
        if without and without in _words(pid):
            continue
        total += sum(map(int, _fields(pid)[13:15])) * TICK_S * 1e9
        for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError):
                total += int(task.read_text(encoding="utf-8").split()[0])
    return total / 1e9


def memory_mb(root: int) -> float:
    """Megabytes used by a process and its descendants; shared memory counts once."""
    total = 0
    for pid in tree(root):
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            continue
        total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total / 1024


def resident_mb(root: int) -> float:
    """Megabytes that a process and its descendants have in memory; shared memory counts for each."""
    total = 0
    for pid in tree(root):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()
            total += int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
    return total / 2**20


def wait_until_quiet(say: Callable[[str], None]) -> None:
    """Return when other processes leave the machine idle, or after five minutes."""
    end, has_told = time.monotonic() + PATIENCE_S, False
    while time.monotonic() < end:
        before, own = busy_s(), cpu_s(os.getpid())
        time.sleep(1)
        share = (busy_s() - before - (cpu_s(os.getpid()) - own)) / (os.cpu_count() or 1)
        if share < QUIET:
            return
        if not has_told:
            say(f"others use {share:.0%} of this machine: waiting until it is quiet ...")
            has_told = True
    say("the machine did not become quiet: these numbers are worth little")


class Share:
    """The share of the machine that other processes have used since this object was created."""

    def __init__(self) -> None:
        self._busy, self._own, self._time = busy_s(), cpu_s(os.getpid()), time.monotonic()

    def of_others(self) -> float:
        """A number from 0 to 1."""
        others = busy_s() - self._busy - (cpu_s(os.getpid()) - self._own)
        return max(others, 0) / ((time.monotonic() - self._time) * (os.cpu_count() or 1))


def median_of(runs: int, work: Callable[[], float]) -> float:
    """The median of some runs."""
    return statistics.median(work() for _ in range(runs))


def seconds(work: Callable[[], object]) -> float:
    """The time that some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _words(pid: int) -> list[str]:
    """The words of a process's command; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    except OSError:
        return []


def _fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []
