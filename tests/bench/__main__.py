"""`make bench`: Parley's costs on this machine, next to the minimum and the targets.

The numbers are medians within one run. Absolute times hold only for this machine, so compare them
within the run. This is not a test.
"""

from __future__ import annotations

import asyncio
import math
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from parley.chat.reader import parse
from tests.bench import machine
from tests.bench.acp_costs import agent_costs
from tests.bench.ask_costs import ask_cpu_s
from tests.bench.chat_list_costs import chat_list_s
from tests.bench.machine import median_of, seconds
from tests.bench.subjects import (
    FLOOR,
    HERE,
    LINE,
    Desk,
    Server,
    Stranger,
    Subject,
    companion,
    earlier,
    parley,
    serving,
    started,
)
from tests.bench.workspace_costs import diff_drawn_s, search_s
from tests.mcp_servers import fake, servers_of
from tests.nvim.harness import ROOT, child, nvim_path
from tests.nvim.test_ends import SERVERS, below, parents
from tests.nvim.test_servers_page import setup, tools

RUNS = 7
SIZES = {0: 3, 200: 5, 2_000: 6, 20_000: 12, 100_000: 30}
"""Number of chat lines, and the target in milliseconds for sending a question below them."""
PLAIN = "💬: how?\n\n🤖:[A]\n\n" + f"{LINE}\n" * 300 + "\n"
CALL = '{"index":0,"id":"c","type":"function","function":{"name":"t","arguments":"{}"}}'
DENSE = (
    f"💬: how?\n\n🤖:[A]\n\nOne moment.\n\n❓:[ya] `{CALL}`\n\n🛠️: [t][c]\n\n`done`\n\nThere.\n\n"
)
FIRST_AFTER_MS = (100, 0)
"""How long the model waits with its first token; at once means that Parley itself may not be ready
to write.
"""
LOG = "return require('parley.host').state().started_in_ms"


class Table:
    """The measured rows, printed as they arrive."""

    def __init__(self, subjects: Sequence[str], last: str = "to reach") -> None:
        self.columns = [*subjects, last] if last else list(subjects)
        print(f"| | {' | '.join(self.columns)} |\n|---{'|---' * len(self.columns)}|", flush=True)

    def row(self, what: str, *cells: str) -> None:
        """One row; a dash replaces values that are not measured for a subject."""
        print(f"| {what} | {' | '.join(cells)} |", flush=True)


def ms(value: float) -> str:
    return f"{value * 1e3:.1f}" if value < 0.1 else f"{value * 1e3:.0f}"


