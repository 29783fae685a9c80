"""The architecture, checked against the imports; `doc/architecture.md` has the picture."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from parley.chat.grammar import MARKERS, SUMMARY
from parley.models.formats import FORMATS

ROOT = Path(__file__).parent.parent / "python"
MODULES = sorted((ROOT / "parley").rglob("*.py"))

GROUND = (
    "late_names",
    "late_patterns",
    "text",
    "media",
    "addresses",
    "bounded_files",
    "atomic_files",
    "errors",
    "frozen",
    "entry_points",
    "paths",
    "hints",
    "programs",
    "processes",
    "secrets",
    "clock",
    "iterators",
    "http",
    "logins",
    "tables",
)
"""Rooms that know nothing about chats and that every room may import; each may import the rooms
before it.
"""
BELOW: dict[str, set[str]] = {
    "chat": set(),
    "tools": set(),
    "instructions": {"chat"},
    "models": {"chat", "tools", "instructions"},
    "policy": {"chat", "tools"},
    "engine": {"chat", "tools", "models", "policy"},
    "settings": {"chat", "tools", "models", "policy", "engine", "instructions"},
    "display": {"chat", "tools", "models", "policy", "settings"},
    "storage": {"chat", "tools", "policy", "engine", "instructions"},
    "providers": {"chat", "tools", "models", "policy", "engine", "settings"},
    "workspace": {"tools"},
    "acp": {"chat", "tools", "models", "policy", "engine", "settings"},
    "mcp": {"tools", "policy", "mock_server"},
    "conversion": {"chat", "models"},
    "demo": {"tools"},
    "mock_server": set(),
    "runtime": {
        *(
            "chat",
            "tools",
            "models",
            "policy",
            "engine",
            "settings",
            "storage",
            "providers",
            "mcp",
            "demo",
            "workspace",
            "instructions",
            "acp",
        ),
    },
    "verification": {"chat", "tools", "models", "policy", "engine", "storage", "runtime"},
    "nvim": {
        *(
            "chat",
            "tools",
            "models",
            "policy",
            "engine",
            "settings",
            "storage",
            "providers",
            "mcp",
            "runtime",
        ),
        *("display", "conversion", "workspace", "instructions"),
    },
    "chunks": {"chat", "models", "engine"},
    "session": {
        *("chat", "tools", "models", "policy", "engine", "settings", "storage", "mcp", "runtime"),
        "chunks",
    },
    "cli": {
        *(
            "chat",
            "tools",
            "models",
            "policy",
            "engine",
            "settings",
            "storage",
            "providers",
            "runtime",
        ),
        *("demo", "display", "conversion", "verification", "instructions", ""),
    },
    "__main__": {"cli"},
    "": {"chat", "tools", "models", "policy", "settings", "chunks", "session"},
}
"""The rooms that each room may import, besides itself and the ground. A room is a folder, or a
module next to the folders.
"""

CLOSED = ("conversion", "verification")
"""Rooms whose package names what other rooms may use."""

IO = {"asyncio", "threading", "subprocess", "socket", "multiprocessing", "selectors", "concurrent"}
WAITING = (
    "clock.py",
    "secrets.py",
    "processes/",
    "http/",
    "logins/",
    "storage/",
    "providers/",
    "acp/",
    "mcp/",
    "runtime/",
    "nvim/",
    "workspace/",
)
ONLY_IN: dict[str, tuple[str, ...]] = {
    "anthropic": ("providers/client.py",),
    "openai": ("providers/client.py",),
    "acp": ("acp/agent_process.py",),
    "mcp": (
        "mcp/callbacks.py",
        "mcp/connect.py",
        "mcp/server_client.py",
        "mcp/functions.py",
        "mcp/http_servers.py",
        "mcp/sign_in.py",
        "mcp/task_requests.py",
        "mock_server.py",
        "workspace/tool_server.py",
    ),
    "mcp_types": (
        "mcp/callbacks.py",
        "mcp/server_client.py",
        "mcp/connect.py",
        "mcp/http_servers.py",
        "mcp/task_requests.py",
        "mock_server.py",
        "workspace/tool_server.py",
    ),
    "pathspec": ("workspace/ignored.py",),
    "pynvim": ("nvim/",),
    "greenlet": ("nvim/",),
    "sqlite3": ("storage/ledger.py",),
    "starlette": ("demo/server.py",),
    "uvicorn": ("demo/server.py",),
    **dict.fromkeys(IO, (*WAITING, "demo/server.py", "session.py", "cli/", "mock_server.py")),
}
"""The rooms that may import other packages."""

SIBLINGS = tuple({each.request_body.__module__ for each in FORMATS.values()})
"""Provider adapters: none knows another."""


@cache
def tree(path: Path) -> ast.Module:
    """A parsed module; several tests use it."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, at the top or inside a function."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def room(dotted: str) -> str:
    """The room in a dotted name: `parley.chat.reader` is in chat, `parley.Session` in none."""
    parts = dotted.split(".")
    known = [part for part in parts[1:2] if part in (*BELOW, *GROUND)]
    return known[0] if known else ""


