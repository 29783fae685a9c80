"""The subjects of the measurements: Parley, the minimal host, and other plugins whose checkouts are
present.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pynvim

from tests.bench import machine
from tests.nvim.harness import ROOT, Child, child

HERE = Path(__file__).parent
LINE = "some words of prose in a line of common length"
DONE_S = 600.0


@dataclass(frozen=True, slots=True)
class Subject:
    """A plugin: its setup, how to open a chat, its key for asking, and how its chat ends after an
    answer.
    """

    name: str
    clean: bool
    init: str
    """Lua code; PORT is the model server's port."""
    key: str
    open: str = ""
    """Lua code that makes a chat from its messages, for plugins whose chats are not files."""
    heading: str = "💬: "
    root: Path = ROOT
    """Parley's checkout, if it is loaded."""

    @property
    def is_parley(self) -> bool:
        """Whether this is Parley, of any version."""
        return not self.clean


def parley(
    options: Mapping[str, Any] | None = None,
    port: str = "PORT",
    *,
    root: Path = ROOT,
    name: str = "Parley",
) -> Subject:
    """Parley from a checkout, with these options in addition to a provider."""
    settings = {
        "providers": {
            "bench": {"kind": "openai", "base_url": f"http://127.0.0.1:{port}/v1", "api": "chat"}
        },
        "agents": [{"name": "Bench", "provider": "bench", "model": "bench", "tool_mode": "off"}],
        "agent": "Bench",
        "safety": {"rate_limit_per_minute": 100_000},
        **(options or {}),
    }
    init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(settings))}))"
    if root != ROOT:
        init += f"\nvim.g.parley_python = {json.dumps(sys.executable)}"
    return Subject(name, False, init, "<C-g><C-g>", root=root)


def earlier(root: Path) -> Subject:
    """Another version of Parley, from its checkout; it uses this version's packages."""
    if not (root / "lua" / "parley").is_dir():
        sys.exit(f"{root}: is no checkout of Parley")
    return parley(root=root, name="before")


FLOOR_INIT = f"""
local command = {{ {json.dumps(sys.executable)}, {json.dumps(str(HERE / "floor_host.py"))}, 'PORT' }}
local host = vim.fn.jobstart(command, {{ rpc = true }})
vim.keymap.set('n', '<C-g><C-g>', function()
  vim.rpcnotify(host, 'ask', vim.api.nvim_get_current_buf())
end)
"""
FLOOR = Subject("floor", True, FLOOR_INIT, "<C-g><C-g>")


COMPANION_INIT = """
vim.opt.rtp:prepend(PLENARY)
vim.opt.rtp:prepend(COMPANION)
require('codecompanion').setup({
  adapters = { http = { bench = function()
    return require('codecompanion.adapters').extend('openai_compatible', {
      env = { url = 'http://127.0.0.1:PORT', api_key = 'BENCH_KEY' },
      schema = { model = { default = 'bench' } },
    })
  end } },
  interactions = { chat = { adapter = 'bench' } },
})
"""
COMPANION_OPEN = "require('codecompanion').chat({ messages = ..., auto_submit = false })"


def companion(folder: Path) -> Subject:
    """CodeCompanion with its own defaults, from the checkouts' folder, which must also contain
    plenary.
    """
    names = {"PLENARY": "plenary.nvim", "COMPANION": "codecompanion.nvim"}
    init = COMPANION_INIT
    for word, name in names.items():
        if not (folder / name / "lua").is_dir():
            sys.exit(f"{folder}: has no checkout {name}")
        init = init.replace(word, json.dumps(str(folder / name)))
    return Subject("CodeCompanion", True, init, "<C-s>", COMPANION_OPEN, "## Me")


class Server:
    """The model server. Each of its lines is a request, or the report of a spaced reply. Nobody reads
    the lines of some requests, so a measurement says which lines it means.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.port = int(process.stdout.readline())
        self._lines = Queue[dict[str, Any]]()
        self._reader = threading.Thread(target=self._read, args=(process.stdout,))
        self._reader.start()

    def _read(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._lines.put(json.loads(line))

    def until_ended(self) -> None:
        """Return when the last line has been read."""
        self._reader.join()

    def request(self, since: float) -> dict[str, Any]:
        """Return the next request that arrived after a time on the server's clock."""
        while (line := self._lines.get(timeout=DONE_S)).get("at", 0.0) < since:
            pass
        return line

    def sent_s(self, request: int, meanwhile: Callable[[], object]) -> list[float]:
        """Return when each token of this request's spaced reply was sent, when the last one is
        sent.
        """
        while True:
            try:
                line = self._lines.get(timeout=0.1)
            except Empty:
                meanwhile()
                continue
            if line.get("answered") == request:
                sent: list[float] = line["sent"]
                return sent


@contextmanager
def serving(*command: object) -> Iterator[Server]:
    """A server from this folder, in its own process."""
    with subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        server = Server(process)
        try:
            yield server
        finally:
            process.kill()
            server.until_ended()


@contextmanager
def started(
    subject: Subject, port: int, home: Path, env: dict[str, str] | None = None
) -> Iterator[Desk]:
    """A Neovim with the subject loaded."""
    home.mkdir(parents=True, exist_ok=True)
    init = subject.init.replace("PORT", str(port)) + "\nvim.o.swapfile = false"
    used = {"BENCH_KEY": "x", **(env or {})}
    with child(
        home, init=init, clean=subject.clean, root=subject.root, forked=False, env=used
    ) as nvim:
        yield Desk(subject, nvim)


