"""What Parley adds to an agent of another program: to a turn, and to a token.

The floor is a client that only uses the package `acp` and drops everything. CPU is that of the client
alone, without the agent.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley import Session
from tests.bench import machine
from tests.bench.subjects import HERE, parley, started

RUNS = 7
AGENT = HERE / "acp_agent.py"
COMMAND = [sys.executable, "-I", str(AGENT)]
MANY, PACED = "2000 tokens", "300 tokens in 3 seconds"
SETTINGS: dict[str, Any] = {
    "agent": "Bench",
    "agents": [{"name": "Bench", "provider": "bench"}],
    "providers": {"bench": {"kind": "acp", "command": COMMAND}},
    "status": {"llm": False},
    "safety": {"rate_limit_per_minute": 100_000},
}
_TOKEN = re.compile(r"t(\d+) ")
DELAYS = """
local seen, buf = {}, vim.api.nvim_get_current_buf()
_G.bench_delays = {}
vim.api.nvim_buf_attach(buf, false, { on_lines = function(_, _, _, from, _, to)
  local now = vim.uv.hrtime()
  for _, line in ipairs(vim.api.nvim_buf_get_lines(buf, from, to, false)) do
    for sent in line:gmatch('t(%d+)') do
      if not seen[sent] then
        seen[sent] = true
        table.insert(_G.bench_delays, (now - tonumber(sent)) / 1e9)
      end
    end
  end
end })
"""


@dataclass(frozen=True, slots=True)
class AgentCosts:
    """Seconds of a turn of one token, CPU seconds of 2,000 tokens, and seconds from the moment when
    the agent sends a token until the client has it, at 100 tokens a second."""

    turn: float
    many_cpu: float
    delay: float


Ask = Callable[[str], Awaitable[list[float]]]
"""Asks, and returns the delay of each token."""


async def _measured(ask: Ask) -> AgentCosts:
    """The costs of a client in this process."""
    await ask("1 tokens")
    turns, cpus = list[float](), list[float]()
    for _ in range(RUNS):
        began = time.perf_counter()
        await ask("1 tokens")
        turns.append(time.perf_counter() - began)
    for _ in range(RUNS):
        await asyncio.sleep(1.1)  # Parley reads 2,000 messages a second
        cpu = time.process_time()
        await ask(MANY)
        cpus.append(time.process_time() - cpu)
    delays = await ask(PACED)
    return AgentCosts(*map(statistics.median, (turns, cpus, delays)))


def _delays(text: str) -> list[float]:
    now = time.monotonic_ns()
    return [(now - int(sent)) / 1e9 for sent in _TOKEN.findall(text)]


@asynccontextmanager
async def _raw_client() -> AsyncIterator[Ask]:
    from acp.connection import Connection

    process = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    delays = list[float]()

    async def handle(_: str, params: Any, __: bool) -> None:
        delays.extend(_delays(params["update"]["content"]["text"]))

    connection = Connection(handle, process.stdin, process.stdout)
    await connection.send_request("initialize", {"protocolVersion": 1})
    session = await connection.send_request("session/new", {"cwd": "/", "mcpServers": []})

    async def ask(question: str) -> list[float]:
        delays.clear()
        blocks = [{"type": "text", "text": question}]
        await connection.send_request("session/prompt", {**session, "prompt": blocks})
        return list(delays)

    try:
        yield ask
    finally:
        await connection.close()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _floor() -> AgentCosts:
    async with _raw_client() as ask:
        return await _measured(ask)


async def _headless() -> AgentCosts:
    async with Session(SETTINGS) as session:

        async def ask(question: str) -> list[float]:
            delays = list[float]()
            async for chunk in session.send_message_stream(question):
                if chunk["type"] == "content":
                    delays += _delays(chunk["content"])
            return delays

        return await _measured(ask)


def _neovim(home: Path) -> AgentCosts:
    turns, cpus = list[float](), list[float]()
    with started(parley(SETTINGS), 0, home) as desk:

        def cpu() -> float:
            return machine.precise_cpu_s(desk.nvim.pid, str(AGENT))

        def ask(question: str) -> float:
            desk.open(0, question)
            began = desk.press()
            return desk.until_complete() - began

        ask("1 tokens")
        for _ in range(RUNS):
            turns.append(ask("1 tokens"))
        for _ in range(RUNS):
            time.sleep(1.1)
            before = cpu()
            ask(MANY)
            time.sleep(0.05)
            cpus.append(cpu() - before)
        desk.open(0, PACED)
        desk.nvim.lua(DELAYS)
        desk.press()
        desk.until_complete()
        delays = json.loads(desk.nvim.lua("return vim.json.encode(_G.bench_delays)"))
    return AgentCosts(*map(statistics.median, (turns, cpus, delays)))


def agent_costs(home: Path) -> dict[str, AgentCosts]:
    """The costs by the way to the agent."""
    return {
        "`acp` alone": asyncio.run(_floor()),
        "library": asyncio.run(_headless()),
        "Neovim": _neovim(home),
    }
