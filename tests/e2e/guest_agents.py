"""The agents of other programs that tests start: how each runs offline, and what its model says.

Their model is `aimock`, which answers by the last question's words. An agent's home, settings and
login are made up, and its model is on this machine.
"""

from __future__ import annotations

import asyncio
import json
import platform
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.gateway_chats import address, running
from tests.workspace.trees import work_tree

GUESTS = Path(__file__).parents[2] / ".tools" / "guests"
NPM = GUESTS / "node_modules"
BIN = NPM / ".bin"
AIMOCK = BIN / "llmock"
NEW_NODE = GUESTS / "conformance" / "node_modules" / ".bin" / "node"
"""Claude's agent needs Node 22."""
TEXT = "one\ntwo\n"
LOUD = "one\nTWO\n"

READS = {"auto": ["workspace/read_file"]}
"""The approval of what one agent asks Parley for: to read a file before it asks to change it."""

Said = Mapping[str, Any]
"""A call of the agent's model."""


def call(name: str, **arguments: Any) -> Said:
    return {"name": name, "arguments": json.dumps(arguments)}


@dataclass(frozen=True, slots=True)
class GuestAgent:
    """An agent: its command, its model's calls, and its settings."""

    name: str
    command: tuple[str, ...]
    write: Callable[[Path, str], Said]
    """The call that gives a file this text."""
    shell: Callable[[str], Said]
    """The call that runs a command."""
    prepare: Callable[[Path, str], dict[str, str]]
    """Writes the agent's settings into its home, for this address of `aimock`; the result is the
    agent's variables."""
    read: Callable[[Path], Said] | None = None
    """The call that an agent needs before it may change a file."""


def opencode_home(home: Path, url: str) -> dict[str, str]:
    settings = {
        "model": "mock/mock-1",
        "small_model": "mock/mock-1",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"edit": "ask", "bash": "ask"},
        "provider": {
            "mock": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": f"{url}/v1", "apiKey": "k"},
                "models": {"mock-1": {"name": "Mock", "tool_call": True}},
            }
        },
    }
    file = home / ".config" / "opencode" / "opencode.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(settings))
    # OpenCode installs this package at each start, unless it seems to be there.
    (file.parent / "node_modules").mkdir()
    locked = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    (file.parent / "package-lock.json").write_text(json.dumps(locked))
    (file.parent / "package.json").write_text("{}")
    places = {
        "CACHE": ".cache",
        "CONFIG": ".config",
        "DATA": ".local/share",
        "STATE": ".local/state",
    }
    return {
        **{f"XDG_{name}_HOME": str(home / place) for name, place in places.items()},
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_PURE": "1",
    }


def gemini_home(home: Path, url: str) -> dict[str, str]:
    (home / ".gemini").mkdir()
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "k",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_MODEL": "gemini-2.5-flash",
    }


def codex_home(home: Path, url: str) -> dict[str, str]:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        'model = "mock-1"\nmodel_provider = "mock"\n\n[model_providers.mock]\nname = "Mock"\n'
        f'base_url = "{url}/v1"\nenv_key = "CODEX_API_KEY"\nwire_api = "responses"\n'
    )
    return {"CODEX_API_KEY": "k", "NO_BROWSER": "1"}


def claude_home(home: Path, url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }


def _system() -> str:
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}-{machine}"


OPENCODE = GuestAgent(
    "opencode",
    (str(NPM / f"opencode-{_system()}" / "bin" / "opencode"), "acp"),
    lambda path, text: call("write", filePath=str(path), content=text),
    lambda command: call("bash", command=command, description="Run it"),
    opencode_home,
    lambda path: call("read", filePath=str(path)),
)
GEMINI = GuestAgent(
    "gemini",
    (str(BIN / "gemini"), "--acp"),
    lambda path, text: call("write_file", file_path=str(path), content=text),
    lambda command: call("run_shell_command", command=command),
    gemini_home,
)
CLAUDE = GuestAgent(
    "claude",
    (str(NEW_NODE), str(BIN / "claude-agent-acp")),
    lambda path, text: call("Write", file_path=str(path), content=text),
    lambda command: call("Bash", command=command, description="Run it"),
    claude_home,
    lambda path: call("Read", file_path=str(path)),
)


