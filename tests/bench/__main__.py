"""`make bench`: what Parley costs, as medians on this machine, beside what it is meant to cost.

Absolute times are this machine's; compare them within one run. Nothing here is a test.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from parley.chat.reader import parse
from tests.mcp_servers import fake, servers_of
from tests.nvim.harness import ROOT, Child, child, nvim_path
from tests.nvim.test_ends import SERVERS, below, parents
from tests.nvim.test_servers import setup, tools

PLAIN = "💬: how?\n\n🤖:[A]\n\n" + "some words of prose in a line of common length\n" * 300 + "\n"
CALL = '{"index":0,"id":"c","type":"function","function":{"name":"t","arguments":"{}"}}'
DENSE = f"💬: how?\n\n🤖:[A]\n\nOne moment.\n\n❓:[ya] `{CALL}`\n\n🛠️: [t][c]\n\n`done`\n\nThere.\n\n"


def say(what: str, value: str, target: str = "") -> None:
    print(f"{what:<56} {value:>12}   {target}", flush=True)


def median_of(runs: int, work: Callable[[], float]) -> float:
    return statistics.median(work() for _ in range(runs))


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def bench_parse() -> None:
    for name, block in (("prose", PLAIN), ("tool calls", DENSE)):
        text = block * (100_000 // block.count("\n"))
        took = median_of(5, lambda text=text: seconds(lambda: parse(text)))  # type: ignore[misc]
        say(f"parse 100,000 lines of {name}", f"{took * 1e3:.0f} ms", "under 500 ms (200,000 lines/s)")


def bench_start() -> None:
    def start(*arguments: str) -> float:
        command = [nvim_path(), "--clean", "--headless", *arguments, "+qall"]
        return seconds(lambda: subprocess.run(command, check=True, capture_output=True))

    without, with_parley = list[float](), list[float]()
    for _ in range(15):
        without.append(start())
        with_parley.append(start("--cmd", f"set rtp^={ROOT}"))
    more = statistics.median(with_parley) - statistics.median(without)
    say("start-up, over --clean", f"{more * 1e3:+.1f} ms", "at most +1 ms")


@contextmanager
def bench_neovim() -> Iterator[tuple[Child, Callable[[], float]]]:
    """A Neovim that talks to the measuring server, and a function that waits for the next request's time."""
    server = Path(__file__).parent / "model_server.py"
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([sys.executable, server], stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        port = int(process.stdout.readline())
        lines = process.stdout
        setup = {
            "providers": {
                "bench": {"kind": "openai", "base_url": f"http://127.0.0.1:{port}/v1", "api": "chat"}
            },
            "agents": [{"name": "Bench", "provider": "bench", "model": "bench", "tool_mode": "off"}],
            "agent": "Bench",
        }
        init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(setup))}))"
        try:
            with child(Path(folder), init=init, width=120, height=40) as nvim:
                yield nvim, lambda: float(json.loads(lines.readline())["at"])
        finally:
            process.kill()


class Bench:
    """One chat after another in one Neovim."""

    def __init__(self, nvim: Child, requested: Callable[[], float]) -> None:
        self.nvim = nvim
        self.requested = requested
        self._number = 0

    def open(self, lines: int, tokens: int) -> None:
        self._number += 1
        above = (PLAIN * (1 + lines // PLAIN.count("\n"))).split("\n")[:lines]
        text = "\n".join([*above, "", f"💬: {tokens} tokens", ""])
        self.nvim.edit(f"{self._number}.md", text)
        self.nvim.until(lambda: self.nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        self.nvim.command("normal! G")
        self.nvim.flush()

    def ask(self, lines: int, tokens: int) -> tuple[float, float]:
        """Seconds from the command to the request at the server, and from the request to the end."""
        self.open(lines, tokens)
        began = time.monotonic()
        self.nvim.command("ParleyRespond")
        requested = self.requested()
        self.nvim.until(lambda: self._is_complete(), "the answer", 600)
        return requested - began, time.monotonic() - requested

    def _is_complete(self) -> bool:
        last: str = self.nvim.lua("return vim.api.nvim_buf_get_lines(0, -2, -1, false)[1]")
        return last == "💬: "


def bench_turns() -> None:
    with bench_neovim() as (nvim, requested):
        bench = Bench(nvim, requested)
        say("command to request, first of a host", f"{bench.ask(10, 1)[0] * 1e3:.0f} ms", "imports the SDK")
        for lines, wanted in ((10, 8), (2_000, 15), (20_000, 60)):
            took = median_of(7, lambda lines=lines: bench.ask(lines, 1)[0])  # type: ignore[misc]
            say(f"command to request, warm, {lines} lines", f"{took * 1e3:.1f} ms", f"at most {wanted} ms")
        for tokens, wanted, runs in ((2_000, 80, 7), (20_000, 600, 3)):
            took = median_of(runs, lambda tokens=tokens: bench.ask(10, tokens)[1])  # type: ignore[misc]
            say(
                f"{tokens} tokens at full speed, in the buffer",
                f"{took * 1e3:.0f} ms",
                f"at most {wanted} ms",
            )


async def bench_servers() -> None:
    """300 tools, and another server that hangs at its start."""
    async with servers_of(fake("--many"), fake("--mute", name="mute"), patience_s=3.0) as servers:
        first = time.perf_counter()
        await servers.catalogue()
        say(
            "first list of tools, a server hangs",
            f"{(time.perf_counter() - first) * 1e3:.0f} ms",
            "waits 3 s",
        )
        took = list[float]()
        for _ in range(100):
            began = time.perf_counter()
            await servers.catalogue()
            took.append(time.perf_counter() - began)
        say("list of tools, warm, a server hangs", f"{statistics.median(took) * 1e3:.2f} ms", "under 50 ms")


def bench_ends() -> None:
    """From SIGKILL of Neovim to the end of all that it started."""

    def end() -> float:
        with tempfile.TemporaryDirectory() as home, child(Path(home), init=setup(SERVERS)) as nvim:
            tools(nvim, "plain: ready")
            for name in SERVERS:
                nvim.until_text(f"{name}: ready")
            started = below(nvim.pid)
            return seconds(lambda: gone(nvim, started))

    def gone(nvim: Child, started: set[int]) -> None:
        os.kill(nvim.pid, signal.SIGKILL)
        while started & parents().keys():
            time.sleep(0.01)

    say("kill -9 of Neovim to its last server gone", f"{median_of(3, end):.1f} s", "under 3 s")


if __name__ == "__main__":
    bench_parse()
    bench_start()
    asyncio.run(bench_servers())
    bench_ends()
    bench_turns()
