"""The architecture, held against the imports: what may know what; `doc/architecture.md` has the picture."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "python"
MODULES = sorted((ROOT / "parley").rglob("*.py"))

GROUND = {"text", "addresses", "regular"}
"""What knows nothing of Parley, and may be known by all."""
BELOW: dict[str, set[str]] = {
    "text": set(),
    "addresses": set(),
    "regular": set(),
    "errors": set(),
    "chat": set(),
    "tools": {"errors"},
    "models": {"chat", "tools", "errors"},
    "turn": {"chat", "tools", "errors"},
    "engine": {"chat", "tools", "models", "turn", "errors"},
    "settings": {"models", "tools", "turn"},
    "settings_reader": {"settings", "models", "tools", "turn"},
    "conduct": {"engine", "settings", "chat", "models", "tools", "turn"},
    "config": {"settings", "settings_reader", "models", "tools"},
    "export": {"chat"},
    "demo": {"tools"},
    "mock_server": {"errors"},
    "drivers": {
        *("chat", "tools", "models", "turn", "errors", "engine", "settings", "settings_reader", "conduct"),
        *("config", "demo", "export", "mock_server"),
    },
    "session": {"chat", "engine", "drivers", "errors", "models", "settings", "turn"},
    "cli": {
        "chat",
        "config",
        "demo",
        "drivers",
        "engine",
        "errors",
        "models",
        "export",
        "settings",
        "tools",
        "turn",
        "",
    },
    "__main__": {"cli"},
    "": {"session", "settings"},
}
"""Per room what it may import of Parley, beside itself; a room is a folder or a module beside the folders."""

IO = {"asyncio", "threading", "subprocess", "socket", "multiprocessing", "selectors", "concurrent"}
ONLY_IN: dict[str, tuple[str, ...]] = {
    "anthropic": ("providers/client.py",),
    "openai": ("providers/client.py",),
    "mcp": ("mcp/callbacks.py", "mcp/connect.py", "mcp/client.py", "mock_server.py"),
    "mcp_types": ("mcp/callbacks.py", "mcp/connect.py", "mock_server.py"),
    "pynvim": ("drivers/nvim/",),
    "greenlet": ("drivers/nvim/",),
    "sqlite3": ("storage/ledger.py", "storage/ledger_sql.py"),
    "starlette": ("demo/server.py",),
    "uvicorn": ("demo/server.py",),
    **dict.fromkeys(IO, ("drivers/", "demo/server.py", "session.py", "cli/", "mock_server.py")),
}
"""Who may import what is not Parley's."""

SIBLINGS = ("models/anthropic", "models/openai_chat", "models/openai_responses")
"""Adapters of providers: one never knows another."""


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def room(dotted: str) -> str:
    """The room of a dotted name of Parley's: `parley.chat.reader` is in chat, `parley.Session` in no room."""
    parts = dotted.split(".")
    known = [part for part in parts[1:2] if part in BELOW]
    return known[0] if known else ""


def name(path: Path) -> str:
    return path.relative_to(ROOT / "parley").as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_go_one_way(path: Path) -> None:
    here = room("parley." + name(path).removesuffix(".py").replace("/", ".").removesuffix("__init__"))
    for imported in imports(path):
        if imported.split(".")[0] == "parley":
            there = room(imported)
            assert there == here or there in BELOW[here] | GROUND, f"{name(path)} must not import {imported}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_the_world_is_behind_its_own_doors(path: Path) -> None:
    for imported in imports(path):
        doors = ONLY_IN.get(imported.split(".")[0])
        assert doors is None or name(path).startswith(doors), f"{name(path)} must not import {imported}"


def test_adapters_do_not_know_each_other() -> None:
    for sibling in SIBLINGS:
        others = {"parley." + other.replace("/", ".") for other in SIBLINGS if other != sibling}
        path = ROOT / "parley" / f"{sibling}.py"
        known = set(imports(path)) if path.exists() else set()
        assert not any(imported.startswith(tuple(others)) for imported in known)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_says_what_it_knows_and_stays_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text.strip() or ast.get_docstring(ast.parse(text)), f"{name(path)} has no docstring"
    assert text.count("\n") <= 400, f"{name(path)} has more than 400 lines: split it by meaning"