def _patch(path: Path, text: str) -> Said:
    lines = "".join(f"-{line}\n" for line in TEXT.splitlines())
    lines += "".join(f"+{line}\n" for line in text.splitlines())
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n{lines}*** End Patch"
    return call("exec_command", cmd=f"apply_patch <<'EOF'\n{patch}\nEOF")


CODEX = GuestAgent(
    "codex",
    (str(BIN / "codex-acp"),),
    _patch,
    lambda command: call(
        "exec_command", cmd=command, sandbox_permissions="require_escalated", justification="Run?"
    ),
    codex_home,
)
AGENTS = {each.name: each for each in (OPENCODE, GEMINI, CLAUDE, CODEX)}


@dataclass(frozen=True, slots=True)
class GuestPlace:
    """A project with a file, and an agent for it, whose model runs."""

    guest: GuestAgent
    root: Path
    home: Path
    environ: Mapping[str, str]
    """The agent's variables."""

    @property
    def file(self) -> str:
        return (self.root / "a.txt").read_text()

    def settings(self) -> dict[str, Any]:
        """Parley's settings, with this agent as the default."""
        provider = {"kind": "acp", "command": list(self.guest.command), "env": dict(self.environ)}
        return {
            "agent": "Guest",
            "agents": [{"name": "Guest", "provider": self.guest.name}],
            "providers": {self.guest.name: provider},
            "status": {"llm": False},
            "approval": READS,
        }


def processes_of(home: Path) -> Iterator[int]:
    """The processes of the agent with this home."""
    mark = f"HOME={home}\0".encode()
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in each.read_bytes():
                yield int(each.parent.name)


@contextmanager
def guest_place(folder: Path, guest: GuestAgent) -> Iterator[GuestPlace]:
    """A place in this folder; its model answers as `fixtures` says."""
    root, home = work_tree(folder / "project", {"a.txt": TEXT}), folder / "home"
    home.mkdir()
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": fixtures(guest, root / "a.txt")}))
    found, ready, over = list[str](), threading.Event(), threading.Event()

    async def run() -> None:
        options = ("--fixtures", file, "--journal-max", "0")
        async with running((AIMOCK, "--port", "{port}", *options), "/health") as client:
            found.append(address(client))
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert ready.wait(60)
        environ = {**guest.prepare(home, found[0]), "HOME": str(home)}
        yield GuestPlace(guest, root, home, environ)
    finally:
        over.set()
        thread.join()


STORY = "Once upon a time there was a file. " * 40


def fixtures(guest: GuestAgent, file: Path) -> list[dict[str, Any]]:
    """What the models of an agent say. The prompt of a new session contains all earlier questions, so
    the question that a test asks last comes first."""
    shell, write = guest.shell("echo it was; touch made.txt"), guest.write(file, LOUD)
    found: list[dict[str, Any]] = [
        _says("Say goodbye", {"content": "Goodbye."}),
        *_acts("Run it", shell, "It ran."),
        *_acts("Once more, loudly", write, "Loud again.", guest.read and guest.read(file)),
        *_acts("Do it loudly", write, "It is done.", guest.read and guest.read(file)),
        {**_says("Tell a story", {"content": STORY}), "latency": 100, "chunkSize": 4},
        *_acts("Make it loud", write, "It is loud.", guest.read and guest.read(file)),
    ]
    return [*found, _says("Say hello", {"content": "Hello."})]


def _says(question: str, response: Said, **more: Any) -> dict[str, Any]:
    return {"match": {"userMessage": question, **more}, "response": response}


def _acts(question: str, act: Said, then: str, first: Said | None = None) -> list[dict[str, Any]]:
    """The model acts, perhaps after another call, and then says something."""
    acts = {"toolCalls": [act]}
    read = [_says(question, acts, toolResultContains=each) for each in ("two", "Wasted call")]
    return [
        *(read if first else []),
        _says(question, {"content": then}, hasToolResult=True),
        _says(question, {"toolCalls": [first]} if first else acts),
    ]
