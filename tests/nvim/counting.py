"""A home in which editor and shell share chats and a server that records its calls."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from parley.chat.reader import parse
from parley.chat.rounds import is_unfinished
from tests.nvim.harness import Child

SERVER = Path(__file__).parent.parent / "e2e" / "counting_server.py"
BOUND_S = 60.0
MARKER = "\U0001f4ac: "


def furnish(home: Path, **server_env: str) -> None:
    """Write settings for editor and shell, with the agent that starts fastest."""
    env = {"CALLS": str(home / "calls"), **server_env}
    lines = [
        'agent = "Demo-OpenAI"',
        "status.llm = false",
        "[mcp.servers.count]",
        f"command = {json.dumps(sys.executable)}",
        f"args = {json.dumps([str(SERVER)])}",
        *(f"env.{name} = {json.dumps(value)}" for name, value in env.items()),
    ]
    path = home / "config" / "parley" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


def environ(home: Path, **more: str) -> Mapping[str, str]:
    """The environment for a process in this home."""
    places = {
        f"XDG_{name}_HOME": str(home / name.lower())
        for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    names = "ANTHROPIC", "OPENAI", "GEMINI", "OPENROUTER"
    keys = dict.fromkeys((f"{name}_API_KEY" for name in names), "")
    return {**os.environ, **places, **keys, "HOME": str(home), **more}


class Chat:
    """A chat file in the chat folder, and the number of server calls for it."""

    def __init__(self, home: Path, name: str) -> None:
        self.name = name
        self.path = home / "data" / "parley" / "chats" / f"{name}.md"
        self.question = f'{MARKER}call note {{"text":"{name}"}}'
        self._log = home / "calls"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(f"{self.question}\n", encoding="utf-8")

    def calls(self) -> int:
        lines = self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []
        return sum(json.loads(line)["text"] == self.name for line in lines)


def until(nvim: Child, condition: Callable[[], Any], what: str) -> None:
    nvim.until(condition, what, BOUND_S)


def opened(nvim: Child, chat: Chat) -> None:
    nvim.command(f"edit! {chat.path}")
    until(nvim, lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")


def waits(nvim: Child) -> bool:
    """Whether a call waits for a choice, and no turn runs."""
    here: bool = nvim.lua(
        "return vim.fn.maparg('ya', 'n') ~= '' and not require('parley.handle').busy(0)"
    )
    return here


def has_ended(nvim: Child) -> bool:
    """Whether the user can type the next question, and no turn runs."""
    return nvim.lines()[-1] == MARKER and not nvim.lua("return require('parley.handle').busy(0)")


def is_complete(nvim: Child) -> bool:
    """Whether the first answer counts as complete, and no turn runs."""
    exchanges = parse(nvim.text()).exchanges
    answers = exchanges[0].answers if exchanges else ()
    return has_ended(nvim) and bool(answers) and not is_unfinished(answers[-1])


def problems(nvim: Child) -> list[str]:
    said: list[str] = nvim.lua(
        "return vim.tbl_map(function(d) return d.message end, vim.diagnostic.get(0))"
    )
    return said