WATCH = """
local heading, buf = ..., vim.api.nvim_get_current_buf()
_G.bench_done = nil
local last = vim.api.nvim_buf_line_count(buf)
vim.api.nvim_buf_attach(buf, false, { on_lines = function()
  if _G.bench_done then return true end
  local from = math.max(last, vim.api.nvim_buf_line_count(buf) - 3)
  for _, line in ipairs(vim.api.nvim_buf_get_lines(buf, from, -1, false)) do
    if vim.startswith(line, heading) then _G.bench_done = vim.uv.hrtime() end
  end
end })
"""
"""Records the time at which a heading for the next question appears below the old end."""

WATCH_TOKENS = """
local buf = vim.api.nvim_get_current_buf()
local last = vim.api.nvim_buf_line_count(buf) - 1
local arrivals = {}
_G.bench_arrivals = arrivals
vim.api.nvim_buf_attach(buf, false, { on_lines = function(_, _, _, first, _, stop)
  if _G.bench_arrivals ~= arrivals then return true end
  if stop > first and first >= last then
    arrivals[#arrivals + 1] = {
      vim.uv.hrtime(), vim.api.nvim_buf_get_lines(buf, first, stop, false),
    }
  end
end })
"""
"""Records each change below the old end, with its time."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from the key press to the request and from there to the answer's end, and CPU seconds
    in total.
    """

    to_request: float
    to_end: float
    cpu: float


class Desk:
    """One chat after another in one Neovim."""

    def __init__(self, subject: Subject, nvim: Child) -> None:
        self.subject = subject
        self.nvim = nvim
        self._number = 0

    def open(self, lines: int, question: str) -> None:
        """Open a chat with this many lines above its question, and return when it is at rest."""
        above = list[str]()
        while len(above) < lines:
            above += [f"💬: how? ({len(above)})", "", "🤖:[A]", "", *[LINE] * 300, ""]
        self.show("\n".join(above[:lines]), question)
        if self.subject.is_parley:
            self.nvim.until(self._is_known, "the chat", DONE_S)
        self.nvim.command("normal! G")
        self.nvim.flush()
        time.sleep(0.4)  # wait until idle work is done

    def show(self, above: str, question: str) -> None:
        """Open a chat with a text and a question below it."""
        self._number += 1
        if self.subject.open:
            parts = re.findall(r"^(💬: |🤖:\[A\])(.*?)(?=^💬: |^🤖:|\Z)", above, re.M | re.S)
            roles = {"💬: ": "user", "🤖:[A]": "llm"}
            messages = [{"role": roles[mark], "content": text.strip()} for mark, text in parts]
            self.nvim.lua(self.subject.open, [*messages, {"role": "user", "content": question}])
        else:
            self.nvim.edit(f"{self._number}.md", f"{above}\n💬: {question}\n")

    def _is_known(self) -> bool:
        code = "local buf = vim.api.nvim_get_current_buf() "
        code += "return require('parley.view').tick(buf) == vim.api.nvim_buf_get_changedtick(buf)"
        return bool(self.nvim.lua(code))

    def press(self) -> float:
        """Ask, and measure the time."""
        self.nvim.lua(WATCH, self.subject.heading)
        began = time.monotonic()
        self.nvim.keys(self.subject.key)
        return began

    def until_complete(self) -> float:
        """The time at which the answer was complete in the buffer."""
        done = self.nvim.until(lambda: self.nvim.lua("return _G.bench_done"), "the answer", DONE_S)
        return float(done) / 1e9

    def ask(self, server: Server, lines: int, tokens: int) -> Times:
        """Ask for this many tokens below this many lines."""
        self.open(lines, f"{tokens} tokens")
        before, began = self.cpu_s(), self.press()
        requested = server.request(began)["at"]
        complete = self.until_complete()
        time.sleep(0.05)
        return Times(requested - began, complete - requested, self.cpu_s() - before)

    def delays_s(self, server: Server, question: str, lines: int = 0) -> tuple[list[float], float]:
        """How long each token of a spaced reply took from the server into the buffer, below this many
        lines, and the CPU seconds of the whole answer. Neovim is not asked for anything until the
        reply has ended.
        """
        self.open(lines, question)
        self.nvim.lua(WATCH_TOKENS)
        before, began = self.cpu_s(), self.press()
        number = server.request(began)["number"]
        sent = server.sent_s(number, self.nvim.flush)
        self.until_complete()
        cpu, found = self.cpu_s() - before, dict[int, float]()
        for at, written in self.nvim.lua("return _G.bench_arrivals"):
            for number in map(int, re.findall(r"word(\d+)", "\n".join(written))):
                found.setdefault(number, at / 1e9)
        return [found[number] - at for number, at in enumerate(sent)], cpu

    def ask_again(self, server: Server, tokens: int) -> None:
        """Ask for this many tokens in the same chat."""
        self.nvim.nvim.api.buf_set_lines(0, -1, -1, True, [f"{tokens} tokens"])
        self.nvim.command("normal! G")
        server.request(self.press())
        self.until_complete()

    def cpu_s(self) -> float:
        return machine.precise_cpu_s(self.nvim.pid)

    def memory_mb(self) -> float:
        return machine.memory_mb(self.nvim.pid)

    def resident_mb(self) -> float:
        return machine.resident_mb(self.nvim.pid)


class Stranger:
    """Another client of the same Neovim that sends requests all the time."""

    def __init__(self, nvim: Child) -> None:
        self._address: str = nvim.nvim.funcs.serverstart()
        self._over = threading.Event()
        self.waits_s = list[float]()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Stranger:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with pynvim.attach("socket", path=self._address) as nvim:
            while not self._over.is_set():
                self.waits_s.append(machine.seconds(nvim.api.get_mode))
                time.sleep(0.001)

    def p99_s(self) -> float:
        """The latency that only one in a hundred requests exceeds."""
        return sorted(self.waits_s)[int(len(self.waits_s) * 0.99)]