class Run:
    """One run over all subjects."""

    def __init__(self, home: Path, server: Server) -> None:
        self.home = home
        self.server = server
        peers = os.environ.get("PARLEY_BENCH_PEERS")
        before = os.environ.get("PARLEY_BENCH_BEFORE")
        self.subjects = [
            FLOOR,
            *([companion(Path(peers))] if peers else []),
            *([earlier(Path(before))] if before else []),
            parley(),
        ]
        self.table = Table([subject.name for subject in self.subjects])
        self.times: dict[tuple[str, int], float] = {}

    def each(self, measure: Callable[[Desk], list[str]]) -> list[list[str]]:
        """Measure each subject in its own Neovim."""
        cells = list[list[str]]()
        for number, subject in enumerate(self.subjects):
            machine.wait_until_quiet(lambda text: print(text, file=sys.stderr, flush=True))
            with started(
                subject, self.server.port, self.home / f"{len(self.times)}.{number}"
            ) as desk:
                desk.ask(self.server, 0, 1)
                cells.append(measure(desk))
        return cells

    def of_parleys(self, measure: Callable[[Subject], list[str]]) -> list[list[str]]:
        """Measure each version of Parley; dashes replace the others' values."""
        measured = {each.name: measure(each) for each in self.subjects if each.is_parley}
        dashes = ["–"] * len(next(iter(measured.values())))
        return [measured.get(subject.name, dashes) for subject in self.subjects]

    def rows(self, whats: Sequence[str], cells: list[list[str]], bars: Sequence[str]) -> None:
        for number, (what, bar) in enumerate(zip(whats, bars, strict=True)):
            self.table.row(what, *(column[number] for column in cells), bar)

    def requests(self) -> None:
        def measure(desk: Desk) -> list[str]:
            for lines in SIZES:
                runs = RUNS if lines <= 20_000 else 5
                took = [desk.ask(self.server, lines, 1).to_request for _ in range(runs)]
                self.times[desk.subject.name, lines] = statistics.median(took)
            return [ms(self.times[desk.subject.name, lines]) for lines in SIZES] + [
                self._growth(desk)
            ]

        whats = [f"key → request, warm, {lines:,} lines before, ms" for lines in SIZES]
        bars = [f"≤ {bar}" for bar in SIZES.values()]
        self.rows(
            [*whats, "… exponent of its growth from 2,000 lines on"],
            self.each(measure),
            [*bars, "< 1"],
        )

    def _growth(self, desk: Desk) -> str:
        low, high = self.times[desk.subject.name, 2_000], self.times[desk.subject.name, 100_000]
        return f"{math.log(high / low) / math.log(50):.2f}"

    def streams(self) -> None:
        bars = {2_000: (25, 40, 4), 20_000: (160, 220, 20)}

        def measure(desk: Desk) -> list[str]:
            cells = list[str]()
            for tokens in bars:
                desk.ask(self.server, 0, tokens)
                times = [
                    desk.ask(self.server, 0, tokens) for _ in range(RUNS if tokens < 20_000 else 5)
                ]
                cells.append(ms(statistics.median(t.to_end for t in times)))
                cells.append(ms(statistics.median(t.cpu for t in times)))
                waits = list[float]()
                for _ in range(5):
                    with Stranger(desk.nvim) as stranger:
                        desk.ask(self.server, 0, tokens)
                    waits.append(stranger.p99_s())
                cells.append(ms(statistics.median(waits)))
            return cells

        whats, limits = list[str](), list[str]()
        for tokens, (time_ms, cpu_ms, wait_ms) in bars.items():
            whats += [f"{tokens:,} tokens at full speed, ms", "… CPU of editor and host, ms"]
            whats.append("… another client's request meanwhile, p99, ms")
            limits += [f"≤ {time_ms}", f"≤ {cpu_ms}", f"≤ {wait_ms}"]
        self.rows(whats, self.each(measure), limits)

    def first_tokens(self) -> None:
        def measure(desk: Desk) -> list[str]:
            cells = list[str]()
            for after in FIRST_AFTER_MS:
                question = f"2 tokens in 1 seconds, first after {after} ms"
                took = [desk.delays_s(self.server, question)[0][0] for _ in range(RUNS)]
                cells.append(ms(statistics.median(took)))
            return cells

        whats = [
            f"first token, {after} ms after the request: server → buffer, ms"
            for after in FIRST_AFTER_MS
        ]
        self.rows(whats, self.each(measure), ["≤ 1", ""])

    def pace(self) -> None:
        def measure(desk: Desk) -> list[str]:
            took, cpu = desk.delays_s(self.server, "1000 tokens in 10 seconds")
            hundredths = statistics.quantiles(took, n=100)
            below, _ = desk.delays_s(self.server, "500 tokens in 5 seconds", 10_000)
            medians = statistics.median(took), statistics.median(below)
            return [f"{cpu:.2f}", ms(medians[0]), ms(hundredths[98]), ms(medians[1])]

        whats = [
            "1,000 tokens at 100 a second: CPU, s",
            "… a token: server → buffer, ms",
            "… p99, ms",
            "… a token below 10,000 lines, ms",
        ]
        self.rows(whats, self.each(measure), ["≤ 0.7", "≤ 5", "", "≤ 5"])

    def memory(self) -> None:
        def measure(desk: Desk) -> list[str]:
            first = desk.memory_mb()
            for _ in range(20):
                desk.ask_again(self.server, 500)
                time.sleep(0.5)  # the reader stops asking
            return [f"{first:.0f}", f"{desk.memory_mb():.0f}"]

        whats = [
            "memory of editor and host after an answer, MB",
            "… after 20 more of 500 tokens in the same chat",
        ]
        self.rows(whats, self.each(measure), ["≤ 85", "≤ 85"])

        def measure_residents(desk: Desk) -> list[str]:
            first = desk.resident_mb()
            desk.ask(self.server, 0, 20_000)
            time.sleep(0.5)
            return [f"{first:.0f}", f"{desk.resident_mb():.0f}"]

        whats = [
            "resident memory of all their processes after an answer, MB",
            "… after 20,000 more tokens in another chat",
        ]
        self.rows(whats, self.each(measure_residents), ["≤ 75", "≤ 85"])

    def ten_at_once(self) -> None:
        def measure(desk: Desk) -> list[str]:
            if not desk.subject.is_parley:
                return ["–", "–"]
            buffers = list[int]()
            for _ in range(10):
                desk.open(200, "2000 tokens")
                buffers.append(desk.nvim.nvim.current.buffer.number)
            with Stranger(desk.nvim) as stranger:
                began = time.monotonic()
                for buffer in buffers:
                    desk.nvim.command(f"buffer {buffer}")
                    desk.nvim.command("ParleyRespond")
                for _ in buffers:
                    self.server.request(began)
                desk.nvim.until(
                    lambda: not desk.nvim.lua("return require('parley.handle').busy()"),
                    "the ends",
                    60,
                )
                took = time.monotonic() - began
            return [ms(took), ms(stranger.p99_s())]

        whats = [
            "ten chats, 2,000 tokens each at once, ms",
            "… another client's request meanwhile, p99, ms",
        ]
        self.rows(whats, self.each(measure), ["", ""])

    def keystrokes(self) -> None:
        keys = "x" * 300

        def measure(desk: Desk) -> list[str]:
            if desk.subject.name == "CodeCompanion":
                return ["–"]
            desk.open(100_000, "1 tokens")
            took = list[float]()
            for _ in range(5):
                desk.nvim.keys("A")
                desk.nvim.nvim.api.get_mode()
                began = time.perf_counter()
                desk.nvim.keys(keys)
                desk.nvim.nvim.api.get_mode()
                took.append((time.perf_counter() - began) / len(keys))
                desk.nvim.keys("<Esc>")
            return [f"{statistics.median(took) * 1e6:.0f}"]

        self.rows(["a key typed at the end of 100,000 lines, µs"], self.each(measure), [""])

    def tool_loop(self) -> None:
        times = self.home / "times"
        options = {
            "approval": {"auto": ["bench/*"]},
            "loop": {"max_iterations": 20},
            "agents": [
                {"name": "Bench", "provider": "bench", "model": "bench", "tools": ["bench/*"]}
            ],
            "mcp": {
                "servers": {
                    "bench": {
                        "command": sys.executable,
                        "args": [str(HERE / "tool_server.py"), str(times)],
                    }
                }
            },
        }

        def measure(version: Subject) -> list[str]:
            gaps, wholes = list[float](), list[float]()
            subject = parley(options, root=version.root, name=version.name)
            with started(subject, self.server.port, self.home / f"tools-{version.name}") as desk:
                for run in range(RUNS):
                    desk.open(200, "10 calls")
                    times.unlink(missing_ok=True)
                    began = desk.press()
                    requests = [self.server.request(began)["at"] for _ in range(11)]
                    ended = desk.until_complete()
                    returned = [float(line) for line in times.read_text(encoding="utf-8").split()]
                    if run:  # the first starts the server
                        wholes.append(ended - began)
                        gaps += [
                            request - at for at, request in zip(returned, requests[1:], strict=True)
                        ]
            return [ms(statistics.median(gaps)), ms(statistics.median(wholes))]

        whats = ["a tool's result → next request, ms", "a loop of ten rounds of tools, ms"]
        self.rows(whats, self.of_parleys(measure), ["≤ 5", "≤ 150"])

    def far_away(self) -> None:
        def measure(version: Subject) -> list[str]:
            first, next_ = list[float](), list[float]()
            for number in range(5):
                home = self.home / f"far-{version.name}-{number}"
                with started(version, proxy.port, home) as desk:
                    desk.nvim.edit("warm.md", "💬: x\n")
                    time.sleep(2.5)
                    first.append(desk.ask(self.server, 0, 1).to_request)
                    next_.append(desk.ask(self.server, 0, 1).to_request)
            return [ms(statistics.median(first)), ms(statistics.median(next_))]

        with serving(HERE / "slow_proxy.py", self.server.port, 0.04) as proxy:
            cells = self.of_parleys(measure)
        whats = [
            "40 ms away: key → request of the first question, ms",
            "… of the next, on the same connection",
        ]
        self.rows(whats, cells, ["", ""])

    def workspace(self) -> None:
        dashes = ["–"] * (len(self.subjects) - 1)
        drawn = ms(diff_drawn_s(self.server.port, self.home / "workspace"))
        what = "an edit of a 10,000-line file: proposal → its diff on the screen, ms"
        self.table.row(what, *dashes, drawn, "≤ 50")
        for way, took in search_s().items():
            what = f"search_text in 50,000 files {way} rg, ms"
            self.table.row(what, *dashes, ms(took), "")

    def agents(self) -> None:
        """A table of its own, because its columns are ways to one agent of another program."""
        costs = agent_costs(self.home / "agents")
        print()
        table = Table([f"agent: {way}" for way in costs], last="")
        rows = {
            "a turn with one token, ms": [each.turn for each in costs.values()],
            "CPU for 2,000 tokens, ms": [each.many_cpu for each in costs.values()],
            "a token's delay at 100 a second, ms": [each.delay for each in costs.values()],
        }
        for what, values in rows.items():
            table.row(what, *map(ms, values))
        print()

    def find(self) -> None:
        dashes = ["–"] * (len(self.subjects) - 1)
        for what, took in chat_list_s().items():
            bar = "≤ 100" if "picker" in what or "completion" in what else ""
            self.table.row(f"5,000 chats in 200 folders: {what}, ms", *dashes, ms(took), bar)

    def ask(self) -> None:
        cells = self.of_parleys(
            lambda version: [ms(took) for took in ask_cpu_s(self.server.port, version.root)]
        )
        what = "`parley ask`, {}: CPU until its first token, ms"
        whats = [what.format(way) for way in ("without tools", "in a work tree, with its tools")]
        self.rows(whats, cells, ["≤ 350", "≤ 350"])

    def first_question(self) -> None:
        """Ask as soon as a file is open, in a freshly started Neovim."""
        cells = list[str]()
        for subject in self.subjects:
            took = list[float]()
            for number in range(5):
                machine.wait_until_quiet(lambda text: print(text, file=sys.stderr, flush=True))
                with started(
                    subject, self.server.port, self.home / f"first{subject.name}{number}"
                ) as desk:
                    began = time.monotonic()
                    desk.show("", "1 tokens")
                    desk.press()
                    took.append(self.server.request(began)["at"] - began)
                    desk.until_complete()
            cells.append(ms(statistics.median(took)))
        start, sdk = self._host_start(), self._import("openai")
        bar = f"≤ 300 (host {ms(start)}, import of the whole SDK {ms(sdk)})"
        self.table.row("asked at once after opening → request, ms", *cells, bar)

    def _host_start(self) -> float:
        def start() -> float:
            with started(parley(), self.server.port, self.home / "start") as desk:
                desk.nvim.edit("start.md", "no chat yet\n")
                desk.nvim.lua("require('parley.host').start()")
                return float(desk.nvim.until(lambda: desk.nvim.lua(LOG), "the host")) / 1e3

        return median_of(5, start)

    def _import(self, module: str) -> float:
        def run(code: str) -> float:
            return seconds(lambda: subprocess.run([sys.executable, "-I", "-c", code], check=True))

        return median_of(5, lambda: run(f"import {module}")) - median_of(5, lambda: run("pass"))


