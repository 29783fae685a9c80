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
WARM = "from parley.providers.sdk_imports import warm, warm_tools; warm({!r}, builtin=False)"


def imported(*code: str) -> set[str]:
    """The large packages that this code imports."""
    start = f"import sys, json; sys.path.insert(0, {str(ROOT / 'python')!r})"
    tell = "print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    command = [sys.executable, "-I", "-c", "; ".join((start, *code, tell))]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return LARGE & set(json.loads(ran.stdout))


def test_a_host_starts_without_any_sdk() -> None:
    assert imported(HOST) == set()


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