def may_know(here: str) -> set[str]:
    """The rooms that a room may import."""
    return set(GROUND[: GROUND.index(here)]) if here in GROUND else {*BELOW[here], *GROUND}


def name(path: Path) -> str:
    return path.relative_to(ROOT / "parley").as_posix()


def dotted(path: Path) -> str:
    """The name by which a module is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {dotted(path) for path in MODULES}


def module_of(imported: str) -> str:
    """The module in an import, which may name one of the module's members."""
    return imported if imported in NAMES else imported.rpartition(".")[0]


def test_imports_go_one_way() -> None:
    for path in MODULES:
        here = room(dotted(path))
        for imported in imports(path):
            if imported.split(".")[0] == "parley":
                there = room(imported)
                assert there == here or there in may_know(here), (
                    f"{name(path)} must not import {imported}"
                )


def test_other_rooms_import_only_the_package_of_a_closed_room() -> None:
    for path in MODULES:
        for imported in imports(path):
            there = room(imported)
            assert (
                there not in CLOSED
                or there == room(dotted(path))
                or module_of(imported) == f"parley.{there}"
            ), f"{name(path)} must not import {imported}"


def test_the_package_of_a_closed_room_has_every_name_that_it_lists() -> None:
    for closed in CLOSED:
        package = import_module(f"parley.{closed}")
        assert [each for each in package.__all__ if not hasattr(package, each)] == []


def test_only_some_rooms_import_each_outside_package() -> None:
    for path in MODULES:
        for imported in imports(path):
            doors = ONLY_IN.get(imported.split(".")[0])
            assert doors is None or name(path).startswith(doors), (
                f"{name(path)} must not import {imported}"
            )


def test_adapters_do_not_know_each_other() -> None:
    assert len(SIBLINGS) == len(FORMATS)
    for sibling in SIBLINGS:
        others = tuple(other for other in SIBLINGS if other != sibling)
        known = set(imports(ROOT / f"{sibling.replace('.', '/')}.py"))
        assert not any(imported.startswith(others) for imported in known)


def test_a_module_docstring_says_what_it_knows() -> None:
    for path in MODULES:
        assert not tree(path).body or ast.get_docstring(tree(path)), (
            f"{name(path)} has no docstring"
        )


def test_no_two_modules_import_each_other() -> None:
    known = {dotted(path): {module_of(imported) for imported in imports(path)} for path in MODULES}
    pairs = {
        (one, two) for one, others in known.items() for two in others if one in known.get(two, ())
    }
    assert not {(one, two) for one, two in pairs if one < two}


STARTS = tuple({marker[0] for marker in (*MARKERS.values(), SUMMARY)})
TEXTS_OF_OTHERS = ("chat/grammar.py", "mock_server.py", "demo/replies.py")
"""Modules that may spell markers: the grammar itself, and stand-ins for the outside world (a
forging server, a summarizing model).
"""
LUA = sorted((ROOT.parent / "lua").rglob("*.lua")) + sorted((ROOT.parent / "plugin").rglob("*.lua"))


def texts(tree: ast.Module) -> Iterator[str]:
    """A module's texts, except docstrings."""
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documents
        ):
            yield node.value


def test_only_the_grammar_spells_a_marker() -> None:
    """A message may name a marker; otherwise no line or text begins with a marker."""
    for path in MODULES:
        for text in texts(tree(path)) if name(path) not in TEXTS_OF_OTHERS else ():
            assert not any(line.startswith(STARTS) for line in text.split("\n")), (
                f"{name(path)}: {text!r}"
            )


def test_lua_has_one_table_of_markers() -> None:
    spelling = [
        path.name for path in LUA if any(c in path.read_text(encoding="utf-8") for c in STARTS)
    ]
    assert spelling == ["known.lua"]
