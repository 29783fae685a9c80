"""The agents of other programs that tests start: how each runs offline, and what its model says.

Their model is `aimock`, which answers by the last question's words. An agent's home, settings and
login are made up, and its model is on this machine.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GUESTS = Path(__file__).parents[2] / ".tools" / "guests"
NPM = GUESTS / "node_modules"
BIN = NPM / ".bin"
AIMOCK = BIN / "llmock"
NEW_NODE = GUESTS / "conformance" / "node_modules" / ".bin" / "node"
"""Claude's agent needs Node 22."""
TEXT = "one\ntwo\n"
LOUD = "one\nTWO\n"

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
    return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}


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


STORY = "Once upon a time there was a file. " * 40


def fixtures(guest: GuestAgent, file: Path) -> list[dict[str, Any]]:
    """What the models of an agent say. The prompt of a new session contains all earlier questions, so
    the question that a test asks last comes first."""
    shell, write = guest.shell("touch made.txt"), guest.write(file, LOUD)
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
