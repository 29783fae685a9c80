"""The host's imports: no large package before a chat needs it, then only that chat's packages."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.nvim.harness import ROOT

SDKS = {"openai", "anthropic", "mcp"}
LARGE = SDKS | {"jsonschema", "httpx2", "httpcore2", "pydantic", "uvicorn", "starlette"}
HOST = "import parley.nvim.plugin, parley.runtime.app"
SHELL = "import parley.cli.ask, parley.cli.respond, parley.runtime.app"
LATER = {
    *("nvim.finder", "nvim.health", "nvim.comparison", "nvim.block_diff", "nvim.pages"),
    *("nvim.servers_page", "nvim.account_dialog", "nvim.agent_login", "nvim.permission_dialog"),
    *("nvim.file_reverts", "nvim.agents", "nvim.copies", "nvim.lookups", "nvim.rewriting"),
    *("runtime.reverting", "runtime.recording", "runtime.agent_changes", "runtime.short_reply"),
    *("runtime.workspace_client", "runtime.call_previews", "workspace.tool_server"),
    *("workspace.command_runs", "workspace.searching", "workspace.change_tools"),
    *("workspace.boundary", "workspace.file_views", "storage.chat_search", "storage.forks"),
    *("demo.server", "conversion.exports.html", "engine.choices", "engine.compaction"),
    *("mcp.connect", "mcp.callbacks", "mcp.http_servers", "acp.agent_process"),
    *("acp.agent_session", "models.text_tools.adapter", "models.text_tools.json"),
    *("tools.file_edits", "tools.descriptions"),
}
"""Modules of Parley that no first question needs."""
MOST = 275
"""The number of Parley's modules that a host imports at most; all of them are twice as many."""
WARM = "from parley.providers.sdk_imports import warm, warm_tools; warm({!r}, builtin=False, has_tls=False)"


def modules(*code: str) -> set[str]:
    """All modules that this code imports."""
    start = f"import sys, json; sys.path.insert(0, {str(ROOT / 'python')!r})"
    tell = "print(json.dumps(list(sys.modules)))"
    command = [sys.executable, "-I", "-c", "; ".join((start, *code, tell))]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(json.loads(ran.stdout))


def imported(*code: str) -> set[str]:
    """The large packages that this code imports."""
    return LARGE & {name.partition(".")[0] for name in modules(*code)}


def test_a_host_starts_without_any_sdk_and_without_its_rarer_features() -> None:
    started = modules(HOST)
    assert LARGE & {name.partition(".")[0] for name in started} == set()
    assert {f"parley.{name}" for name in LATER} & started == set()
    assert sum(name.startswith("parley.") for name in started) <= MOST


def test_a_question_in_the_shell_imports_as_little() -> None:
    started = modules(SHELL)
    assert LARGE & {name.partition(".")[0] for name in started} == set()
    assert {f"parley.{name}" for name in LATER} & started == {"parley.storage.forks"}
    assert sum(name.startswith("parley.") for name in started) <= MOST


@pytest.mark.parametrize(("kind", "other"), [("openai", "anthropic"), ("anthropic", "openai")])
def test_a_chat_imports_only_its_agents_sdk(kind: str, other: str) -> None:
    packages = imported(HOST, WARM.format(kind))
    assert kind in packages
    assert not packages & {other, "mcp", "jsonschema", "uvicorn", "starlette"}


def test_the_sdk_for_servers_is_imported_if_there_are_servers_besides_parleys_own() -> None:
    later = "warm_tools(has_servers={})"
    own = imported(HOST, WARM.format("openai"), later.format(False))
    assert own & {"openai", "mcp", "jsonschema"} == {"openai", "jsonschema"}
    assert "mcp" in imported(HOST, WARM.format("openai"), later.format(True))