def bench_parse() -> None:
    for name, block in (("prose", PLAIN), ("tool calls", DENSE)):
        text = block * (100_000 // block.count("\n"))
        took = median_of(5, lambda text=text: seconds(lambda: parse(text)))  # type: ignore[misc]
        print(f"parse 100,000 lines of {name}: {took * 1e3:.0f} ms (at most 500)", flush=True)


def bench_start() -> None:
    def start(*arguments: str) -> float:
        command = [nvim_path(), "--clean", "--headless", *arguments, "+qall"]
        return seconds(lambda: subprocess.run(command, check=True, capture_output=True))

    without, with_parley = list[float](), list[float]()
    for _ in range(15):
        without.append(start())
        with_parley.append(start("--cmd", f"set rtp^={ROOT}"))
    more = statistics.median(with_parley) - statistics.median(without)
    print(f"start-up over --clean: {more * 1e3:+.1f} ms (at most +0.5)", flush=True)


async def bench_servers() -> None:
    """Measure 300 tools, and a second server that hangs at its start."""
    mute = fake("--mute", name="mute", start_timeout_s=3.0)
    async with servers_of(fake("--many"), mute) as servers:
        first = time.perf_counter()
        await servers.catalogue()
        took_s = time.perf_counter() - first
        print(f"first list of tools, a server hangs: {took_s * 1e3:.0f} ms (waits 3 s)", flush=True)
        took = list[float]()
        for _ in range(100):
            began = time.perf_counter()
            await servers.catalogue()
            took.append(time.perf_counter() - began)
        warm = statistics.median(took) * 1e3
        print(f"list of tools, warm, a server hangs: {warm:.2f} ms (under 50)", flush=True)


def bench_ends() -> None:
    """The time from Neovim's SIGKILL to the end of all processes that it started."""

    def end() -> float:
        with (
            tempfile.TemporaryDirectory() as home,
            child(Path(home), init=setup(SERVERS), forked=False) as nvim,
        ):
            tools(nvim, "plain: ready")
            for name in SERVERS:
                nvim.until_text(f"{name}: ready")
            started_pids = below(nvim.pid)
            return seconds(lambda: gone(nvim, started_pids))

    def gone(nvim: Any, pids: set[int]) -> None:
        os.kill(nvim.pid, signal.SIGKILL)
        while pids & parents().keys():
            time.sleep(0.01)

    print(
        f"kill -9 of Neovim to its last server gone: {median_of(3, end):.1f} s (under 3)",
        flush=True,
    )


def bench_batch() -> None:
    """Chats of 190 kB that the demo model answers, four at once."""
    few, _ = _batch(20)
    most, took_s = _batch(200)
    print(
        (
            f"200 chats, --jobs 4: {took_s:.0f} s, at most {most:.0f} MB (at most 15 more than "
            f"{few:.0f} for 20)"
        ),
        flush=True,
    )


def _batch(count: int) -> tuple[float, float]:
    """A command's peak memory in MB with this many chats, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        home, names = Path(folder), [f"{number}.md" for number in range(count)]
        for name in names:
            text = "\U0001f4ac: how?\n\n\U0001f916:[A]\n\n" + f"{LINE}\n" * 4_000
            (home / name).write_text(f"{text}\n\U0001f4ac: say: hello\n", encoding="utf-8")
        settings = home / "parley" / "config.toml"
        settings.parent.mkdir()
        settings.write_text(
            'agent = "Demo-OpenAI"\nsafety.rate_limit_per_minute = 100000\n', encoding="utf-8"
        )
        env = {
            **os.environ,
            "PARLEY_DEMO_PACE": "0",
            "XDG_STATE_HOME": folder,
            "XDG_CONFIG_HOME": folder,
        }
        line = [sys.executable, "-m", "parley", "respond", *names, "--jobs", "4", "--quiet"]
        began = time.perf_counter()
        process = subprocess.Popen(line, cwd=folder, env=env, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_maxrss / 1024, time.perf_counter() - began


ALL: dict[str, Callable[[Run], None]] = {
    "requests": Run.requests,
    "tools": Run.tool_loop,
    "first": Run.first_question,
    "ask": Run.ask,
    "streams": Run.streams,
    "token": Run.first_tokens,
    "pace": Run.pace,
    "ten": Run.ten_at_once,
    "keys": Run.keystrokes,
    "far": Run.far_away,
    "memory": Run.memory,
    "workspace": Run.workspace,
    "find": Run.find,
    "agents": Run.agents,
}


def main(names: Sequence[str]) -> None:
    """Measure everything, or the named parts."""
    if not Path("/proc/stat").exists():
        sys.exit("what processes take is read from /proc: this needs Linux")
    share = machine.Share()
    print(f"{machine.name()}; {datetime.now(UTC):%Y-%m-%d}; medians of {RUNS} or 5", flush=True)
    version = subprocess.run([nvim_path(), "--version"], stdout=subprocess.PIPE, check=True)
    print(f"Python {platform.python_version()}; {version.stdout.decode().splitlines()[0]}\n")
    with tempfile.TemporaryDirectory() as home, serving(HERE / "model_server.py") as server:
        run = Run(Path(home), server)
        for name in names or ALL:
            if name in ALL:
                ALL[name](run)
    print()
    if not names or "others" in names:
        bench_parse()
        bench_start()
        asyncio.run(bench_servers())
        bench_ends()
    if not names or "batch" in names:
        bench_batch()
    print(f"others used {share.of_others():.1%} of the machine meanwhile", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
